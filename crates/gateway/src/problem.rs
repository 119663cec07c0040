//! What a caller is told when a call fails: RFC 9457 problem documents, and nothing else.
//!
//! Every kind of problem has a `type` that never changes, so that a client can branch on it; the reasons by which a
//! fold refuses an event keep the names they have in dead letters. What is ours or the operator's to fix is logged
//! here, once, and told to the caller without its causes.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidemark_event::{EventId, LimitError};
use tidemark_fold::Reason;
use tidemark_store::StoreError;
use utoipa::ToSchema;

use crate::{append::AppendError, log_end::LogEndError};

/// How soon a caller may come back after a 503. The wait that led to it is in it already.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What `type` of every problem begins with.
const TYPE_PREFIX: &str = "urn:tidemark:problem:";

/// The content type of problem documents.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What is wrong, as far as a client may want to act differently on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A body, a query or a path that is not as the call takes it.
    InvalidRequest,
    /// A cursor that no call gave for this list, this caller and this log.
    InvalidCursor,
    /// A sync token that cannot be gone on from.
    StartOver,
    /// Nobody says who calls.
    NoCaller,
    /// Only a service may make this call, or act for another.
    ServiceOnly,
    /// There is no such path.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The body is larger than the call takes.
    TooLarge,
    /// The body is not of a type that the call takes.
    UnsupportedMediaType,
    /// The conversation's state forbids it.
    Refused(Reason),
    /// The log cannot take events or be looked at.
    LogUnavailable,
    /// The views cannot be read.
    StoreUnavailable,
    /// A view has not reached the log's end in time, so that nothing can be refused.
    ViewBehind,
    /// More requests are under way than are served at a time, or this one took too long.
    Overloaded,
    /// A fault of ours.
    Internal,
}

impl Kind {
    /// The last part of `type`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidCursor => "invalid_cursor",
            Self::StartOver => "start_over",
            Self::NoCaller => "no_caller",
            Self::ServiceOnly => "service_only",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Refused(reason) => reason.as_str(),
            Self::LogUnavailable => "log_unavailable",
            Self::StoreUnavailable => "store_unavailable",
            Self::ViewBehind => "view_behind",
            Self::Overloaded => "overloaded",
            Self::Internal => "internal",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidCursor | Self::Refused(Reason::BadMembers) => {
                StatusCode::BAD_REQUEST
            }
            Self::NoCaller => StatusCode::UNAUTHORIZED,
            Self::ServiceOnly
            | Self::Refused(Reason::DirectIsFixed | Reason::NotAMember | Reason::NotAllowed) => {
                StatusCode::FORBIDDEN
            }
            Self::NotFound | Self::Refused(Reason::NoSuchConversation | Reason::NoSuchSeq) => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Refused(Reason::ExistsWithOtherContent) => StatusCode::CONFLICT,
            Self::StartOver => StatusCode::GONE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::LogUnavailable | Self::StoreUnavailable | Self::ViewBehind | Self::Overloaded => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is not as this call takes it",
            Self::InvalidCursor => "The cursor is not one of this list",
            Self::StartOver => "Start over: call without since",
            Self::NoCaller => "Nobody says who calls",
            Self::ServiceOnly => "Only a service may do this",
            Self::NotFound => "There is no such path",
            Self::MethodNotAllowed => "The path has no such method",
            Self::TooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body is not of a type that this call takes",
            Self::Refused(Reason::NoSuchConversation) => "There is no such conversation",
            Self::Refused(Reason::ExistsWithOtherContent) => {
                "The conversation exists with other content"
            }
            Self::Refused(Reason::BadMembers) => "The members cannot be those of a conversation",
            Self::Refused(Reason::DirectIsFixed) => "The members of a direct chat never change",
            Self::Refused(Reason::NotAMember) => "The caller is not a member of the conversation",
            Self::Refused(Reason::NoSuchSeq) => "There is no message with that seq",
            Self::Refused(Reason::NotAllowed) => "The caller may not do this",
            Self::LogUnavailable => "The log cannot be reached",
            Self::StoreUnavailable => "The views cannot be reached",
            Self::ViewBehind => "The view is behind the log",
            Self::Overloaded => "The gateway is busy",
            Self::Internal => "The gateway failed",
        }
    }
}

/// A call that failed, as its caller is told.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    /// What was tried to append, where the log may have it or not: to be tried again with.
    event_id: Option<EventId>,
}

/// What a call failed with.
pub(crate) type Answer<T> = Result<T, Problem>;

/// What is wrong with one field or parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// The field of the body, the query parameter, the header or the part of the path.
    #[schema(example = "members[3]")]
    pub(crate) field: String,
    /// What is wrong with it.
    #[schema(example = "a user id must not be empty")]
    pub(crate) problem: String,
}

