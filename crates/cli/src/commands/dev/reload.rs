//! Notices a change of `daybook.toml`, and starts this process anew with it.
//!
//! The process replaces itself, so that a reload reads everything exactly as a start does. A child with the same command
//! line checks the change before, so that a mistake in the file stops nothing.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agent::project::Project;
use anyhow::Context as _;
use serde_json::Value;

use crate::commands::catalogue::listing;
use crate::failure::Failure;
use crate::output;
use crate::project;
use crate::resolve::Context;

/// How often the files are looked at. A change is taken once it has lasted this long, because editors write in parts.
const PERIOD: Duration = Duration::from_millis(300);

/// How long the check of a change may take: it starts each agent's program.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// What of a file shows that it was changed: modification time in nanoseconds, size, inode.
type Mark = Option<(i64, i64, u64, u64)>;

/// The files that a reload reads.
pub struct Watched {
    files: Vec<(PathBuf, Mark)>,
}

impl Watched {
    /// Watches the files as they are.
    pub fn new(project: &Project) -> Self {
        let files = project.files().into_iter();
        Self { files: files.map(|path| (path.clone(), mark(&path))).collect() }
    }

    /// Waits for a change that a start can use. Says why others are not used.
    pub async fn usable_change(&mut self, context: &Context) {
        loop {
            let file = self.change().await;
            let file = file.file_name().unwrap_or(file.as_os_str()).display();
            match self.is_usable(context).await {
                Ok(true) => {
                    return output::say(&format!("{file} has changed; the stack starts again"));
                }
                Ok(false) => {}
                Err(failure) => {
                    output::say(&format!(
                        "warning: {file} has changed and is not used; the stack goes on as it was: {failure}"
                    ));
                }
            }
        }
    }

    /// Waits until a file has changed and stays as it is. Returns the first that did.
    async fn change(&mut self) -> PathBuf {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        let mut changed = None;
        loop {
            tokio::time::sleep(PERIOD).await;
            let marks: Vec<Mark> = self.files.iter().map(|(path, _)| mark(path)).collect();
            let newly = marks.iter().zip(&self.files).find(|(now, (_, then))| *now != then);
            match (newly, &changed) {
                (None, Some(_)) => return changed.unwrap_or_default(),
                (Some((_, (path, _))), None) => changed = Some(path.clone()),
                _ => {}
            }
            for (now, (_, then)) in marks.into_iter().zip(&mut self.files) {
                *then = now;
            }
        }
    }

    /// Whether the change makes a difference, and a start has what it needs. An agent's program is started anew for each
    /// run of a session, so that only a change of its description makes one.
    async fn is_usable(&self, context: &Context) -> Result<bool, Failure> {
        let project = project::read(context.project.path.as_deref())?;
        if project == *context.project {
            let agents = project.agents().await.map_err(project::failure)?;
            let known: Vec<Value> = context.agents.iter().map(listing).collect();
            if agents.iter().all(|agent| known.contains(&listing(agent))) {
                return Ok(false);
            }
        }
        checked(&context.binary).await?;
        Ok(true)
    }
}

fn mark(path: &Path) -> Mark {
    let data = std::fs::metadata(path).ok()?;
    Some((data.mtime(), data.mtime_nsec(), data.size(), data.ino()))
}

/// The command line of this process, without the program.
fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

/// Lets a child with the same command line check what a start needs.
async fn checked(binary: &Path) -> Result<(), Failure> {
    let mut command = tokio::process::Command::new(binary);
    command.args(arguments()).arg("--check").stdin(Stdio::null()).kill_on_drop(true);
    let ran = tokio::time::timeout(CHECK_TIMEOUT, command.output()).await;
    let ran = ran.with_context(|| format!("the check took {} s", CHECK_TIMEOUT.as_secs()))?;
    let ran = ran.context("cannot start the check")?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(Failure::unknown(said.trim().trim_start_matches("error: ").to_owned()))
}

/// Replaces this process by a new start of it. Returns only if that fails.
pub fn start_anew(context: &Context) -> Failure {
    telemetry::export::flush();
    let error = std::process::Command::new(&context.binary).args(arguments()).exec();
    Failure::unknown(format!("cannot start {} again: {error}", context.binary.display()))
}
