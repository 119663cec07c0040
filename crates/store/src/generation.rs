//! One generation of one view: what its projector loads and writes, and what all views' readers ask.
//!
//! The order of steps is the projector's (rule 4: rows, pieces, heads, checkpoint); each step here is done when it
//! returns, acknowledged at LOCAL_QUORUM. State is read in the reverse order, heads, then pieces, then rows, also
//! within one call: so while a slower worker is still writing, pieces may be ahead of a head and rows ahead of both,
//! which folds expect, but never behind.

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, Stream, StreamExt, stream};
use tidemark_event::{ConversationId, EventId, Partition, UserId};
use tidemark_fold::{
    AcceptedId, Changes, GenerationSettings, Head, LogSettings, Member, Need, PieceNo, Supply,
};

use crate::{
    Checkpoint, FoldVersion, GenerationNo, MemberOf, TokenRange,
    dedupe::Dedupe,
    error::StoreError,
    heads::Heads,
    layout::{Loaded, NeedOf, StoredView, by_partition},
    link::{Job, Link},
    members::Members,
    schema::Names,
    store::{OpenError, Store},
    write::Written,
};

/// One generation of one view. A clone shares statements and session.
#[derive(Debug)]
pub struct Generation<V: StoredView>(Arc<Prepared<V>>);

#[derive(Debug)]
struct Prepared<V: StoredView> {
    store: Store,
    no: GenerationNo,
    settings: GenerationSettings,
    log: LogSettings,
    heads: Heads,
    members: Members,
    dedupe: Dedupe,
    own: V::Tables,
}

impl<V: StoredView> Clone for Generation<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Store {
    /// Opens a generation for a fold of version `ours`, and prepares its statements.
    ///
    /// # Errors
    /// [`OpenError`], where there is no such generation, or another fold version builds it.
    pub async fn open<V: StoredView>(
        &self,
        no: GenerationNo,
        ours: FoldVersion,
    ) -> Result<Generation<V>, OpenError> {
        let view = V::NAME;
        let log = self.log_settings().await?.ok_or(OpenError::NoLog)?;
        let recorded = self.generations(view).await?;
        let generation = recorded
            .into_iter()
            .find(|generation| generation.no == no && generation.state.is_usable())
            .ok_or(OpenError::NoGeneration { view, no })?;
        if generation.fold_version != ours {
            return Err(OpenError::OtherFoldVersion {
                view,
                no,
                built_by: generation.fold_version,
                ours,
            });
        }
        let names = Names::new(self.keyspace(), view, no);
        let link = self.link();
        let prepared = Prepared {
            store: self.clone(),
            no,
            settings: generation.settings,
            log: log.settings,
            heads: Heads::prepare(link, &names).await?,
            members: Members::prepare(link, &names).await?,
            dedupe: Dedupe::prepare(link, &names).await?,
            own: V::prepare(link, &names).await?,
        };
        Ok(Generation(Arc::new(prepared)))
    }
}

/// What it is.
impl<V: StoredView> Generation<V> {
    /// Its number.
    pub fn no(&self) -> GenerationNo {
        self.0.no
    }

    /// What it is built with.
    pub fn settings(&self) -> &GenerationSettings {
        &self.0.settings
    }

    /// The settings of its log.
    pub fn log_settings(&self) -> &LogSettings {
        &self.0.log
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn link(&self) -> &Link {
        self.0.store.link()
    }

    pub(crate) fn own(&self) -> &V::Tables {
        &self.0.own
    }
}

/// For the projector.
impl<V: StoredView> Generation<V> {
    /// How far the view has come in a partition of the log: nowhere yet, if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn checkpoint(&self, partition: Partition) -> Result<Option<Checkpoint>, StoreError> {
        let checkpoints = &self.0.store.catalog().await?.checkpoints;
        checkpoints
            .read(self.link(), (V::NAME, self.0.no), partition)
            .await
    }

    /// Reads parts of conversations of one partition of the log, and answers every need once (also where it is named
    /// twice), in no order but that heads come first. Keys of one table partition share a request, a hundred at most.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was changed, so it may be tried again.
    pub async fn load(
        &self,
        partition: Partition,
        mut needs: Vec<(ConversationId, NeedOf<V>)>,
    ) -> Result<Loaded<V>, StoreError> {
        let link = self.link();
        needs.sort_unstable();
        needs.dedup();
        let wanted = Wanted::<V>::sort(needs);
        let mut loaded = Vec::new();
        loaded.extend(link.run(self.head_loads(wanted.heads)).await?);

        let mut pieces = self.dedupe_loads(wanted.dedupe);
        pieces.extend(self.member_loads(wanted.members));
        pieces.extend(self.all_member_loads(wanted.all_members));
        pieces.extend(V::piece_loads(self, wanted.pieces));
        loaded.extend(link.run(pieces).await?);

        loaded.extend(link.run(V::row_loads(self, partition, wanted.rows)).await?);
        Ok(loaded.into_iter().flatten().collect())
    }

