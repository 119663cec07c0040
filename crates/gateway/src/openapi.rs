//! The OpenAPI document: what the calls say of themselves, and what all of them have in common.

use utoipa::{
    OpenApi,
    openapi::{
        self, ContentBuilder, HeaderBuilder, HttpMethod, ObjectBuilder, Ref, RefOr, Required,
        ResponseBuilder,
        path::{Operation, ParameterBuilder, ParameterIn, PathItem},
        schema::{ArrayBuilder, Type},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

use crate::problem::{FieldError, ProblemJson};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidemark",
        description = "Appends events to the log of a messaging system, and serves the views of it. Every call that fails \
            answers an RFC 9457 problem document, whose `type` says what is wrong.",
        license(name = "Apache-2.0"),
    ),
    components(schemas(ProblemJson, FieldError)),
    tags(
        (name = "Conversations", description = "What there is, and who belongs to it"),
        (name = "Messages", description = "Sending, changing and reading messages"),
        (name = "Sessions", description = "A user's list of conversations, and what is unread"),
        (name = "Inbox", description = "What a device has not stored yet"),
        (name = "Events", description = "Appending in bulk"),
    )
)]
struct Common;

/// The whole document, from what the calls say of themselves.
pub(crate) fn complete(calls: openapi::OpenApi) -> openapi::OpenApi {
    let mut document = Common::openapi();
    document.merge(calls);
    let components = document.components.get_or_insert_default();
    for (name, header, description) in [
        (
            "user",
            "X-User",
            "Who calls, as an authenticating edge says",
        ),
        (
            "service",
            "X-Service",
            "`true` where a service calls; then `?actor=` names as whom",
        ),
    ] {
        let key = ApiKey::Header(ApiKeyValue::with_description(header, description));
        components.add_security_scheme(name, SecurityScheme::ApiKey(key));
    }
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            complete_operation(path, method, operation);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Delete, &mut item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds what every call takes and may answer.
fn complete_operation(path: &str, method: HttpMethod, operation: &mut Operation) {
    let none: [&str; 0] = [];
    operation.security = Some(vec![
        SecurityRequirement::new("user", none),
        SecurityRequirement::new("service", none),
    ]);
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    let mut parameters = operation.parameters.take().unwrap_or_default();
    let parameter = |name: &str| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
    };
    parameters.push(
        parameter("actor")
            .required(Required::False)
            .description(Some("As whom a service acts"))
            .schema(Some(text.clone()))
            .build()
            .into(),
    );
    let is_read = method == HttpMethod::Get;
    if is_read {
        let at = "A position that the views must have reached, as a write returned it; may repeat";
        parameters.push(
            parameter("at")
                .required(Required::False)
                .description(Some(at))
                .schema(Some(ArrayBuilder::new().items(text)))
                .build()
                .into(),
        );
        for (status, answer) in &mut operation.responses.responses {
            if let (true, RefOr::T(answer)) = (status == "200", answer) {
                let stale = HeaderBuilder::new()
                    .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
                    .description(Some("`true` where a view was not there in time"));
                answer
                    .headers
                    .insert("Tidemark-Stale".to_owned(), stale.build().into());
            }
        }
    }
    operation.parameters = Some(parameters);
    for (status, description) in problems(path, method, operation.request_body.is_some()) {
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
        let answer = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", problem.build())
            .build();
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_owned())
            .or_insert(RefOr::T(answer));
    }
}

