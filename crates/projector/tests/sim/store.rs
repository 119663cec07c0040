//! The store and the dead-letter topic as a simulated worker has them: every call is a request to the world.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use scylla::errors::ExecutionError;
use tidemark_event::{ConversationId, Partition};
use tidemark_fold::{Changes, GenerationSettings, LogSettings, PieceNo, View};
use tidemark_projector::{DeadLetter, DeadLetterError, DeadLetters, ViewStore, Wanted};
use tidemark_proof::{Rules, Step, Write};
use tidemark_store::{Checkpoint, Loaded, Refusal, RequestError, StoreError, Written};
use tokio::sync::oneshot;

use crate::world::{Answer, Failed, Pending, Request, World};

pub(crate) struct SimStore<V: View> {
    pub(crate) world: Arc<Mutex<World<V>>>,
    pub(crate) worker: usize,
    pub(crate) partition: Partition,
    pub(crate) rules: Rules,
}

impl<V: View> Clone for SimStore<V> {
    fn clone(&self) -> Self {
        Self {
            world: self.world.clone(),
            worker: self.worker,
            partition: self.partition,
            rules: self.rules,
        }
    }
}

impl<V: View> SimStore<V> {
    async fn ask(&self, request: Request<V>) -> Result<Answer<V>, Failed> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending {
            worker: self.worker,
            partition: self.partition,
            request,
            answer,
        };
        self.world.lock().unwrap().pending.push(pending);
        answered.await.unwrap_or(Err(Failed))
    }

    async fn write(&self, request: Request<V>) -> Result<Written, StoreError> {
        self.ask(request)
            .await
            .map(|_| Written::default())
            .map_err(timed_out)
    }

    async fn write_step(
        &self,
        step: Step,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        let writes = Write::of(step, changes);
        if writes.is_empty() {
            return Ok(Written::default());
        }
        self.write(Request::Write(writes)).await
    }
}

fn timed_out(_: Failed) -> StoreError {
    let timeout = ExecutionError::RequestTimeout(Duration::from_secs(1));
    StoreError::Request {
        act: "ask",
        table: "the simulated store".to_owned(),
        key: String::new(),
        source: Box::new(RequestError::Execution(timeout)),
    }
}

impl<V: View> ViewStore<V> for SimStore<V> {
    fn log_settings(&self) -> LogSettings {
        self.rules.log
    }

    fn settings(&self) -> GenerationSettings {
        self.rules.generation
    }

    async fn checkpoint(&self, _: Partition) -> Result<Option<Checkpoint>, StoreError> {
        match self.ask(Request::Checkpoint).await.map_err(timed_out)? {
            Answer::Checkpoint(checkpoint) => Ok(checkpoint),
            Answer::Loaded(_) | Answer::Done => panic!("another answer than asked for"),
        }
    }

    async fn load(&self, _: Partition, wanted: Wanted<V>) -> Result<Loaded<V>, StoreError> {
        match self.ask(Request::Load(wanted)).await.map_err(timed_out)? {
            Answer::Loaded(loaded) => Ok(loaded),
            Answer::Checkpoint(_) | Answer::Done => panic!("another answer than asked for"),
        }
    }

    async fn write_rows(
        &self,
        _: Partition,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_step(Step::Rows, changes).await
    }

    async fn write_refusals(&self, _: &[Refusal]) -> Result<Written, StoreError> {
        Ok(Written::default())
    }

    async fn write_pieces(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_step(Step::Pieces, changes).await
    }

    async fn write_heads(
        &self,
        changes: &[(ConversationId, Changes<V>)],
    ) -> Result<Written, StoreError> {
        self.write_step(Step::Heads, changes).await
    }

    async fn write_checkpoint(
        &self,
        _: Partition,
        checkpoint: &Checkpoint,
    ) -> Result<Written, StoreError> {
        self.write(Request::WriteCheckpoint(*checkpoint)).await
    }

    async fn delete_dedupe_pieces(
        &self,
        pieces: &[(ConversationId, PieceNo)],
        at: &Checkpoint,
    ) -> Result<Written, StoreError> {
        self.write(Request::DeletePieces(pieces.to_vec(), *at))
            .await
    }
}

impl<V: View> DeadLetters for SimStore<V> {
    async fn send(&self, letters: &[DeadLetter]) -> Result<(), DeadLetterError> {
        let Err(Failed) = self.ask(Request::Letters(letters.to_vec())).await else {
            return Ok(());
        };
        Err(DeadLetterError::Send {
            topic: "the simulated topic".to_owned(),
            partition: self.partition,
            offset: letters[0].record.offset,
            source: rdkafka::error::KafkaError::Canceled,
        })
    }
}
