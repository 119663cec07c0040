//! The query of a call: parameters by name, each once unless it may repeat, and no others.

use std::{str::FromStr, time::Duration};

use axum::{
    extract::{FromRequestParts, Query as Pairs},
    http::request::Parts,
};
use tidemark_event::{DeviceId, EventId, IdError, MAX_SEQ, Position, Seq};
use uuid::Uuid;

use crate::problem::{Answer, FieldError, Problem};

/// The parameters of a query that nobody has taken yet, and what was wrong with those that were.
#[derive(Debug, Default)]
pub(crate) struct Params {
    left: Vec<(String, String)>,
    errors: Vec<FieldError>,
    #[cfg(test)]
    asked: Vec<String>,
}

/// What a call takes from its query.
pub(crate) trait FromParams: Sized {
    /// Takes the call's parameters. Whatever it returns is dropped where any was wrong or is left over.
    fn take(params: &mut Params) -> Self;
}

/// A call's query, read whole: `Query<T>` as an argument of a handler.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: FromParams> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        Params::of(parts)?.read().map(Self)
    }
}

/// A call that takes nothing but the caller's own parameters.
impl FromParams for () {
    fn take(_: &mut Params) {}
}

impl Params {
    /// The query of a request.
    pub(crate) fn of(parts: &Parts) -> Answer<Self> {
        match Pairs::<Vec<(String, String)>>::try_from_uri(&parts.uri) {
            Ok(Pairs(left)) => Ok(Self {
                left,
                ..Self::default()
            }),
            Err(error) => Err(Problem::field("query", error.to_string())),
        }
    }

    /// Reads the whole query: `T`'s parameters, the caller's `actor`, and nothing else.
    pub(crate) fn read<T: FromParams>(mut self) -> Answer<T> {
        let read = T::take(&mut self);
        // The caller's, taken by the extractor of callers.
        self.one("actor");
        let unknown = self.left.drain(..).map(|(field, _)| FieldError {
            field,
            problem: "is not a parameter of this call".to_owned(),
        });
        self.errors.extend(unknown);
        if self.errors.is_empty() {
            Ok(read)
        } else {
            Err(Problem::fields(self.errors))
        }
    }

    pub(crate) fn wrong(&mut self, field: &str, problem: impl Into<String>) {
        self.errors.push(FieldError {
            field: field.to_owned(),
            problem: problem.into(),
        });
    }

    /// A parameter that stands once or not at all.
    pub(crate) fn one(&mut self, name: &str) -> Option<String> {
        let mut values = self.many(name);
        if values.len() > 1 {
            self.wrong(name, "stands twice");
        }
        values.pop()
    }

    fn many(&mut self, name: &str) -> Vec<String> {
        #[cfg(test)]
        self.asked.push(name.to_owned());
        let taken = self.left.extract_if(.., |(key, _)| key == name);
        taken.map(|(_, value)| value).collect()
    }

    /// A parameter read by `read`, which says what is wrong with it.
    fn parsed<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let value = self.one(name)?;
        match read(&value) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.wrong(name, problem);
                None
            }
        }
    }

    /// A parameter that is one of a few words.
    pub(crate) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(name, |value| {
            let found = words.iter().find(|(word, _)| *word == value);
            found.map(|(_, meaning)| *meaning).ok_or_else(|| {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("is {value:?}, none of {}", words.join(", "))
            })
        })
    }

    /// A word that must be there.
    pub(crate) fn required_word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        self.require(name);
        self.word(name, words)
    }

    fn require(&mut self, name: &str) {
        if !self.left.iter().any(|(key, _)| key == name) {
            self.wrong(name, "is missing");
        }
    }

    /// How many entries a page may have, from 1: `default` where nothing is said.
    pub(crate) fn limit(&mut self, name: &str, default: usize, most: usize) -> usize {
        self.count(name, default, 1, most)
    }

    /// A number from `least` to `most`: `default` where nothing is said.
    pub(crate) fn count(&mut self, name: &str, default: usize, least: usize, most: usize) -> usize {
        let number = self.parsed(name, |value| match value.parse::<usize>() {
            Ok(number) if number < least => Err(format!("is {number}, less than {least}")),
            Ok(number) if number > most => Err(format!("is {number}, more than {most}")),
            Ok(number) => Ok(number),
            Err(_) => Err(format!("is {value:?}, no number from {least} to {most}")),
        });
        number.unwrap_or(default)
    }

    /// A place among a conversation's messages; 0 is before the first.
    pub(crate) fn seq(&mut self, name: &str) -> Option<Seq> {
        self.parsed(name, parse_seq)
    }

    pub(crate) fn event_id(&mut self, name: &str) -> Option<EventId> {
        self.parsed(name, |value| match Uuid::parse_str(value) {
            Ok(uuid) => Ok(EventId::new(uuid)),
            Err(error) => Err(format!("is no UUID: {error}")),
        })
    }

    /// A device that must be named.
    pub(crate) fn required_device(&mut self, name: &str) -> Option<DeviceId> {
        self.require(name);
        self.parsed(name, |value| {
            DeviceId::new(value).map_err(|error: IdError| error.to_string())
        })
    }

    /// Seconds to wait, `most` at most; fractions are allowed.
    pub(crate) fn seconds(&mut self, name: &str, most: Duration) -> Option<Duration> {
        self.parsed(name, |value| {
            let seconds = value.parse::<f64>().ok();
            let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            match wait {
                Some(wait) if wait <= most => Ok(wait),
                Some(_) => Err(format!("is {value}, more than {} seconds", most.as_secs())),
                None => Err(format!("is {value:?}, no number of seconds")),
            }
        })
    }

    /// Positions that the views must have reached: `at`, any number of times.
    pub(crate) fn at(&mut self) -> Vec<Position> {
        const NAME: &str = "at";
        let mut positions = Vec::new();
        for value in self.many(NAME) {
            match Position::from_str(&value) {
                Ok(position) => positions.push(position),
                Err(error) => self.wrong(NAME, error.to_string()),
            }
        }
        positions
    }
}

