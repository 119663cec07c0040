//! How a command ends: its exit code, and what is told of an error.

use std::{error::Error, io::ErrorKind, process::ExitCode};

use tidemark_store::ConnectError;

use crate::settings::SettingsError;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is as it should be.
    Done,
    /// The command did its work and found something that is not: it has said what.
    Difference,
}

/// What was asked for cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl Outcome {
    /// A difference where there was one.
    pub(crate) const fn difference_if(found: bool) -> Self {
        if found { Self::Difference } else { Self::Done }
    }
}

/// Tells of an error, if there is one, and gives the exit code: 0 done, 1 a difference or failure, 2 usage.
pub(crate) fn conclude(result: Result<Outcome, anyhow::Error>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Difference) => ExitCode::from(1),
        // Whoever read our output has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", causes(error.as_ref()).join("\ncaused by: "));
            ExitCode::from(if error.chain().any(is_usage) { 2 } else { 1 })
        }
    }
}

/// An error and its causes in one line, for logs.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    causes(error).join(": ")
}

/// What an error and each of its causes tell, the error first.
///
/// A cause that the one before it has told already is left out: not all libraries leave their causes to the chain.
fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut told = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.last().is_some_and(|last| last.ends_with(&text)) {
            told.push(text);
        }
        next = cause.source();
    }
    told
}

/// Whether what was typed is at fault.
fn is_usage(cause: &(dyn Error + 'static)) -> bool {
    let store = cause.downcast_ref::<ConnectError>();
    let is_store_setting = store.is_some_and(|store| matches!(store, ConnectError::Setting { .. }));
    is_store_setting || cause.is::<UsageError>() || cause.is::<SettingsError>()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_chain_of_causes_is_told_once() {
        let error = anyhow!("no route")
            .context("no connection: no route")
            .context("cannot append");
        assert_eq!(
            causes(error.as_ref()),
            ["cannot append", "no connection: no route"]
        );
        assert_eq!(
            describe(error.as_ref()),
            "cannot append: no connection: no route"
        );
    }

    #[test]
    fn the_exit_code_tells_usage_from_failure() {
        let code = |result| format!("{:?}", conclude(result));
        let exit = |number: u8| format!("{:?}", ExitCode::from(number));
        assert_eq!(code(Ok(Outcome::Done)), exit(0));
        assert_eq!(code(Ok(Outcome::Difference)), exit(1));
        assert_eq!(code(Err(anyhow!("broken"))), exit(1));
        let usage = Err(UsageError("which?".to_owned())).context("cannot tail");
        assert_eq!(code(usage), exit(2));
        let pipe = Err(std::io::Error::from(ErrorKind::BrokenPipe)).context("cannot print");
        assert_eq!(code(pipe), exit(0));
    }
}
