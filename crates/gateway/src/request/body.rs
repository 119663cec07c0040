//! The body of a call: a JSON object with known fields, or lines of them.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use serde::de::DeserializeOwned;

use crate::problem::{Answer, Kind, Problem};

/// A body that is one JSON object: `Body<T>` as the last argument of a handler. null is the same as absent where a
/// field may be absent.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

/// A body of lines, as it came.
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) Bytes);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        check_type(request.headers(), &["application/json"])?;
        let bytes = bytes(request, state).await?;
        parse(&bytes).map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for Lines {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        const TYPES: [&str; 6] = [
            "application/x-ndjson",
            "application/ndjson",
            "application/jsonl",
            "application/json",
            "application/octet-stream",
            "text/plain",
        ];
        check_type(request.headers(), &TYPES)?;
        bytes(request, state).await.map(Self)
    }
}

/// Refuses a body that says it is something else. One that says nothing is taken at its word.
fn check_type(headers: &HeaderMap, types: &[&str]) -> Answer<()> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = value.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if types
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
    {
        return Ok(());
    }
    Err(Problem::new(
        Kind::UnsupportedMediaType,
        format!("the body is {essence:?}; this call takes {}", types[0]),
    ))
}

async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Answer<Bytes> {
    Bytes::from_request(request, state).await.map_err(|error| {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Problem::new(Kind::TooLarge, "the body is larger than this call takes")
        } else {
            Problem::new(
                Kind::InvalidRequest,
                "the body could not be read to its end",
            )
        }
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let body = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let field = if matches!(path.as_str(), "." | "?") {
            "body".to_owned()
        } else {
            path
        };
        Problem::field(field, error.into_inner().to_string())
    })?;
    match deserializer.end() {
        Ok(()) => Ok(body),
        Err(error) => Err(Problem::field("body", error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body as HttpBody, extract::DefaultBodyLimit};
    use serde::Deserialize;
    use tidemark_event::UserId;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Members {
        add: Vec<UserId>,
        title: Option<String>,
    }

    async fn read(content_type: Option<&str>, body: &str) -> Answer<Members> {
        let mut request = Request::builder();
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let mut request = request.body(HttpBody::from(body.to_owned())).unwrap();
        DefaultBodyLimit::apply(DefaultBodyLimit::max(64), &mut request);
        Body::from_request(request, &())
            .await
            .map(|Body(body)| body)
    }

    fn json(problem: Problem) -> String {
        let document = serde_json::to_value(problem.into_json()).unwrap();
        format!(
            "{} {}",
            document["status"],
            document["detail"].as_str().unwrap()
        )
    }

    #[tokio::test]
    async fn a_json_body_is_read_whatever_its_charset_says() {
        let expected = Members {
            add: vec![UserId::new("bo").unwrap()],
            title: None,
        };
        for content_type in [
            None,
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
        ] {
            let body = read(content_type, r#"{"add": ["bo"], "title": null}"#)
                .await
                .unwrap();
            assert_eq!(body, expected);
        }
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        for (body, expected) in [
            (
                r#"{"add": ["bo", ""]}"#,
                "400 add[1]: a user id must not be empty",
            ),
            (r#"{"add": [], "ad": 1}"#, "400 ad: unknown field `ad`"),
            (r#"{"title": "x"}"#, "400 body: missing field `add`"),
            (r#"{"add": []} x"#, "400 body: trailing characters"),
            ("{", "400 body: EOF while parsing"),
        ] {
            let problem = json(read(None, body).await.unwrap_err());
            assert!(problem.starts_with(expected), "{body}: {problem}");
        }
        let problem = json(read(Some("text/html"), "{}").await.unwrap_err());
        assert_eq!(
            problem,
            r#"415 the body is "text/html"; this call takes application/json"#
        );
        let problem = json(read(None, &" ".repeat(65)).await.unwrap_err());
        assert_eq!(problem, "413 the body is larger than this call takes");
    }
}
