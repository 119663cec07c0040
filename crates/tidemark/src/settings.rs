//! What the settings mean: flags, then TIDEMARK_* variables, then the file, then defaults, validated once.
//!
//! [`typed`] is what was typed (clap reads flags and variables in their order), [`mod@file`] is what the file says. What
//! comes out is the crates' own settings, which nothing reads variables or files behind.

pub(crate) mod file;
pub(crate) mod human;
pub(crate) mod typed;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use tidemark_event::kafka::KafkaSettings;
use tidemark_store::{Secret, StoreSettings};

use self::{
    file::{File, GatewayTable, ProjectTable},
    typed::{LogFormat, Property, Typed},
};

/// Read where it is there and no other file is named.
const DEFAULT_FILE: &str = "tidemark.toml";

/// Where Kafka is unless something else is said: on this machine.
const DEFAULT_KAFKA: &str = "127.0.0.1:9092";

/// Properties of librdkafka, one a line: the only variable that is no flag's.
const PROPERTIES_VARIABLE: &str = "TIDEMARK_KAFKA_PROPERTIES";

/// The keyspace, which the demo chooses for its processes.
const KEYSPACE_VARIABLE: &str = "TIDEMARK_KEYSPACE";

/// The settings of a command.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) kafka: KafkaSettings,
    pub(crate) store: StoreSettings,
    pub(crate) log: LogSettings,
    /// What the file says of gateways.
    pub(crate) gateway: GatewayTable,
    /// What the file says of projectors.
    pub(crate) project: ProjectTable,
    /// What a process of ours must be told in its environment to have the same settings.
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogSettings {
    /// None: the command decides.
    pub(crate) filter: Option<String>,
    pub(crate) format: LogFormat,
}

/// Why the settings cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// A file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        file: PathBuf,
        source: std::io::Error,
    },
    /// The settings file is no such file.
    #[error("{} is not a settings file", file.display())]
    File {
        file: PathBuf,
        source: toml::de::Error,
    },
    /// A property of librdkafka that decides whether messages are lost, doubled or misplaced.
    #[error(
        "the Kafka property {name} cannot be set: Tidemark's correctness rests on its value, {fixed}"
    )]
    FixedProperty { name: String, fixed: String },
    /// Something else than what is expected there.
    #[error("{setting}: {problem}")]
    Value {
        setting: &'static str,
        problem: String,
    },
}

impl Settings {
    /// Reads the settings file, and decides.
    pub(crate) fn resolve(typed: &Typed) -> Result<Self, SettingsError> {
        let file = read_file(typed.config.as_deref())?;
        let lines = std::env::var(PROPERTIES_VARIABLE).unwrap_or_default();
        let properties = parse_properties(&lines)?;
        Self::decide(typed.clone(), properties, file)
    }

    fn decide(
        typed: Typed,
        from_variable: Vec<Property>,
        file: File,
    ) -> Result<Self, SettingsError> {
        let kafka = KafkaSettings {
            bootstrap_servers: said(typed.kafka)
                .or(said(file.kafka.bootstrap))
                .unwrap_or_else(|| DEFAULT_KAFKA.to_owned()),
            properties: merge(file.kafka.properties, from_variable, typed.kafka_properties),
        };
        refuse_fixed(&kafka)?;

        let defaults = StoreSettings::default();
        let password_file = said_path(typed.cql_password_file).or(file.cql.password_file);
        let password = password_file.as_deref().map(read_password).transpose()?;
        let contact_points = match said(typed.cql) {
            Some(text) => split(&text),
            None => file.cql.contact_points.unwrap_or(defaults.contact_points),
        };
        let store = StoreSettings {
            contact_points,
            keyspace: said(typed.keyspace)
                .or(said(file.keyspace))
                .unwrap_or(defaults.keyspace),
            user: said(typed.cql_user).or(said(file.cql.user)),
            password: password.map(Secret::new),
            ca_file: said_path(typed.cql_ca_file).or(file.cql.ca_file),
            datacenter: said(typed.cql_datacentre).or(said(file.cql.datacentre)),
            request_timeout: file.cql.request_timeout.unwrap_or(defaults.request_timeout),
            max_in_flight: file.cql.max_in_flight.unwrap_or(defaults.max_in_flight),
            connections: file.cql.connections.unwrap_or(defaults.connections),
        };
        if store.password.is_some() && store.user.is_none() {
            let problem = "there is a password, but no user to log in as".to_owned();
            let setting = "--cql-user";
            return Err(SettingsError::Value { setting, problem });
        }
        let log = LogSettings {
            filter: said(typed.log).or(said(file.log.filter)),
            format: typed.log_format.or(file.log.format).unwrap_or_default(),
        };
        let environment = environment(&kafka, &store, &log, typed.config, password_file);
        Ok(Self {
            kafka,
            store,
            log,
            gateway: file.gateway,
            project: file.project,
            environment,
        })
    }
}