    /// Writes the changed rows.
    ///
    /// # Errors
    /// [`StoreError`]: some may have been written. To write all again changes nothing in those.
    pub async fn write_rows(
        &self,
        partition: Partition,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write(V::row_writes(self, partition, changes)?).await
    }

    /// Writes the changed pieces of state: members, accepted ids, the view's own.
    ///
    /// # Errors
    /// As of [`Self::write_rows`].
    pub async fn write_pieces(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        let link = self.link();
        let members = changes.iter().flat_map(|(conversation, changes)| {
            let members = changes.members.iter();
            members.map(move |(user, member)| (conversation, user, member))
        });
        let ids = changes.iter().flat_map(|(conversation, changes)| {
            let ids = changes.ids.iter();
            ids.map(move |(piece, id)| (conversation, *piece, id))
        });
        let mut jobs = self.0.members.writes(link, members)?;
        jobs.extend(self.0.dedupe.writes(link, ids)?);
        jobs.extend(V::piece_writes(self, changes)?);
        self.write(jobs).await
    }

    /// Writes the changed heads.
    ///
    /// # Errors
    /// As of [`Self::write_rows`].
    pub async fn write_heads(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        let heads = changes
            .iter()
            .filter_map(|(conversation, changes)| Some((conversation, changes.head.as_ref()?)));
        self.write(self.0.heads.writes(self.link(), heads)?).await
    }

    /// Writes a checkpoint. One that is behind the stored one changes nothing (rule 3).
    ///
    /// # Errors
    /// As of [`Self::write_rows`].
    pub async fn write_checkpoint(
        &self,
        partition: Partition,
        checkpoint: &Checkpoint,
    ) -> Result<Written, StoreError> {
        let checkpoints = &self.0.store.catalog().await?.checkpoints;
        checkpoints
            .write(self.link(), (V::NAME, self.0.no), partition, checkpoint)
            .await
    }

    /// Deletes dedupe pieces that have left the window by the acknowledged checkpoint `at`.
    ///
    /// # Errors
    /// As of [`Self::write_rows`]. A piece that is not deleted decides nothing and only takes room.
    pub async fn delete_dedupe_pieces(
        &self,
        pieces: &[(ConversationId, PieceNo)],
        at: &Checkpoint,
    ) -> Result<Written, StoreError> {
        self.write(self.0.dedupe.deletes(self.link(), pieces, at)?)
            .await
    }

    pub(crate) async fn write(&self, jobs: Vec<Job<'_, Written>>) -> Result<Written, StoreError> {
        Ok(self.link().run(jobs).await?.into_iter().sum())
    }
}

/// For readers of any view.
impl<V: StoredView> Generation<V> {
    /// How far the view has come, in every partition of the log it has begun with.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn checkpoints(&self) -> Result<BTreeMap<Partition, Checkpoint>, StoreError> {
        self.0.store.checkpoints(V::NAME, self.0.no).await
    }

    /// A conversation's head, if it exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn head(
        &self,
        conversation: &ConversationId,
    ) -> Result<Option<Head<V::Extra>>, StoreError> {
        self.0.heads.read(self.link(), conversation).await
    }

    /// The heads of many conversations, those that exist: a request each.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn heads(
        &self,
        conversations: &[ConversationId],
    ) -> Result<BTreeMap<ConversationId, Head<V::Extra>>, StoreError> {
        let jobs = conversations
            .iter()
            .map(|conversation| {
                async move { Ok((conversation, self.head(conversation).await?)) }.boxed()
            })
            .collect();
        let heads = self.link().run(jobs).await?;
        Ok(heads
            .into_iter()
            .filter_map(|(conversation, head)| Some((conversation.clone(), head?)))
            .collect())
    }

    /// What one user may see of a conversation, if they ever were a member.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn member(
        &self,
        conversation: &ConversationId,
        user: &UserId,
    ) -> Result<Option<Member>, StoreError> {
        let users = std::slice::from_ref(user);
        let mut found = self
            .0
            .members
            .read_some(self.link(), conversation, users)
            .await?;
        Ok(found.remove(user))
    }

    /// At most `limit` present members in the order of their ids, beginning after `after`. Fewer only at the end.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn members_page(
        &self,
        conversation: &ConversationId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Result<Vec<(UserId, Member)>, StoreError> {
        self.0
            .members
            .read_present(self.link(), conversation, after, limit)
            .await
    }

    /// What these dedupe pieces of a conversation say of an event id. A head's index names the live pieces.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn accepted(
        &self,
        conversation: &ConversationId,
        pieces: &[PieceNo],
        id: EventId,
    ) -> Result<Vec<AcceptedId>, StoreError> {
        let link = self.link();
        let jobs = pieces
            .iter()
            .map(|piece| self.0.dedupe.read_id(link, conversation, *piece, id))
            .collect();
        Ok(link.run(jobs).await?.into_iter().flatten().collect())
    }

    /// Every head in these ranges of tokens, a page in memory at a time.
    pub fn scan_heads(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<(ConversationId, Head<V::Extra>), StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.0.heads.scan(self.link(), range))
    }

    /// Every member, present or former, in these ranges of tokens, a page in memory at a time.
    pub fn scan_members(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<MemberOf, StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.0.members.scan(self.link(), range))
    }
}

