//! The tables' files, and how their tables are named.

use tidemark_fold::ViewName;

use crate::GenerationNo;

/// Tables that are there once in a keyspace.
const LOG: &str = include_str!("../../../schemas/cql/log.cql");

/// Their names.
pub(crate) const LOG_TABLES: [&str; 4] =
    ["log", "generations", "active_generations", "checkpoints"];

/// Tables that every generation of every view has.
const STATE: &str = include_str!("../../../schemas/cql/state.cql");

const ROAMING: &str = include_str!("../../../schemas/cql/roaming.cql");
const SESSIONS: &str = include_str!("../../../schemas/cql/sessions.cql");
const INBOX: &str = include_str!("../../../schemas/cql/inbox.cql");

/// How the tables of one generation of a view are named.
#[derive(Debug, Clone)]
pub struct Names {
    keyspace: String,
    view: ViewName,
    generation: GenerationNo,
}

impl Names {
    pub(crate) fn new(keyspace: &str, view: ViewName, generation: GenerationNo) -> Self {
        Self {
            keyspace: keyspace.to_owned(),
            view,
            generation,
        }
    }

    /// A table's name, with its keyspace.
    pub(crate) fn table(&self, table: &str) -> String {
        let Self {
            keyspace,
            view,
            generation,
        } = self;
        format!("{keyspace}.{view}_{generation}_{table}")
    }

    /// The statements that make the generation's tables.
    pub(crate) fn statements(&self) -> Vec<String> {
        let own = match self.view {
            ViewName::Roaming => ROAMING,
            ViewName::Sessions => SESSIONS,
            ViewName::Inbox => INBOX,
        };
        [STATE, own]
            .into_iter()
            .flat_map(statements)
            .map(|statement| {
                statement
                    .replace("{keyspace}", &self.keyspace)
                    .replace("{view}", self.view.as_str())
                    .replace("{generation}", &self.generation.to_string())
            })
            .collect()
    }

    /// The generation's tables, with their keyspace.
    pub(crate) fn tables(&self) -> Vec<String> {
        let made = "CREATE TABLE IF NOT EXISTS ";
        self.statements()
            .iter()
            .filter_map(|statement| statement.strip_prefix(made)?.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    }
}

/// The statements that make the tables of [`LOG`].
pub(crate) fn log_statements(keyspace: &str) -> Vec<String> {
    statements(LOG)
        .map(|statement| statement.replace("{keyspace}", keyspace))
        .collect()
}

/// The statements of a file, without comments. Our files have neither `;` nor `--` inside a text.
fn statements(file: &str) -> impl Iterator<Item = String> {
    let lines = file
        .lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code))
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    let code = lines.collect::<Vec<_>>().join("\n");
    let statements: Vec<String> = code
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .map(str::to_owned)
        .collect();
    statements.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_has_its_own_tables_and_nothing_is_left_to_fill_in() {
        let names = Names::new("tidemark", ViewName::Sessions, GenerationNo::FIRST);
        assert_eq!(
            names.tables(),
            [
                "tidemark.sessions_1_heads",
                "tidemark.sessions_1_members",
                "tidemark.sessions_1_dedupe",
                "tidemark.sessions_1_sessions",
                "tidemark.sessions_1_blocks",
            ]
        );
        assert!(names.tables().contains(&names.table("heads")));
        for view in ViewName::ALL {
            for statement in Names::new("tidemark", view, GenerationNo::FIRST.next()).statements() {
                assert!(statement.starts_with("CREATE TABLE IF NOT EXISTS tidemark."));
                assert!(!statement.contains("--") && !statement.contains("{keyspace}"));
                assert!(!statement.contains("{view}") && !statement.contains("{generation}"));
            }
        }
        for (statement, table) in log_statements("tidemark").iter().zip(LOG_TABLES) {
            let made = format!("CREATE TABLE IF NOT EXISTS tidemark.{table} (");
            assert!(statement.starts_with(&made), "{statement}");
        }
    }
}
