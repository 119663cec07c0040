//! Who makes a request, and as whom.
//!
//! The one place that believes a request about its caller: another way to authenticate is another arm of
//! [`authenticate`], and nothing else changes.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use tidemark_event::UserId;

use super::Params;
use crate::{
    app::App,
    problem::{Answer, Kind, Problem},
    settings::Auth,
};

/// The header that names the user.
const USER: &str = "x-user";
/// The header that marks a service.
const SERVICE: &str = "x-service";

/// As whom a request is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Who acts or reads: the user, or whom a service named by `?actor=`.
    pub(crate) user: UserId,
    /// A service makes the request.
    pub(crate) is_service: bool,
}

/// A request that only services may make, for nobody in particular.
#[derive(Debug)]
pub(crate) struct Service;

/// What a request proves about its caller.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    user: Option<UserId>,
    is_service: bool,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Answer<Self> {
        let identity = authenticate(app.settings.auth, &parts.headers)?;
        acting(identity, Params::of(parts)?.one("actor"))
    }
}

impl FromRequestParts<Arc<App>> for Service {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Answer<Self> {
        match authenticate(app.settings.auth, &parts.headers)? {
            Identity {
                is_service: true, ..
            } => Ok(Self),
            Identity { user: None, .. } => Err(nobody()),
            Identity { user: Some(_), .. } => Err(Problem::new(
                Kind::ServiceOnly,
                "only a service may append in bulk",
            )),
        }
    }
}

fn authenticate(auth: Auth, headers: &HeaderMap) -> Answer<Identity> {
    match auth {
        Auth::TrustedHeader => Ok(Identity {
            user: match one(headers, USER)? {
                Some(text) => Some(user_id("X-User", text)?),
                None => None,
            },
            is_service: match one(headers, SERVICE)? {
                Some("true") => true,
                Some("false") | None => false,
                Some(_) => return Err(Problem::field("X-Service", "is neither true nor false")),
            },
        }),
    }
}

/// As whom `identity` acts where its request names `actor`.
fn acting(identity: Identity, actor: Option<String>) -> Answer<Caller> {
    let is_service = identity.is_service;
    let actor = match actor {
        Some(text) => Some(user_id("actor", &text)?),
        None => None,
    };
    let user = match (actor, identity.user) {
        (Some(actor), _) if is_service => actor,
        (Some(actor), Some(user)) if actor != user => {
            return Err(Problem::new(
                Kind::ServiceOnly,
                format!("{user} is no service, and may not act as {actor}"),
            ));
        }
        (_, Some(user)) => user,
        (_, None) => return Err(nobody()),
    };
    Ok(Caller { user, is_service })
}

fn nobody() -> Problem {
    Problem::new(
        Kind::NoCaller,
        "the header X-User names the caller; a service may name one by ?actor= instead",
    )
}

fn one<'h>(headers: &'h HeaderMap, name: &'static str) -> Answer<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::field(name, "stands twice")),
        (Some(value), None) => match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Problem::field(name, "is not UTF-8")),
        },
    }
}

fn user_id(field: &str, text: &str) -> Answer<UserId> {
    UserId::new(text).map_err(|error| Problem::field(field, error.to_string()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn caller(pairs: &[(&'static str, &'static str)], actor: Option<&str>) -> Answer<Caller> {
        let identity = authenticate(Auth::TrustedHeader, &headers(pairs))?;
        acting(identity, actor.map(str::to_owned))
    }

    #[track_caller]
    fn is(caller: Answer<Caller>, name: &str, is_service: bool) {
        let user = UserId::new(name).unwrap();
        assert_eq!(caller.unwrap(), Caller { user, is_service });
    }

    #[test]
    fn a_user_is_whom_the_edge_says() {
        is(caller(&[("x-user", "anna")], None), "anna", false);
        is(caller(&[("x-user", "anna")], Some("anna")), "anna", false);
        is(
            caller(&[("x-user", "anna"), ("x-service", "false")], None),
            "anna",
            false,
        );
    }

    #[test]
    fn a_service_acts_as_anyone_and_as_itself() {
        is(caller(&[("x-service", "true")], Some("bo")), "bo", true);
        is(
            caller(&[("x-service", "true"), ("x-user", "bot")], Some("bo")),
            "bo",
            true,
        );
        is(
            caller(&[("x-service", "true"), ("x-user", "bot")], None),
            "bot",
            true,
        );
    }

    #[test]
    fn nobody_and_impostors_are_told_so() {
        let kind = |answer: Answer<Caller>| answer.unwrap_err().kind();
        assert_eq!(kind(caller(&[], None)), Kind::NoCaller);
        assert_eq!(kind(caller(&[("x-service", "true")], None)), Kind::NoCaller);
        assert_eq!(
            kind(caller(&[("x-user", "anna")], Some("bo"))),
            Kind::ServiceOnly
        );
        assert_eq!(kind(caller(&[], Some("bo"))), Kind::NoCaller);
        assert_eq!(
            kind(caller(&[("x-user", "a"), ("x-user", "b")], None)),
            Kind::InvalidRequest
        );
        assert_eq!(kind(caller(&[("x-user", "")], None)), Kind::InvalidRequest);
        assert_eq!(
            kind(caller(&[("x-user", "a"), ("x-service", "yes")], None)),
            Kind::InvalidRequest
        );
    }
}
