//! Asks a program what it is.

use std::time::Duration;

use graph::program::frame::{self, Said};
use graph::program::{Description, Launch};

use super::process::{Gone, Process};

/// How long a program may take to describe itself.
pub const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a program cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start `{command}`")]
    Start {
        command: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{command}` did not describe itself: {reason}")]
    Silent { command: String, reason: String },
}

/// Starts a program to read its description.
///
/// # Errors
/// It cannot be started, or does not answer in [`DESCRIBE_TIMEOUT`].
pub async fn describe(launch: &Launch) -> Result<Description, Error> {
    let command = launch.command.join(" ");
    let mut process = match Process::start(launch, str::to_owned).await {
        Ok(process) => process,
        Err(source) => return Err(Error::Start { command, source }),
    };
    let reason = match tokio::time::timeout(DESCRIBE_TIMEOUT, ask(&mut process)).await {
        Ok(Ok(description)) => return Ok(description),
        Ok(Err(Gone::Broken(_, reason))) => reason,
        Ok(Err(Gone::Closed)) => process.ending().await.0,
        Err(_) => format!("no answer in {} s", DESCRIBE_TIMEOUT.as_secs()),
    };
    Err(Error::Silent { command, reason })
}

async fn ask(process: &mut Process) -> Result<Description, Gone> {
    process.send(&frame::describe()).await?;
    process.greeted().await?;
    match process.frame().await? {
        Said::Description(description) => Ok(*description),
        _ => Err(Gone::Broken("Malformed", "it sent another frame".to_owned())),
    }
}
