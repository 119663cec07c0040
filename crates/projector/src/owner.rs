//! The loop that owns a worker's partitions: what is assigned begins, what is revoked comes to rest.

use std::{collections::BTreeMap, sync::Arc};

use rdkafka::consumer::Consumer as _;
use tidemark_event::{LOG_TOPIC, NextOffset, Offset, Partition};
use tidemark_fold::View;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::{
    DeadLetters, Projection, Resume, ViewStore,
    consumer::{GroupEvent, LogConsumer, PartitionQueue, PartitionStatistics},
    partition::PartitionTask,
    projection::describe,
    retry::Attempts,
    worker::{KAFKA_PAUSE, KAFKA_TIMEOUT, Worker},
};

/// A partition at work.
pub(crate) struct Running {
    stop: CancellationToken,
    statistics: watch::Sender<Option<PartitionStatistics>>,
    task: JoinHandle<()>,
}

/// The loop that owns the partitions.
pub(crate) struct Owner<S, D> {
    pub(crate) worker: Worker<S, D>,
    pub(crate) consumer: Arc<LogConsumer>,
    pub(crate) events: mpsc::UnboundedReceiver<GroupEvent>,
    /// Asks the polling thread to leave the group and join it anew.
    pub(crate) rejoin: Arc<Notify>,
    /// Planned and waiting for their queue.
    pub(crate) starting: BTreeMap<Partition, Resume>,
    pub(crate) running: BTreeMap<Partition, Running>,
}

impl<S, D: DeadLetters> Owner<S, D> {
    pub(crate) async fn serve<V>(&mut self, shutdown: CancellationToken)
    where
        V: View,
        S: ViewStore<V>,
    {
        while let Some(event) = self.events.recv().await {
            match event {
                GroupEvent::Assigned { partitions, starts } => {
                    self.worker.status.assigned(partitions.iter().copied());
                    let planned = tokio::select! {
                        () = shutdown.cancelled() => Vec::new(),
                        planned = self.plan::<V>(&partitions) => planned,
                    };
                    let offsets = planned
                        .iter()
                        .map(|(partition, resume)| (*partition, resume.start))
                        .collect();
                    self.starting.extend(planned);
                    // The callback has gone on without an answer: it will not start what it was not told of.
                    if starts.send(offsets).is_err() {
                        self.starting.clear();
                    }
                }
                GroupEvent::Started { partition, queue } => self.start::<V>(partition, queue),
                GroupEvent::Revoked {
                    partitions,
                    at_rest,
                } => {
                    self.stop(&partitions).await;
                    let _ = at_rest.send(());
                }
                GroupEvent::Statistics(known) => {
                    for statistics in known {
                        if let Some(running) = self.running.get(&statistics.partition) {
                            running.statistics.send_replace(Some(statistics));
                        } else {
                            self.worker.status.update(statistics.partition, |status| {
                                status.log_end = statistics.log_end.or(status.log_end)
                            });
                        }
                    }
                }
            }
        }
    }

    /// Reads the checkpoints and decides where each partition goes on. One that cannot goes to the status.
    async fn plan<V>(&self, partitions: &[Partition]) -> Vec<(Partition, Resume)>
    where
        V: View,
        S: ViewStore<V>,
    {
        let plans = partitions.iter().map(|partition| async move {
            let planned = tokio::time::timeout(
                self.worker.settings.assign_deadline,
                self.plan_one::<V>(*partition),
            )
            .await;
            let stopped = match planned {
                Ok(Ok(resume)) => return Some((*partition, resume)),
                Ok(Err(stopped)) => stopped,
                Err(_) => {
                    // The group is not to wait any longer: the next assignment is another attempt.
                    self.rejoin.notify_one();
                    "neither Kafka nor the store told where to go on: joining the group anew"
                        .to_owned()
                }
            };
            error!(view = %V::NAME, %partition, error = stopped, "the partition stands still");
            self.worker
                .status
                .update(*partition, |status| status.stopped = Some(stopped));
            None
        });
        futures::future::join_all(plans)
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    async fn plan_one<V>(&self, partition: Partition) -> Result<Resume, String>
    where
        V: View,
        S: ViewStore<V>,
    {
        let attempts = Attempts::default();
        let store = &self.worker.store;
        let checkpoint = crate::retry::until_done(&attempts, "read the checkpoint", || {
            store.checkpoint(partition)
        })
        .await
        .map_err(|error| describe(&error))?;
        loop {
            let asked = self.consumer.clone();
            let watermarks = tokio::task::spawn_blocking(move || {
                asked.fetch_watermarks(LOG_TOPIC, partition.get(), KAFKA_TIMEOUT)
            });
            match watermarks.await {
                Ok(Ok((start, end))) => {
                    self.worker.status.update(partition, |status| {
                        status.log_end = Some(NextOffset::new(end))
                    });
                    return Resume::plan(
                        partition,
                        checkpoint,
                        Offset::new(start),
                        NextOffset::new(end),
                    )
                    .map_err(|error| describe(&error));
                }
                Ok(Err(error)) => {
                    warn!(%partition, %error, "Kafka did not tell the log's bounds, trying again")
                }
                Err(error) => {
                    warn!(%partition, %error, "a question to Kafka was cut off, trying again")
                }
            }
            tokio::time::sleep(KAFKA_PAUSE).await;
        }
    }

    fn start<V>(&mut self, partition: Partition, queue: PartitionQueue)
    where
        V: View,
        S: ViewStore<V>,
    {
        let Some(resume) = self.starting.remove(&partition) else {
            return;
        };
        let (statistics, known) = watch::channel(None);
        let settings = self.worker.settings.clone();
        // Each partition has its share of the budget, as if all of them were here.
        let share = settings.state_budget_bytes
            / usize::from(self.worker.store.log_settings().partitions.max(1));
        let projection = Projection::new(
            partition,
            resume.checkpoint,
            self.worker.store.clone(),
            self.worker.dead_letters.clone(),
        )
        .with_checkpoint_interval(settings.checkpoint_interval)
        .with_state_budget(share);
        let task = PartitionTask {
            partition,
            resume,
            projection,
            queue,
            consumer: self.consumer.clone(),
            statistics: known,
            status: self.worker.status.clone(),
            attempts: Attempts::default(),
            rejoin: self.rejoin.clone(),
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { task.run(&settings, stopped).await });
        self.running.insert(
            partition,
            Running {
                stop,
                statistics,
                task,
            },
        );
    }

    /// Brings partitions to rest: each flushes what it has folded, or drops it.
    async fn stop(&mut self, partitions: &[Partition]) {
        let mut stopping = Vec::new();
        for partition in partitions {
            self.starting.remove(partition);
            if let Some(running) = self.running.remove(partition) {
                running.stop.cancel();
                stopping.push((*partition, running.task));
            }
        }
        let deadline = tokio::time::Instant::now() + self.worker.settings.stop_deadline;
        for (partition, mut task) in stopping {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                warn!(%partition, "the partition did not come to rest in time and was dropped");
                task.abort();
            }
        }
        for partition in partitions {
            self.worker.status.revoked(*partition);
        }
    }

    pub(crate) async fn stop_all(&mut self) {
        let partitions: Vec<Partition> = self.running.keys().copied().collect();
        self.stop(&partitions).await;
    }
}
