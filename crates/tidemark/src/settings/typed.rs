//! What was typed: flags and TIDEMARK_* variables, as they came. What they mean is decided in [`super`].

use std::{path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};

/// The settings that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Typed {
    /// File with settings, in TOML [default: ./tidemark.toml, where there is one]
    ///
    /// Flags come first, then variables, then this file, then defaults. A key that the file may not have is refused.
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) config: Option<PathBuf>,

    /// Kafka servers to begin with, commas between [default: 127.0.0.1:9092]
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_KAFKA",
        hide_env_values = true,
        value_name = "HOST:PORT,…"
    )]
    pub(crate) kafka: Option<String>,

    /// A property of librdkafka, such as security.protocol=SASL_SSL; may be repeated
    ///
    /// The variable TIDEMARK_KAFKA_PROPERTIES takes one a line, the file a table [kafka.properties]. One that
    /// Tidemark's correctness rests on cannot be set.
    #[arg(long = "kafka-property", global = true, value_name = "NAME=VALUE")]
    pub(crate) kafka_properties: Vec<Property>,

    /// ScyllaDB servers to begin with, commas between [default: 127.0.0.1:9042]
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CQL",
        hide_env_values = true,
        value_name = "HOST:PORT,…"
    )]
    pub(crate) cql: Option<String>,

    /// The role to log in to ScyllaDB as
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CQL_USER",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) cql_user: Option<String>,

    /// File that holds that role's password
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CQL_PASSWORD_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) cql_password_file: Option<PathBuf>,

    /// PEM file with the authorities that ScyllaDB's certificates are checked against; without it, no TLS
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CQL_CA_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) cql_ca_file: Option<PathBuf>,

    /// The datacentre whose servers are used [default: all]
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_CQL_DATACENTRE",
        hide_env_values = true,
        value_name = "NAME",
        alias = "cql-datacenter"
    )]
    pub(crate) cql_datacentre: Option<String>,

    /// The keyspace that holds the views of one log [default: tidemark]
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_KEYSPACE",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) keyspace: Option<String>,

    /// What is logged to standard error, as in info,tidemark_gateway=debug
    ///
    /// [default: info of what runs for long, warn of other commands]
    #[arg(
        long,
        global = true,
        env = "RUST_LOG",
        hide_env_values = true,
        value_name = "FILTER"
    )]
    pub(crate) log: Option<String>,

    /// How it is logged [default: text]
    #[arg(
        long,
        global = true,
        env = "TIDEMARK_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT"
    )]
    pub(crate) log_format: Option<LogFormat>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people; with colours on a terminal
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// One property of librdkafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A text that is no property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not NAME=VALUE")]
pub(crate) struct PropertyError {
    text: String,
}

impl FromStr for Property {
    type Err = PropertyError;

    fn from_str(text: &str) -> Result<Self, PropertyError> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok(Self {
                name: name.trim().to_owned(),
                value: value.to_owned(),
            }),
            Some(_) | None => Err(PropertyError {
                text: text.to_owned(),
            }),
        }
    }
}
