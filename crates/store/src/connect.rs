//! Makes the one session with the servers: where they are, who we are, how they are to be used.

use std::{
    collections::BTreeSet,
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use scylla::{
    client::{
        PoolSize, execution_profile::ExecutionProfile, session::Session,
        session_builder::SessionBuilder,
    },
    errors::{
        ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError,
        MetadataError, NewSessionError,
    },
    frame::types::{Consistency, SerialConsistency},
    policies::load_balancing::DefaultPolicy,
};

/// How the store is reached.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Servers to begin with, `host:port`; the others are learnt from them.
    pub contact_points: Vec<String>,
    /// The keyspace that holds everything of one log: lower-case letters, digits and `_`, at most 48.
    pub keyspace: String,
    /// The role to log in as, where the servers ask for one.
    pub user: Option<String>,
    /// That role's password.
    pub password: Option<Secret>,
    /// A PEM file with the authorities that server certificates are checked against. Without it: no TLS.
    pub ca_file: Option<PathBuf>,
    /// The datacentre whose servers are used; a generation lives in one. Without it: all.
    pub datacenter: Option<String>,
    /// How long one request may take, retries on other servers included. Default 15 s: above the servers' own bounds
    /// on writes (2 s) and scans (10 s), so that it is they who say what failed.
    pub request_timeout: Duration,
    /// The most requests in flight at once, reads and writes. Default 256; servers gain nothing from more than about
    /// a thousand.
    pub max_in_flight: usize,
    /// Connections to each shard, or to each server that has no shards. Default 2: one is a quarter slower under
    /// load.
    pub connections: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            keyspace: "tidemark".to_owned(),
            user: None,
            password: None,
            ca_file: None,
            datacenter: None,
            request_timeout: Duration::from_secs(15),
            max_in_flight: 256,
            connections: 2,
        }
    }
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that must not appear in logs.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Why no connection could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The settings cannot be.
    #[error("{setting} {problem}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The authorities' file cannot be used.
    #[error("could not read certificates from {}", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No server could be reached, or none lets us in.
    #[error("could not connect to the store at {}", contact_points.join(", "))]
    Session {
        /// Where it was tried.
        contact_points: Vec<String>,
        /// What the driver says.
        #[source]
        source: Box<NewSessionError>,
    },
}

impl ConnectError {
    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Setting { .. } | Self::Certificates { .. } => false,
            Self::Session { source, .. } => is_session_transient(source),
        }
    }
}

/// Connects to the servers.
pub(crate) async fn session(settings: &StoreSettings) -> Result<Session, ConnectError> {
    check(settings)?;
    let mut policy = DefaultPolicy::builder().token_aware(true);
    if let Some(datacenter) = &settings.datacenter {
        policy = policy.prefer_datacenter(datacenter.clone());
    }
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::LocalQuorum)
        .serial_consistency(Some(SerialConsistency::LocalSerial))
        .request_timeout(Some(settings.request_timeout))
        .load_balancing_policy(policy.build())
        .build()
        .into_handle();
    let connections = NonZeroUsize::new(settings.connections).unwrap_or(NonZeroUsize::MIN);
    let mut builder = SessionBuilder::new()
        .known_nodes(&settings.contact_points)
        .default_execution_profile_handle(profile)
        .pool_size(PoolSize::PerShard(connections))
        .keyspaces_to_fetch([settings.keyspace.as_str()])
        // A set-up makes many tables, and waits once for all.
        .auto_await_schema_agreement(false);
    if let Some(user) = &settings.user {
        let password = settings.password.as_ref().map_or("", |secret| &secret.0);
        builder = builder.user(user, password);
    }
    if let Some(file) = &settings.ca_file {
        builder = builder.tls_context(Some(tls(file)?));
    }
    let session = match builder.build().await {
        Ok(session) => session,
        Err(error) => {
            return Err(ConnectError::Session {
                contact_points: settings.contact_points.clone(),
                source: Box::new(error),
            });
        }
    };
    if let Some(datacenter) = &settings.datacenter {
        check_datacenter(datacenter, &session)?;
    }
    Ok(session)
}

/// Everything but what only an operator can mend: names, settings, a login that is refused.
fn is_session_transient(error: &NewSessionError) -> bool {
    match error {
        NewSessionError::FailedToResolveAnyHostname(_) => true,
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken {
                last_connection_error: ConnectionError::ConnectionSetupRequestError(error),
            },
        )) => !matches!(
            error.get_error(),
            ConnectionSetupRequestErrorKind::MissingAuthentication
                | ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, _)
        ),
        NewSessionError::MetadataError(_) => true,
        _ => false,
    }
}

fn check(settings: &StoreSettings) -> Result<(), ConnectError> {
    let wrong = |setting, problem: &str| {
        Err(ConnectError::Setting {
            setting,
            problem: problem.to_owned(),
        })
    };
    if settings.contact_points.is_empty() {
        return wrong("contact_points", "names no server");
    }
    if settings.max_in_flight == 0 {
        return wrong("max_in_flight", "is 0");
    }
    if settings.connections == 0 {
        return wrong("connections", "is 0");
    }
    let name = settings.keyspace.as_str();
    let is_sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !begins || name.len() > 48 || !name.bytes().all(is_sound) {
        let problem = format!(
            "is {name:?}: use lower-case letters, digits and _, beginning with a letter, at most 48"
        );
        return wrong("keyspace", &problem);
    }
    Ok(())
}

/// A datacentre that is none would leave every request without a server to go to.
fn check_datacenter(datacenter: &str, session: &Session) -> Result<(), ConnectError> {
    let state = session.get_cluster_state();
    let nodes = state.get_nodes_info().iter();
    let known: BTreeSet<&str> = nodes
        .filter_map(|node| node.datacenter.as_deref())
        .collect();
    if known.contains(datacenter) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    Err(ConnectError::Setting {
        setting: "datacenter",
        problem: format!("is {datacenter:?}, the servers are in {}", known.join(", ")),
    })
}

fn tls(file: &Path) -> Result<Arc<rustls::ClientConfig>, ConnectError> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};

    let failed = |source: Box<dyn std::error::Error + Send + Sync>| ConnectError::Certificates {
        file: file.to_owned(),
        source,
    };
    let mut authorities = rustls::RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.into()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.into()))?;
        authorities
            .add(certificate)
            .map_err(|error| failed(error.into()))?;
    }
    if authorities.is_empty() {
        return Err(failed("there is none in it".into()));
    }
    // Named, since more than one provider may be built into a binary.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.into()))?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_needs_no_quotes() {
        let refuses = |keyspace: &str| {
            let settings = StoreSettings {
                keyspace: keyspace.to_owned(),
                ..StoreSettings::default()
            };
            check(&settings).is_err()
        };
        for name in ["tidemark", "t", "tidemark_2"] {
            assert!(!refuses(name), "{name}");
        }
        for name in ["", "2t", "_t", "Tide", "a-b", "a\"; DROP", &"a".repeat(49)] {
            assert!(refuses(name), "{name}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let settings = StoreSettings {
            password: Some(Secret::new("hunter2")),
            ..StoreSettings::default()
        };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
