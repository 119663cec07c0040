//! `tidemark gateway`.

use anyhow::Context as _;
use clap::Args;
use metrics_exporter_prometheus::PrometheusBuilder;
use tidemark_gateway::{Gateway as Server, GatewaySettings, metrics};

use crate::{
    outcome::Outcome,
    release::FOLD_VERSION,
    service::{Lifeline, Listen, connect},
    settings::Settings,
};

/// Serve the views over HTTP, and append what is written
///
/// Until SIGINT or SIGTERM: then it takes no more requests and lets those under way end. Callers are who the header
/// X-User says, as an authenticating edge sets it; without such an edge it listens on this machine only.
/// /openapi.json tells the calls, /healthz and /readyz whether it is well, /metrics what it has counted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark gateway
  curl -H 'X-User: anna' http://127.0.0.1:8080/v1/sessions
  tidemark gateway --listen 0.0.0.0:8080 --behind-authenticating-edge")]
pub(crate) struct Gateway {
    #[command(flatten)]
    listen: Listen,

    /// An authenticating edge is in front and sets the headers: others than this machine may reach it
    #[arg(
        long,
        env = "TIDEMARK_BEHIND_AUTHENTICATING_EDGE",
        hide_env_values = true
    )]
    behind_authenticating_edge: bool,

    #[command(flatten)]
    lifeline: Lifeline,
}

impl Gateway {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let shutdown = self.lifeline.hold()?;
        let file = settings.gateway.clone();
        let mut gateway = GatewaySettings::new(settings.kafka.clone(), FOLD_VERSION);
        if let Some(listen) = self.listen.or(file.listen)? {
            gateway.listen = listen;
        }
        gateway.behind_authenticating_edge =
            self.behind_authenticating_edge || file.behind_authenticating_edge.unwrap_or_default();
        let recorder = PrometheusBuilder::new().install_recorder();
        let recorder = recorder.context("cannot keep metrics")?;
        metrics::describe();

        let Some(store) = connect(&settings.store, &shutdown).await? else {
            return Ok(Outcome::Done);
        };
        let server = Server::bind(gateway, store, recorder).await?;
        server.run(shutdown).await;
        Ok(Outcome::Done)
    }
}
