//! The bulk append: lines of events from services, appended as they stand.
//!
//! No view judges them beforehand. A line that is no event is told so and the others go on; those of one conversation
//! stand in the log in the order of their lines.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidemark_event::{Event, LineError, parse_line};
use tokio::time::Instant;

use super::{AcceptedJson, Written, count};
use crate::{
    app::App,
    problem::{Answer, Kind, Problem, ProblemJson, chain},
    request::{Lines, Query, Service},
};

/// What became of one line.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(as = LineAnswer)]
pub(crate) enum LineAnswer {
    /// The log has it.
    Accepted(AcceptedJson),
    /// It was no event, or the log did not take it.
    Problem(ProblemJson),
}

/// Append events in bulk
///
/// One event a line, as `tidemark produce` takes them: `{"conversation_id": …, "actor": …, "type": …, "payload": {…}}`,
/// with `event_id` and `occurred_at` where they are known. For services. The answer has a line for each line, in
/// order.
#[utoipa::path(
    post,
    path = "/events",
    operation_id = "append_events",
    tag = "Events",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((
        status = 200,
        description = "A line for each line: what the log has, or a problem",
        body = LineAnswer,
        content_type = "application/x-ndjson",
    )),
)]
pub(crate) async fn append(
    State(app): State<Arc<App>>,
    _: Service,
    Query(()): Query<()>,
    Lines(body): Lines,
) -> Answer<Response> {
    let text = match std::str::from_utf8(&body) {
        Ok(text) => text,
        Err(error) => return Err(Problem::field("body", format!("is not UTF-8: {error}"))),
    };
    let most = app.settings.limits.bulk_lines;
    let lines = text.lines().count();
    if lines > most {
        let detail = format!("the body has {lines} lines, more than {most}");
        return Err(Problem::new(Kind::TooLarge, detail));
    }
    let parsed: Vec<Result<Event, LineError>> = text.lines().map(parse_line).collect();
    // In a task of its own: a caller who hangs up does not leave half of it in the log.
    let task = tokio::spawn(async move {
        let began = Instant::now();
        let events: Vec<&Event> = parsed.iter().flatten().collect();
        let mut appended = app.appender.append_all(events).await.into_iter();
        let mut answers = Vec::with_capacity(parsed.len());
        for line in &parsed {
            answers.push(match line {
                Err(error) => LineAnswer::Problem(no_event(error).into_json()),
                Ok(event) => match appended.next() {
                    Some(outcome) => {
                        count(&outcome, began.elapsed());
                        answer(event, outcome)
                    }
                    None => LineAnswer::Problem(Problem::internal().into_json()),
                },
            });
        }
        answers
    });
    let answers = task.await.map_err(|_| Problem::internal())?;
    Ok(lines_of(&answers))
}

fn answer(
    event: &Event,
    outcome: Result<tidemark_event::Position, crate::append::AppendError>,
) -> LineAnswer {
    match outcome {
        Ok(position) => LineAnswer::Accepted(AcceptedJson::from(Written {
            event_id: event.id,
            position,
        })),
        Err(error) => LineAnswer::Problem(Problem::append(event.id, &error).into_json()),
    }
}

fn no_event(error: &LineError) -> Problem {
    match error {
        LineError::Json { .. } => Problem::field("line", chain(error)),
        LineError::Missing { field } => Problem::field(field, "is missing"),
        LineError::Unknown { field, of } => {
            Problem::field(field, format!("is not a field of {of}"))
        }
        LineError::UnknownType { .. } => Problem::field("type", error.to_string()),
        LineError::Invalid { field, reason } => Problem::field(field, reason),
        LineError::Limit(limit) => limit.clone().into(),
    }
}

fn lines_of(answers: &[LineAnswer]) -> Response {
    let mut body = Vec::new();
    for answer in answers {
        // An answer is text and numbers: it always has a JSON form.
        body.extend(serde_json::to_vec(answer).unwrap_or_default());
        body.push(b'\n');
    }
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_event_is_told_by_field() {
        for (line, field) in [
            ("{}", "conversation_id"),
            ("x", "line"),
            (
                r#"{"conversation_id": "g1", "actor": "bo", "type": "Sent", "payload": {}}"#,
                "type",
            ),
            (
                r#"{"conversation_id": "g1", "actor": "bo", "type": "MessageRecalled", "payload": {"seq": -1}}"#,
                "payload.seq",
            ),
            (
                r#"{"conversation_id": "g1", "actor": "bo", "type": "HistoryCleared", "payload": {}, "at": 1}"#,
                "at",
            ),
        ] {
            let problem = no_event(&parse_line(line).unwrap_err()).into_json();
            let problem = serde_json::to_value(&problem).unwrap();
            assert_eq!(problem["errors"][0]["field"], field, "{problem}");
            assert_eq!(problem["status"], 400);
        }
    }
}