impl Settings {
    /// Takes another keyspace than the one that was decided on.
    pub(crate) fn use_keyspace(&mut self, keyspace: String) {
        self.environment
            .retain(|(name, _)| *name != KEYSPACE_VARIABLE);
        self.environment
            .push((KEYSPACE_VARIABLE, keyspace.clone().into()));
        self.store.keyspace = keyspace;
    }
}

/// A value that was typed; an empty one is as good as none, since that is how an unset variable often arrives.
pub(crate) fn said(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn said_path(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn split(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

fn read_file(named: Option<&Path>) -> Result<File, SettingsError> {
    let named = named.filter(|path| !path.as_os_str().is_empty());
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => {
            return Ok(File::default());
        }
        Err(source) => {
            let file = path.to_owned();
            return Err(SettingsError::Read { file, source });
        }
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    File::parse(&text, folder).map_err(|source| SettingsError::File {
        file: path.to_owned(),
        source,
    })
}

/// A password is the file's text without the line end that editors put there.
fn read_password(file: &Path) -> Result<String, SettingsError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(source) => Err(SettingsError::Read {
            file: file.to_owned(),
            source,
        }),
    }
}

fn parse_properties(lines: &str) -> Result<Vec<Property>, SettingsError> {
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let properties = lines.map(|line| {
        line.parse()
            .map_err(|error: typed::PropertyError| SettingsError::Value {
                setting: PROPERTIES_VARIABLE,
                problem: error.to_string(),
            })
    });
    properties.collect()
}

/// Properties by name; the later a source, the more it counts.
fn merge(
    file: BTreeMap<String, file::Scalar>,
    variable: Vec<Property>,
    flags: Vec<Property>,
) -> BTreeMap<String, String> {
    let mut properties: BTreeMap<String, String> = file
        .into_iter()
        .map(|(name, value)| (name, value.into_text()))
        .collect();
    for Property { name, value } in variable.into_iter().chain(flags) {
        properties.insert(name, value);
    }
    properties
}

/// Refuses properties that would be overridden silently: those that producers and consumers always set to something
/// else, and those that settings of ours stand for.
fn refuse_fixed(kafka: &KafkaSettings) -> Result<(), SettingsError> {
    let (producer, consumer) = (kafka.producer(), kafka.consumer("tidemark"));
    for (name, value) in &kafka.properties {
        if name == "bootstrap.servers" {
            return Err(SettingsError::FixedProperty {
                name: name.clone(),
                fixed: "that of --kafka".to_owned(),
            });
        }
        let set = [producer.get(name), consumer.get(name)];
        if let Some(fixed) = set.into_iter().flatten().find(|set| set != value) {
            let (name, fixed) = (name.clone(), fixed.to_owned());
            return Err(SettingsError::FixedProperty { name, fixed });
        }
    }
    Ok(())
}

fn environment(
    kafka: &KafkaSettings,
    store: &StoreSettings,
    log: &LogSettings,
    config: Option<PathBuf>,
    password_file: Option<PathBuf>,
) -> Vec<(&'static str, OsString)> {
    let properties = kafka
        .properties
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"));
    let text = |text: Option<&String>| text.map(OsString::from);
    let variables = [
        ("TIDEMARK_CONFIG", config.map(PathBuf::into_os_string)),
        ("TIDEMARK_KAFKA", text(Some(&kafka.bootstrap_servers))),
        (
            PROPERTIES_VARIABLE,
            Some(properties.collect::<String>().into()),
        ),
        ("TIDEMARK_CQL", Some(store.contact_points.join(",").into())),
        ("TIDEMARK_CQL_USER", text(store.user.as_ref())),
        (
            "TIDEMARK_CQL_PASSWORD_FILE",
            password_file.map(PathBuf::into_os_string),
        ),
        (
            "TIDEMARK_CQL_CA_FILE",
            store.ca_file.clone().map(PathBuf::into_os_string),
        ),
        ("TIDEMARK_CQL_DATACENTRE", text(store.datacenter.as_ref())),
        (KEYSPACE_VARIABLE, text(Some(&store.keyspace))),
        ("RUST_LOG", text(log.filter.as_ref())),
        ("TIDEMARK_LOG_FORMAT", Some(log.format.as_str().into())),
    ];
    let there = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    there.collect()
}

#[cfg(test)]
mod tests;