/// The problems that a call may answer.
fn problems(
    path: &str,
    method: HttpMethod,
    has_body: bool,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_in_conversation = path.contains("{conversation_id}") || path.ends_with("/inbox/ack");
    let is_creation =
        method == HttpMethod::Put && path.ends_with("/conversations/{conversation_id}");
    [
        (
            true,
            "400",
            "Something in the request is not as the call takes it",
        ),
        (true, "401", "Nobody says who calls"),
        (true, "403", "The caller may not do this"),
        (
            is_in_conversation,
            "404",
            "There is no such conversation or message",
        ),
        (is_creation, "409", "It exists with other content"),
        (has_body, "413", "The body is too large"),
        (
            has_body,
            "415",
            "The body is not of a type that the call takes",
        ),
        (true, "500", "The gateway failed"),
        (
            true,
            "503",
            "The log or a view is not there, or not in time: come back after Retry-After",
        ),
    ]
    .into_iter()
    .filter_map(|(may_be, status, description)| may_be.then_some((status, description)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::routes;

    fn document() -> Value {
        let (_, document) = routes::calls(1, 1).split_for_parts();
        serde_json::from_str(&complete(document).to_json().unwrap()).unwrap()
    }

    #[test]
    fn every_call_of_the_contract_is_there() {
        let document = document();
        let mut calls = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                calls.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let expected = [
            "PUT /v1/conversations/{conversation_id}",
            "PATCH /v1/conversations/{conversation_id}",
            "POST /v1/conversations/{conversation_id}/members",
            "GET /v1/conversations/{conversation_id}/members",
            "POST /v1/conversations/{conversation_id}/messages",
            "GET /v1/conversations/{conversation_id}/messages",
            "PATCH /v1/conversations/{conversation_id}/messages/{seq}",
            "DELETE /v1/conversations/{conversation_id}/messages/{seq}",
            "PUT /v1/conversations/{conversation_id}/read",
            "PUT /v1/conversations/{conversation_id}/unread",
            "PATCH /v1/conversations/{conversation_id}/session",
            "DELETE /v1/conversations/{conversation_id}/history",
            "DELETE /v1/sessions/{conversation_id}",
            "POST /v1/events",
            "GET /v1/sessions",
            "GET /v1/sync",
            "GET /v1/mentions",
            "GET /v1/inbox",
            "PUT /v1/inbox/ack",
        ];
        let expected: BTreeSet<String> = expected.map(str::to_owned).into();
        assert_eq!(calls, expected);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(name)) = fields.get("$ref") {
                        found.insert(name.clone());
                    }
                    fields.values().for_each(|value| references(value, found));
                }
                Value::Array(values) => values.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        assert!(found.contains("#/components/schemas/Problem"));
    }

    #[test]
    fn every_call_says_how_it_may_fail_and_as_whom_it_is_made() {
        for (path, item) in document()["paths"].as_object().unwrap() {
            for (method, call) in item.as_object().unwrap() {
                let responses = call["responses"].as_object().unwrap();
                for status in ["400", "401", "403", "500", "503"] {
                    let problem = &responses[status]["content"]["application/problem+json"];
                    assert!(
                        problem["schema"]["$ref"].is_string(),
                        "{method} {path} {status}"
                    );
                }
                let parameters = call["parameters"].as_array().unwrap();
                let has = |name: &str| parameters.iter().any(|it| it["name"] == name);
                assert!(has("actor"), "{method} {path}");
                assert_eq!(has("at"), method == "get", "{method} {path}");
            }
        }
    }

    #[test]
    fn every_call_has_a_name_of_its_own() {
        let document = document();
        let items = document["paths"].as_object().unwrap().values();
        let calls = items.flat_map(|item| item.as_object().unwrap().values());
        let names: Vec<&str> = calls
            .map(|call| call["operationId"].as_str().unwrap())
            .collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }

    /// The parameters of a call's query are read by hand: the document names them all, and no others.
    #[test]
    fn no_call_takes_what_it_does_not_name() {
        let taken = crate::reads::parameters()
            .into_iter()
            .chain(crate::writes::parameters());
        let document = document();
        for (call, taken) in taken {
            let (method, path) = call.split_once(' ').unwrap();
            let call = &document["paths"][path][method.to_lowercase()];
            let named = call["parameters"].as_array().unwrap().iter();
            let named: BTreeSet<&str> = named
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let taken: BTreeSet<&str> = taken.iter().map(String::as_str).collect();
            assert_eq!(named, taken, "{method} {path}");
        }
    }
}
