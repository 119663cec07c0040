//! What commands ask of Kafka beside appending: topics, their settings, where partitions end.
//!
//! librdkafka's questions block, so each is asked off the threads that run everything else.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use rdkafka::{
    TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    topic_partition_list::Offset as KafkaOffset,
};
use tidemark_event::{NextOffset, Partition, kafka::KafkaSettings};

/// How long Kafka may take for one answer: long enough for a broker that is just starting.
const ANSWER: Duration = Duration::from_secs(15);

/// A consumer must name a group; this one is never joined.
const GROUP: &str = "tidemark-command";

/// A Kafka cluster, as an administrator sees it.
#[derive(Clone)]
pub(crate) struct Cluster {
    servers: String,
    admin: Arc<AdminClient<DefaultClientContext>>,
    consumer: Arc<BaseConsumer>,
}

/// What a topic is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicPlan {
    pub(crate) name: String,
    pub(crate) partitions: u16,
    pub(crate) replication_factor: u16,
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// Why Kafka could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// librdkafka does not take the settings.
    #[error("cannot make a Kafka client for {servers}")]
    Client {
        servers: String,
        source: Box<KafkaError>,
    },
    /// No answer, or a refusal.
    #[error("Kafka at {servers} could not be asked for {what}")]
    Ask {
        servers: String,
        what: String,
        source: Box<KafkaError>,
    },
    /// A topic could not be made.
    #[error("the topic {topic} could not be made")]
    Create {
        topic: String,
        source: Box<KafkaError>,
    },
}

impl Cluster {
    pub(crate) fn new(kafka: &KafkaSettings) -> Result<Self, ClusterError> {
        let servers = kafka.bootstrap_servers.clone();
        let failed = |source| ClusterError::Client {
            servers: servers.clone(),
            source: Box::new(source),
        };
        let admin = Arc::new(kafka.client().create().map_err(failed)?);
        let consumer = Arc::new(kafka.consumer(GROUP).create().map_err(failed)?);
        Ok(Self {
            servers,
            admin,
            consumer,
        })
    }

    /// How many brokers there are now.
    pub(crate) async fn brokers(&self) -> Result<usize, ClusterError> {
        let ask = |consumer: &BaseConsumer| consumer.fetch_metadata(None, ANSWER);
        let metadata = self.ask("its brokers", ask).await?;
        Ok(metadata.brokers().len())
    }

    /// How many partitions a topic has; none where there is no such topic.
    pub(crate) async fn partitions(&self, topic: &str) -> Result<Option<usize>, ClusterError> {
        let name = topic.to_owned();
        let ask = move |consumer: &BaseConsumer| consumer.fetch_metadata(Some(&name), ANSWER);
        let metadata = self.ask(topic, ask).await?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let partitions = found.map(|found| found.partitions().len());
        Ok(partitions.filter(|partitions| *partitions > 0))
    }

    /// Makes a topic, unless it is there. Says whether it was made.
    pub(crate) async fn create(&self, plan: &TopicPlan) -> Result<bool, ClusterError> {
        let replication = TopicReplication::Fixed(i32::from(plan.replication_factor));
        let mut topic = NewTopic::new(&plan.name, i32::from(plan.partitions), replication);
        for (name, value) in &plan.settings {
            topic = topic.set(name, value);
        }
        let options = AdminOptions::new()
            .request_timeout(Some(ANSWER))
            .operation_timeout(Some(ANSWER));
        let failed = |source| ClusterError::Create {
            topic: plan.name.clone(),
            source: Box::new(source),
        };
        let answers = self.admin.create_topics([&topic], &options).await;
        match answers.map_err(failed)?.into_iter().next() {
            Some(Ok(_)) => Ok(true),
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
            Some(Err((_, code))) => Err(failed(KafkaError::AdminOp(code))),
            None => Err(failed(KafkaError::AdminOpCreation("no answer".to_owned()))),
        }
    }

    /// A topic's settings by name, defaults included.
    pub(crate) async fn topic_settings(
        &self,
        topic: &str,
    ) -> Result<BTreeMap<String, String>, ClusterError> {
        let what = format!("the settings of {topic}");
        let specifier = ResourceSpecifier::Topic(topic);
        let options = AdminOptions::new().request_timeout(Some(ANSWER));
        let answers = self.admin.describe_configs([&specifier], &options).await;
        let answers = answers.map_err(|source| self.failed(&what, source))?;
        let mut settings = BTreeMap::new();
        for answer in answers {
            let resource = answer.map_err(|code| self.failed(&what, KafkaError::AdminOp(code)))?;
            let entries = resource.entries.into_iter();
            settings.extend(entries.filter_map(|entry| Some((entry.name, entry.value?))));
        }
        Ok(settings)
    }

    /// Where each partition of a topic ends: the offset that its next record will have, or a later one, as of this
    /// call.
    pub(crate) async fn ends(
        &self,
        topic: &str,
        partitions: u16,
    ) -> Result<BTreeMap<Partition, NextOffset>, ClusterError> {
        let name = topic.to_owned();
        let ask = move |consumer: &BaseConsumer| {
            let mut ends = BTreeMap::new();
            for partition in 0..i32::from(partitions) {
                let (_, end) = consumer.fetch_watermarks(&name, partition, ANSWER)?;
                ends.insert(Partition::new(partition), NextOffset::new(end));
            }
            Ok(ends)
        };
        self.ask(&format!("the ends of {topic}"), ask).await
    }

    /// The first record of each partition whose append time is `millis` or later; a partition without one is left out.
    pub(crate) async fn first_since(
        &self,
        topic: &str,
        partitions: u16,
        millis: i64,
    ) -> Result<BTreeMap<Partition, NextOffset>, ClusterError> {
        let name = topic.to_owned();
        let ask = move |consumer: &BaseConsumer| {
            let times = (0..i32::from(partitions))
                .map(|partition| ((name.clone(), partition), KafkaOffset::Offset(millis)));
            let times = TopicPartitionList::from_topic_map(&HashMap::from_iter(times))?;
            consumer.offsets_for_times(times, ANSWER)
        };
        let found = self
            .ask(&format!("offsets by time of {topic}"), ask)
            .await?;
        let elements = found.elements();
        let known = elements
            .iter()
            .filter_map(|element| match element.offset() {
                KafkaOffset::Offset(offset) => {
                    Some((Partition::new(element.partition()), NextOffset::new(offset)))
                }
                _ => None,
            });
        Ok(known.collect())
    }

    async fn ask<T: Send + 'static>(
        &self,
        what: &str,
        question: impl FnOnce(&BaseConsumer) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, ClusterError> {
        let consumer = Arc::clone(&self.consumer);
        match tokio::task::spawn_blocking(move || question(&consumer)).await {
            Ok(answer) => answer.map_err(|source| self.failed(what, source)),
            Err(_) => Err(self.failed(what, KafkaError::Canceled)),
        }
    }

    fn failed(&self, what: &str, source: KafkaError) -> ClusterError {
        ClusterError::Ask {
            servers: self.servers.clone(),
            what: what.to_owned(),
            source: Box::new(source),
        }
    }
}
