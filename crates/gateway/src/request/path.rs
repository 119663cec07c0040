//! What a path names: a conversation, and a message in it.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use tidemark_event::{ConversationId, Seq};

use super::query::parse_seq;
use crate::problem::{Answer, Problem};

/// The conversation that a path names.
#[derive(Debug)]
pub(crate) struct InConversation(pub(crate) ConversationId);

/// The message that a path names. Its seq may be one that no message has.
#[derive(Debug)]
pub(crate) struct InMessage(pub(crate) ConversationId, pub(crate) Seq);

impl<S: Send + Sync> FromRequestParts<S> for InConversation {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let params = params(parts, state).await?;
        conversation(&params).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InMessage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let params = params(parts, state).await?;
        let seq = named(&params, "seq").ok_or_else(Problem::internal)?;
        let seq = parse_seq(seq).map_err(|problem| Problem::field("seq", problem))?;
        Ok(Self(conversation(&params)?, seq))
    }
}

async fn params<S: Send + Sync>(parts: &mut Parts, state: &S) -> Answer<RawPathParams> {
    // Refuses what is not UTF-8 once its percent signs are read.
    RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|error| Problem::field("path", error.to_string()))
}

fn conversation(params: &RawPathParams) -> Answer<ConversationId> {
    let text = named(params, "conversation_id").ok_or_else(Problem::internal)?;
    ConversationId::new(text).map_err(|error| Problem::field("conversation_id", error.to_string()))
}

fn named<'p>(params: &'p RawPathParams, name: &str) -> Option<&'p str> {
    params
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}
