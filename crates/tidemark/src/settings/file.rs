//! The settings file, as it stands there.
//!
//! ```toml
//! keyspace = "tidemark"
//!
//! [kafka]
//! bootstrap = "kafka-1:9092,kafka-2:9092"
//!
//! [kafka.properties]
//! "security.protocol" = "SASL_SSL"
//!
//! [cql]
//! contact_points = ["scylla-1:9042", "scylla-2:9042"]
//! user = "tidemark"
//! password_file = "/run/secrets/tidemark"
//!
//! [gateway]
//! listen = "0.0.0.0:8080"
//! ```

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{human, typed::LogFormat};

/// The file's tables and keys. Whatever is absent is decided elsewhere.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) keyspace: Option<String>,
    pub(crate) kafka: KafkaTable,
    pub(crate) cql: CqlTable,
    pub(crate) gateway: GatewayTable,
    pub(crate) project: ProjectTable,
    pub(crate) log: LogTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KafkaTable {
    pub(crate) bootstrap: Option<String>,
    pub(crate) properties: BTreeMap<String, Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CqlTable {
    pub(crate) contact_points: Option<Vec<String>>,
    pub(crate) user: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) datacentre: Option<String>,
    /// As in `15s`.
    #[serde(deserialize_with = "duration")]
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) max_in_flight: Option<usize>,
    pub(crate) connections: Option<usize>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayTable {
    pub(crate) listen: Option<String>,
    pub(crate) behind_authenticating_edge: Option<bool>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProjectTable {
    pub(crate) listen: Option<String>,
    pub(crate) group_protocol: Option<String>,
    pub(crate) static_member_id: Option<String>,
    pub(crate) state_budget_mib: Option<usize>,
    pub(crate) batch_records: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogTable {
    pub(crate) filter: Option<String>,
    pub(crate) format: Option<LogFormat>,
}

/// A property's value as people write it: `6000` as well as `"6000"`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Scalar {
    Text(String),
    Number(i64),
    Fraction(f64),
    Flag(bool),
}

impl Scalar {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Fraction(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    human::parse_duration(&text)
        .map(Some)
        .map_err(D::Error::custom)
}

impl File {
    /// Reads a file's text. Files that it names are beside `folder`, unless their paths are absolute.
    pub(super) fn parse(text: &str, folder: &Path) -> Result<Self, toml::de::Error> {
        let mut file: Self = toml::from_str(text)?;
        let named = [&mut file.cql.password_file, &mut file.cql.ca_file];
        for path in named.into_iter().flatten() {
            *path = folder.join(&path);
        }
        Ok(file)
    }
}
