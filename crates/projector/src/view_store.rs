//! What a worker asks of the store: the seam where a simulation puts a store of its own.
//!
//! Every call is one attempt. Which failures are worth another one the error tells ([`StoreError::is_transient`]);
//! for how long is the worker's to decide.

use std::future::Future;

use tidemark_event::{ConversationId, Partition};
use tidemark_fold::{
    Changes, GenerationSettings, LogSettings, Need, PieceNo, View, inbox::Inbox, roaming::Roaming,
    sessions::Sessions,
};
use tidemark_store::{Checkpoint, Generation, Loaded, Refusal, StoreError, StoredView, Written};

/// Parts of conversations to be loaded.
pub type Wanted<V> = Vec<(
    ConversationId,
    Need<<V as View>::RowKey, <V as View>::PieceKey>,
)>;

/// One generation of one view, as a worker reads and writes it.
pub trait ViewStore<V: View>: Clone + Send + Sync + 'static {
    /// Settings of the log.
    fn log_settings(&self) -> LogSettings;

    /// Settings of the generation.
    fn settings(&self) -> GenerationSettings;

    /// Where the view stands in a partition; none where it has not begun.
    fn checkpoint(
        &self,
        partition: Partition,
    ) -> impl Future<Output = Result<Option<Checkpoint>, StoreError>> + Send;

    /// Loads parts of conversations.
    fn load(
        &self,
        partition: Partition,
        wanted: Wanted<V>,
    ) -> impl Future<Output = Result<Loaded<V>, StoreError>> + Send;

    /// The first step of a flush: rows.
    fn write_rows(
        &self,
        partition: Partition,
        changes: &[(ConversationId, Changes<V>)],
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Beside the rows: refusals, where the view keeps them for senders.
    fn write_refusals(
        &self,
        refusals: &[Refusal],
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// The second step: members, accepted ids, the view's own pieces.
    fn write_pieces(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// The third step: heads.
    fn write_heads(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// The last step: the checkpoint.
    fn write_checkpoint(
        &self,
        partition: Partition,
        checkpoint: &Checkpoint,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;

    /// Once the checkpoint is acknowledged: dedupe pieces that have left the window.
    fn delete_dedupe_pieces(
        &self,
        pieces: &[(ConversationId, PieceNo)],
        at: &Checkpoint,
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}

impl<V: StoredView + KeepRefusals> ViewStore<V> for Generation<V> {
    fn log_settings(&self) -> LogSettings {
        *self.log_settings()
    }

    fn settings(&self) -> GenerationSettings {
        *self.settings()
    }

    async fn checkpoint(&self, partition: Partition) -> Result<Option<Checkpoint>, StoreError> {
        self.checkpoint(partition).await
    }

    async fn load(&self, partition: Partition, wanted: Wanted<V>) -> Result<Loaded<V>, StoreError> {
        self.load(partition, wanted).await
    }

    async fn write_rows(
        &self,
        partition: Partition,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_rows(partition, changes).await
    }

    async fn write_refusals(&self, refusals: &[Refusal]) -> Result<Written, StoreError> {
        V::keep(self, refusals).await
    }

    async fn write_pieces(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_pieces(changes).await
    }

    async fn write_heads(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_heads(changes).await
    }

    async fn write_checkpoint(
        &self,
        partition: Partition,
        checkpoint: &Checkpoint,
    ) -> Result<Written, StoreError> {
        self.write_checkpoint(partition, checkpoint).await
    }

    async fn delete_dedupe_pieces(
        &self,
        pieces: &[(ConversationId, PieceNo)],
        at: &Checkpoint,
    ) -> Result<Written, StoreError> {
        self.delete_dedupe_pieces(pieces, at).await
    }
}

/// Whether a view keeps refusals, for their senders to be told: roaming does, so that one view answers for all.
pub trait KeepRefusals: StoredView {
    /// Writes refusals, or nothing.
    fn keep(
        generation: &Generation<Self>,
        refusals: &[Refusal],
    ) -> impl Future<Output = Result<Written, StoreError>> + Send;
}

impl KeepRefusals for Roaming {
    async fn keep(
        generation: &Generation<Self>,
        refusals: &[Refusal],
    ) -> Result<Written, StoreError> {
        generation.write_refusals(refusals).await
    }
}

impl KeepRefusals for Sessions {
    async fn keep(_: &Generation<Self>, _: &[Refusal]) -> Result<Written, StoreError> {
        Ok(Written::default())
    }
}

impl KeepRefusals for Inbox {
    async fn keep(_: &Generation<Self>, _: &[Refusal]) -> Result<Written, StoreError> {
        Ok(Written::default())
    }
}