/// An RFC 9457 problem document: what every failed call answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemJson {
    /// A name for this kind of problem, which never changes.
    #[serde(rename = "type")]
    #[schema(example = "urn:tidemark:problem:not_a_member")]
    kind: String,
    /// What this kind of problem is.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened this time.
    detail: Cow<'static, str>,
    /// What is wrong with which field, where fields are.
    errors: Vec<FieldError>,
    /// Where it was tried to append an event and nobody knows whether the log has it: the id to try again with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            event_id: None,
        }
    }

    /// Fields that are not as the call takes them.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [only] => Cow::from(format!("{}: {}", only.field, only.problem)),
            several => Cow::from(format!("{} fields are wrong", several.len())),
        };
        Self {
            errors,
            ..Self::new(Kind::InvalidRequest, detail)
        }
    }

    /// One field that is not as the call takes it.
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::fields(vec![FieldError {
            field: field.into(),
            problem: problem.into(),
        }])
    }

    /// The conversation's state forbids it.
    pub(crate) fn refused(reason: Reason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Refused(reason), detail)
    }

    #[must_use]
    pub(crate) fn about(mut self, field: &str) -> Self {
        let problem = self.detail.to_string();
        let field = field.to_owned();
        self.errors.push(FieldError { field, problem });
        self
    }

    #[must_use]
    pub(crate) fn after_trying(mut self, event: EventId) -> Self {
        self.event_id = Some(event);
        self
    }

    /// An append that failed. The event's id is told where an append was tried.
    pub(crate) fn append(event: EventId, error: &AppendError) -> Self {
        let problem = match error {
            AppendError::Unwritable { .. } => {
                // Limits are checked before: a log that takes less than they allow is the operator's to fix.
                tracing::error!(
                    error = chain(error),
                    "an event within the limits cannot be written"
                );
                return Self::internal();
            }
            AppendError::Log { source } => Self::from(source.clone()),
            AppendError::NotAppended { .. } => {
                tracing::warn!(error = chain(error), "an event was not appended");
                Self::new(
                    Kind::LogUnavailable,
                    "the log did not take the event: nothing was changed",
                )
            }
            AppendError::Unknown { .. } => {
                tracing::warn!(
                    error = chain(error),
                    "an event may have been appended or not"
                );
                Self::new(
                    Kind::LogUnavailable,
                    "the log did not say whether it has the event: try again with the same event_id",
                )
            }
        };
        problem.after_trying(event)
    }

    fn store(error: &StoreError) -> Self {
        if error.is_transient() {
            tracing::warn!(error = chain(error), "the store could not be read");
            return Self::new(
                Kind::StoreUnavailable,
                "the views could not be read in time",
            );
        }
        tracing::error!(error = chain(error), "the store could not be read");
        Self::internal()
    }

    /// A fault of ours, logged by whoever met it.
    pub(crate) fn internal() -> Self {
        Self::new(Kind::Internal, "the gateway's log says more")
    }

    #[cfg(test)]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the caller is refused because of the conversation's state, which a newer view may see otherwise.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Refused(_))
    }

    /// The document.
    pub(crate) fn into_json(self) -> ProblemJson {
        ProblemJson {
            kind: format!("{TYPE_PREFIX}{}", self.kind.name()),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: self.detail,
            errors: self.errors,
            event_id: self.event_id,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        // A problem is text and numbers: it always has a JSON form.
        let body = serde_json::to_vec(&self.into_json()).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER.as_secs().into());
        }
        if status == StatusCode::UNAUTHORIZED {
            const BY_HEADER: HeaderValue = HeaderValue::from_static("X-User");
            headers.insert(header::WWW_AUTHENTICATE, BY_HEADER);
        }
        response
    }
}

impl From<LimitError> for Problem {
    fn from(error: LimitError) -> Self {
        let field = match &error {
            LimitError::TooLong { field, .. }
            | LimitError::TooMany { field, .. }
            | LimitError::Empty { field }
            | LimitError::SeqTooLarge { field, .. } => *field,
        };
        Self::field(field, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}

/// A read that failed for all who shared it.
impl From<Arc<StoreError>> for Problem {
    fn from(error: Arc<StoreError>) -> Self {
        Self::store(&error)
    }
}

impl From<LogEndError> for Problem {
    fn from(error: LogEndError) -> Self {
        let cause = chain(&error);
        match error {
            LogEndError::Kafka { .. } => {
                tracing::warn!(error = cause, "the log could not be asked")
            }
            LogEndError::OtherPartitions { .. } => {
                tracing::error!(error = cause, "the log is not the one that was set up");
            }
        }
        Self::new(Kind::LogUnavailable, "the log could not be asked")
    }
}

/// The header of an answer that a view was too late for.
pub(crate) const STALE: HeaderName = HeaderName::from_static("tidemark-stale");

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn document(problem: Problem) -> (StatusCode, Option<HeaderValue>, Value) {
        let response = problem.into_response();
        let (head, body) = response.into_parts();
        assert_eq!(head.headers[header::CONTENT_TYPE], PROBLEM_JSON);
        let body = to_bytes(body, 4_096).await.unwrap();
        let retry_after = head.headers.get(header::RETRY_AFTER).cloned();
        (
            head.status,
            retry_after,
            serde_json::from_slice(&body).unwrap(),
        )
    }

    #[tokio::test]
    async fn a_refusal_is_named_as_in_dead_letters() {
        let problem = Problem::refused(Reason::NotAMember, "bo is not a member of g1");
        let (status, retry_after, document) = document(problem).await;
        assert_eq!((status, retry_after), (StatusCode::FORBIDDEN, None));
        let expected = json!({
            "type": "urn:tidemark:problem:not_a_member",
            "title": "The caller is not a member of the conversation",
            "status": 403,
            "detail": "bo is not a member of g1",
            "errors": [],
        });
        assert_eq!(document, expected);
    }

    #[tokio::test]
    async fn what_may_have_been_appended_is_told_with_its_id() {
        let event = EventId::new(uuid::Uuid::from_u128(7));
        let error = AppendError::Unknown {
            topic: "t".to_owned(),
            source: rdkafka::error::KafkaError::Canceled,
        };
        let (status, retry_after, document) = document(Problem::append(event, &error)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(retry_after, Some(HeaderValue::from_static("1")));
        assert_eq!(document["event_id"], json!(event));
    }

    #[tokio::test]
    async fn fields_are_named() {
        let (status, _, document) =
            document(Problem::field("limit", "is 201, more than 200")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(
            document["errors"],
            json!([{"field": "limit", "problem": "is 201, more than 200"}])
        );
    }
}