/// A seq as a client writes it.
pub(super) fn parse_seq(value: &str) -> Result<Seq, String> {
    match value.parse::<u64>().map(Seq::new) {
        Ok(seq) if seq <= MAX_SEQ => Ok(seq),
        Ok(_) => Err(format!("is {value}, beyond the largest, {MAX_SEQ}")),
        Err(_) => Err(format!("is {value:?}, no seq")),
    }
}

#[cfg(test)]
impl Params {
    /// The names of the parameters that a call takes.
    pub(crate) fn asked_by<T: FromParams>() -> Vec<String> {
        let mut params = Self::default();
        T::take(&mut params);
        params.one("actor");
        params.asked
    }

    /// The parameters of a query's text.
    pub(crate) fn parse(query: &str) -> Self {
        let uri = format!("http://x/?{query}").parse::<axum::http::Uri>();
        let request = axum::http::Request::builder().uri(uri.unwrap());
        Self::of(&request.body(()).unwrap().into_parts().0).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Page {
        limit: usize,
        before: Option<Seq>,
        filter: Option<bool>,
        at: Vec<Position>,
    }

    impl FromParams for Page {
        fn take(params: &mut Params) -> Self {
            Self {
                limit: params.limit("limit", 20, 200),
                before: params.seq("before"),
                filter: params.word("filter", &[("unread", true), ("read", false)]),
                at: params.at(),
            }
        }
    }

    #[track_caller]
    fn refused(query: &str, expected: &[(&str, &str)]) {
        let errors = Params::parse(query).read::<Page>().unwrap_err().into_json();
        let errors = serde_json::to_value(&errors).unwrap()["errors"].take();
        let expected: Vec<_> = expected
            .iter()
            .map(|(field, problem)| serde_json::json!({"field": field, "problem": problem}))
            .collect();
        assert_eq!(errors, serde_json::Value::from(expected));
    }

    #[test]
    fn what_is_not_said_has_its_default_and_the_caller_takes_actor() {
        let page = Params::parse("actor=anna&at=3-7&at=0-1")
            .read::<Page>()
            .unwrap();
        let expected = Page {
            limit: 20,
            before: None,
            filter: None,
            at: vec!["3-7".parse().unwrap(), "0-1".parse().unwrap()],
        };
        assert_eq!(page, expected);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        refused(
            "limit=201&before=-1&filter=all&at=x&limits=3",
            &[
                ("limit", "is 201, more than 200"),
                ("before", "is \"-1\", no seq"),
                ("filter", "is \"all\", none of unread, read"),
                (
                    "at",
                    "\"x\" is not a position: use one exactly as a write returned it",
                ),
                ("limits", "is not a parameter of this call"),
            ],
        );
        refused("limit=0", &[("limit", "is 0, less than 1")]);
        refused("limit=3&limit=4", &[("limit", "stands twice")]);
        refused(
            "before=9223372036854775808",
            &[(
                "before",
                "is 9223372036854775808, beyond the largest, 9223372036854775807",
            )],
        );
    }

    #[test]
    fn seconds_may_have_fractions_and_no_sign() {
        let seconds = |text: &str| {
            let mut params = Params::parse(&format!("wait={text}"));
            let wait = params.seconds("wait", Duration::from_secs(30));
            wait.filter(|_| params.errors.is_empty())
        };
        assert_eq!(seconds("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(seconds("30"), Some(Duration::from_secs(30)));
        for text in ["31", "-1", "NaN", "inf", "soon", ""] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
