//! The gateway as a component: its settings, its life, its end.

use std::{num::NonZeroU16, sync::Arc};

use axum::serve::ListenerExt;
use metrics_exporter_prometheus::PrometheusHandle;
use rdkafka::error::KafkaError;
use tidemark_store::{Store, StoreError};
use tokio::{net::TcpListener, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    GatewaySettings,
    app::{App, Reads},
    append::Appender,
    health::Health,
    problem::chain,
    routes::router,
    views::Views,
};

/// Why a gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Whoever reaches it could say they are anybody.
    #[error(
        "{listen} is reached by other machines, and callers are believed by their headers: \
        listen on a loopback address, or say that an authenticating edge is in front"
    )]
    Exposed {
        /// The address.
        listen: std::net::SocketAddr,
    },
    /// `setup` has not run.
    #[error("no log is recorded in the store: run `tidemark setup`")]
    NoLog,
    /// The recorded log has no partitions.
    #[error("the log is recorded with no partitions")]
    NoPartitions,
    /// The store could not be read.
    #[error("the log's settings could not be read")]
    Store(#[from] StoreError),
    /// The properties for Kafka are not ones that its client takes.
    #[error("the Kafka client could not be made")]
    Kafka(#[from] KafkaError),
    /// The address cannot be listened on.
    #[error("could not listen on {listen}")]
    Listen {
        /// The address.
        listen: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// A gateway that listens, and serves once it runs.
#[derive(Debug)]
pub struct Gateway {
    app: Arc<App>,
    listener: TcpListener,
}

impl Gateway {
    /// A gateway for the log that is recorded in `store`. `metrics` gives what the process has counted: see
    /// [`metrics::describe`](crate::metrics::describe).
    ///
    /// Reads the log's settings and begins to listen, so that whoever starts it knows its address; Kafka is not asked
    /// yet. What comes in before [`Gateway::run`] waits.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn bind(
        settings: GatewaySettings,
        store: Store,
        metrics: PrometheusHandle,
    ) -> Result<Self, GatewayError> {
        let listen = settings.listen;
        if !settings.may_listen() {
            return Err(GatewayError::Exposed { listen });
        }
        let log = store.log_settings().await?.ok_or(GatewayError::NoLog)?;
        let partitions =
            NonZeroU16::new(log.settings.partitions).ok_or(GatewayError::NoPartitions)?;
        let append = settings.append.clone();
        let appender = Appender::new(&settings.kafka, &log.topic, partitions, append)?;
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(source) => return Err(GatewayError::Listen { listen, source }),
        };
        let app = App {
            views: Views::new(&store, settings.fold_version, &settings.waits),
            reads: Reads::new(&settings.waits),
            health: Health::new(store),
            settings,
            log,
            appender,
            metrics,
            shutdown: CancellationToken::new(),
        };
        Ok(Self {
            app: Arc::new(app),
            listener,
        })
    }

    /// Where it listens: with the port that the system chose, where port 0 was asked for.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` is cancelled; then takes no new requests, ends long waits, lets the others end within
    /// the deadline of the settings, and waits for the log to acknowledge what is queued.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { app, listener } = self;
        let address = listener.local_addr().ok();
        tracing::info!(?address, topic = app.log.topic, "the gateway listens");
        // An answer is written at once, not held back for more of it.
        let listener = listener.tap_io(|connection| {
            if let Err(error) = connection.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
        });
        let stopping = app.shutdown.clone();
        let serve = axum::serve(listener, router(Arc::clone(&app)))
            .with_graceful_shutdown(stopping.clone().cancelled_owned());
        let mut served = tokio::spawn(serve.into_future());

        shutdown.cancelled().await;
        tracing::info!("the gateway ends");
        stopping.cancel();
        let deadline = Instant::now() + app.settings.waits.shutdown;
        if tokio::time::timeout_at(deadline, &mut served)
            .await
            .is_err()
        {
            tracing::warn!("some requests did not end in time and were cut off");
            served.abort();
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if let Err(error) = app.appender.flush(left).await {
            tracing::warn!(
                error = chain(&error),
                "some events were not acknowledged before the end"
            );
        }
    }
}