/// Needs, by where they are read.
struct Wanted<V: StoredView> {
    heads: Vec<ConversationId>,
    dedupe: Vec<(ConversationId, PieceNo)>,
    members: Vec<(ConversationId, UserId)>,
    all_members: Vec<ConversationId>,
    pieces: Vec<(ConversationId, V::PieceKey)>,
    rows: Vec<(ConversationId, V::RowKey)>,
}

impl<V: StoredView> Wanted<V> {
    fn sort(needs: Vec<(ConversationId, NeedOf<V>)>) -> Self {
        let mut wanted = Self {
            heads: Vec::new(),
            dedupe: Vec::new(),
            members: Vec::new(),
            all_members: Vec::new(),
            pieces: Vec::new(),
            rows: Vec::new(),
        };
        for (conversation, need) in needs {
            match need {
                Need::Head => wanted.heads.push(conversation),
                Need::Dedupe(piece) => wanted.dedupe.push((conversation, piece)),
                Need::Member(user) => wanted.members.push((conversation, user)),
                Need::AllMembers => wanted.all_members.push(conversation),
                Need::Piece(key) => wanted.pieces.push((conversation, key)),
                Need::Row(key) => wanted.rows.push((conversation, key)),
            }
        }
        wanted
    }
}

impl<V: StoredView> Generation<V> {
    fn head_loads(&self, conversations: Vec<ConversationId>) -> Vec<Job<'_, Loaded<V>>> {
        let load = |conversation: ConversationId| {
            async move {
                let head = self.head(&conversation).await?;
                Ok(vec![(conversation, Supply::Head(head))])
            }
            .boxed()
        };
        conversations.into_iter().map(load).collect()
    }

    fn dedupe_loads(&self, pieces: Vec<(ConversationId, PieceNo)>) -> Vec<Job<'_, Loaded<V>>> {
        let load = |(conversation, piece): (ConversationId, PieceNo)| {
            async move {
                let dedupe = &self.0.dedupe;
                let ids = dedupe.read_piece(self.link(), &conversation, piece).await?;
                Ok(vec![(conversation, Supply::Dedupe(piece, ids))])
            }
            .boxed()
        };
        pieces.into_iter().map(load).collect()
    }

    fn member_loads(&self, members: Vec<(ConversationId, UserId)>) -> Vec<Job<'_, Loaded<V>>> {
        let load = |(conversation, users): (ConversationId, Vec<UserId>)| {
            async move {
                let members = &self.0.members;
                let mut found = members
                    .read_some(self.link(), &conversation, &users)
                    .await?;
                Ok(users
                    .into_iter()
                    .map(|user| {
                        let member = found.remove(&user);
                        (conversation.clone(), Supply::Member(user, member))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(members).into_iter().map(load).collect()
    }

    fn all_member_loads(&self, conversations: Vec<ConversationId>) -> Vec<Job<'_, Loaded<V>>> {
        let load = |conversation: ConversationId| {
            async move {
                let members = self.0.members.read_all(self.link(), &conversation).await?;
                Ok(vec![(conversation, Supply::AllMembers(members))])
            }
            .boxed()
        };
        conversations.into_iter().map(load).collect()
    }
}
