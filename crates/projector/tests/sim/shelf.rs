//! Reads a stored view back by the production readers, whole, so that it can be held against the naive model.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use tidemark_event::ConversationId;
use tidemark_fold::{
    Head, View,
    inbox::{Inbox, InboxKey, InboxRow},
    roaming::Roaming,
    sessions::{Block, BlockNo, Sessions},
};
use tidemark_model::Logged;
use tidemark_projector::KeepRefusals;
use tidemark_proof::{Checked, Shelf};
use tidemark_store::{Generation, StoredView, TokenRange};

use crate::workload::PartitionLog;

type Rows<V> = BTreeMap<(ConversationId, <V as View>::RowKey), <V as View>::Row>;
type Pieces<V> = BTreeMap<<V as View>::PieceKey, <V as View>::Piece>;

/// A view that can be simulated.
pub(crate) trait SimView: Checked + StoredView + KeepRefusals {
    /// All its rows.
    async fn rows(generation: &Generation<Self>) -> Rows<Self>;

    /// All pieces of its own of a conversation.
    async fn pieces(
        generation: &Generation<Self>,
        conversation: &ConversationId,
        head: &Head<Self::Extra>,
    ) -> Pieces<Self>;
}

/// What is stored of the conversations of one partition.
pub(crate) async fn shelf_of<V: SimView>(
    generation: &Generation<V>,
    log: &PartitionLog,
) -> Shelf<V> {
    let is_here = |id: &ConversationId| {
        let of = |logged: &Logged| logged.event.conversation == *id;
        log.logged.iter().any(of)
    };
    let mut shelf = Shelf::<V>::default();
    let heads: Vec<_> = generation
        .scan_heads([TokenRange::ALL])
        .try_collect()
        .await
        .unwrap();
    shelf.heads = heads.into_iter().filter(|(id, _)| is_here(id)).collect();
    let members: Vec<_> = generation
        .scan_members([TokenRange::ALL])
        .try_collect()
        .await
        .unwrap();
    for of in members.into_iter().filter(|of| is_here(&of.conversation)) {
        shelf.members.insert((of.conversation, of.user), of.member);
    }
    let rows = V::rows(generation).await;
    shelf.rows = rows
        .into_iter()
        .filter(|((id, _), _)| is_here(id))
        .collect();
    for (id, head) in &shelf.heads {
        for (key, piece) in V::pieces(generation, id, head).await {
            shelf.pieces.insert((id.clone(), key), piece);
        }
    }
    shelf
}

impl SimView for Roaming {
    async fn rows(generation: &Generation<Self>) -> Rows<Self> {
        let all: Vec<_> = generation
            .scan_messages([TokenRange::ALL])
            .try_collect()
            .await
            .unwrap();
        all.into_iter()
            .map(|of| ((of.conversation, of.stored.message.seq), of.stored))
            .collect()
    }

    async fn pieces(_: &Generation<Self>, _: &ConversationId, _: &Head<()>) -> Pieces<Self> {
        Pieces::<Self>::new()
    }
}

impl SimView for Sessions {
    async fn rows(generation: &Generation<Self>) -> Rows<Self> {
        let all: Vec<_> = generation
            .scan_sessions([TokenRange::ALL])
            .try_collect()
            .await
            .unwrap();
        all.into_iter()
            .map(|of| ((of.conversation, of.user), of.session))
            .collect()
    }

    async fn pieces(
        generation: &Generation<Self>,
        conversation: &ConversationId,
        head: &Head<Self::Extra>,
    ) -> Pieces<Self> {
        let size = generation.settings().block_seqs;
        let all = BlockNo::covering(tidemark_event::Seq::new(1), head.last_seq, size);
        let stored: Vec<Block> = generation.blocks(conversation, all).await.unwrap();
        stored.into_iter().map(|block| (block.no, block)).collect()
    }
}

impl SimView for Inbox {
    async fn rows(generation: &Generation<Self>) -> Rows<Self> {
        let copies: Vec<_> = generation
            .scan_copies([TokenRange::ALL])
            .try_collect()
            .await
            .unwrap();
        let copies = copies.into_iter().map(|of| {
            let key = InboxKey::Copy {
                user: of.user,
                period: of.period,
                seq: of.stored.message.seq,
            };
            ((of.conversation, key), InboxRow::Copy(of.stored))
        });
        let places: Vec<_> = generation
            .scan_places([TokenRange::ALL])
            .try_collect()
            .await
            .unwrap();
        let places = places.into_iter().map(|of| {
            let key = InboxKey::Place { user: of.user };
            ((of.conversation, key), InboxRow::Place(of.place))
        });
        copies.chain(places).collect()
    }

    async fn pieces(
        _: &Generation<Self>,
        _: &ConversationId,
        _: &Head<Self::Extra>,
    ) -> Pieces<Self> {
        Pieces::<Self>::new()
    }
}
