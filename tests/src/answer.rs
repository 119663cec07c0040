//! An answer over HTTP, and what a test may say of it.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

/// What a call was answered with, in the scene's own names.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The call, for messages.
    pub call: String,
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, where it is JSON; else null.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Answer {
    /// The answer has this status. Returns its body.
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert!(
            self.status == status,
            "{}: expected {status}, was answered {} {}",
            self.call,
            self.status,
            self.text
        );
        self.body
    }

    /// The answer is a problem document of this status and kind, as RFC 9457 wants it. Returns the document.
    #[track_caller]
    pub fn is_problem(self, status: u16, kind: &str) -> Value {
        let text = format!("{}: was answered {} {}", self.call, self.status, self.text);
        assert!(self.status == status, "expected {status} {kind}; {text}");
        let content_type = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        assert_eq!(content_type, Some("application/problem+json"), "{text}");
        let (found, problem) = (&self.body["type"], &self.body);
        let last = found.as_str().and_then(|found| found.rsplit(':').next());
        assert_eq!(last, Some(kind), "the kind of problem; {text}");
        assert_eq!(
            problem["status"], status,
            "the status in the document; {text}"
        );
        for field in ["title", "detail"] {
            let says = problem[field].as_str().unwrap_or_default();
            assert!(!says.is_empty(), "a problem without {field}; {text}");
        }
        self.body
    }

    /// The answer is a 400 that names this field.
    #[track_caller]
    pub fn is_wrong_in(self, field: &str) {
        let text = self.text.clone();
        let problem = self.is_problem(400, "invalid_request");
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let names_it = errors.iter().any(|error| error["field"] == field);
        assert!(names_it, "{field} is not named as wrong: {text}");
    }

    /// Whether the answer says that the views were not there in time.
    pub fn is_stale(&self) -> bool {
        self.header("tidemark-stale") == Some("true")
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
