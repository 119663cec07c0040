//! What a gateway is told: where it listens, whom it trusts, and how long and how much anything may be.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tidemark_event::kafka::KafkaSettings;
use tidemark_store::FoldVersion;

use crate::append::AppendSettings;

/// Settings of a gateway.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Where it listens. Default 127.0.0.1:8080: nobody but this machine.
    pub listen: SocketAddr,
    /// How a request says who makes it. Default: by headers.
    pub auth: Auth,
    /// An authenticating edge is in front, so that the headers can be believed although others than this machine
    /// reach the gateway. Without it a gateway refuses to listen on any but a loopback address. Default false.
    pub behind_authenticating_edge: bool,
    /// How Kafka is reached.
    pub kafka: KafkaSettings,
    /// The fold whose rows are read: the release's own. A generation built by another is not served.
    pub fold_version: FoldVersion,
    /// How events are appended.
    pub append: AppendSettings,
    /// How much a request may ask for.
    pub limits: Limits,
    /// How long anything may take.
    pub waits: Waits,
}

/// How a request says who makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auth {
    /// By the headers `X-User` and `X-Service`, as an authenticating edge sets them.
    #[default]
    TrustedHeader,
}

/// How much a request may ask for, and how much it is given at once.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest JSON body, in bytes. Default 4 MiB: a group of some 30,000 members with the longest ids.
    pub body_bytes: usize,
    /// The largest body of a bulk append, in bytes. Default 16 MiB: it is held whole while it is appended.
    pub bulk_bytes: usize,
    /// The most lines of a bulk append. Default 10,000: their answers are held until the last is known.
    pub bulk_lines: usize,
    /// The most bytes of message bodies in one page of an inbox or a history. Default 1 MiB: a page fits a phone. A
    /// single message goes through whatever its size, or a pull could never pass it.
    pub page_bytes: usize,
    /// The most requests that are served at a time. Default 4,096; more are told to come back, rather than queued
    /// where nobody sees them.
    pub requests: usize,
}

/// How long anything may take.
#[derive(Debug, Clone)]
pub struct Waits {
    /// How long a read waits for the views to reach its `?at=`, and then answers what there is. Default 2 s.
    pub at: Duration,
    /// How long a refusal waits for the view to reach the log's end, and then gives way to a 503. Default 2 s.
    pub fresh: Duration,
    /// How long a write is judged by the views, before anything is appended. Default 10 s: above what a store that
    /// does answer takes.
    pub judge: Duration,
    /// The longest `?wait=` of a send. Default 30 s: below what edges commonly allow a request.
    pub send: Duration,
    /// How long a whole request may take. Default 60 s: above the sum of what a write may take, which is told more of.
    pub request: Duration,
    /// How long requests that are under way may take to end at a shutdown. Default 10 s.
    pub shutdown: Duration,
    /// How often a view's checkpoints are read while somebody waits for them. Default 10 ms: what a wait adds.
    pub poll: Duration,
    /// How long the active generation of a view is taken as known. Default 1 s: a cutover is seen within seconds.
    pub generation: Duration,
    /// How long a large conversation's head and blocks are shared among readers. Default 1 s: a list may be that
    /// much behind for those who give no `?at=`.
    pub share: Duration,
}

impl GatewaySettings {
    /// A gateway on the default address, for the log at `kafka` and views built by `fold_version`.
    pub fn new(kafka: KafkaSettings, fold_version: FoldVersion) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            auth: Auth::default(),
            behind_authenticating_edge: false,
            kafka,
            fold_version,
            append: AppendSettings::default(),
            limits: Limits::default(),
            waits: Waits::default(),
        }
    }

    /// Whether `listen` is safe to listen on: the headers that name a caller are believed.
    pub(crate) fn may_listen(&self) -> bool {
        match self.auth {
            Auth::TrustedHeader => {
                self.behind_authenticating_edge || self.listen.ip().is_loopback()
            }
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            bulk_bytes: 16 << 20,
            bulk_lines: 10_000,
            page_bytes: 1 << 20,
            requests: 4_096,
        }
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            at: Duration::from_secs(2),
            fresh: Duration::from_secs(2),
            judge: Duration::from_secs(10),
            send: Duration::from_secs(30),
            request: Duration::from_secs(60),
            shutdown: Duration::from_secs(10),
            poll: Duration::from_millis(10),
            generation: Duration::from_secs(1),
            share: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_believed_on_this_machine_or_behind_an_edge_only() {
        let mut settings =
            GatewaySettings::new(KafkaSettings::at("127.0.0.1:9092"), FoldVersion::new(1));
        assert!(settings.may_listen());
        settings.listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080));
        assert!(!settings.may_listen());
        settings.behind_authenticating_edge = true;
        assert!(settings.may_listen());
    }
}
