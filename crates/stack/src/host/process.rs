//! One agent process: its start, and its end by SIGTERM.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::process::die_with_parent;

/// How long a process has to exit after SIGTERM, by the machine's clock.
///
/// Source: AWS, Bedrock `AgentCore` runtime: SIGTERM, then up to 15 s.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(15);

/// Starts a program that dies with this process.
pub(super) fn start(
    program: &Path,
    arguments: &[String],
    environment: &[(String, String)],
) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    die_with_parent(&mut command);
    command.spawn()
}

/// Sends SIGTERM to a process, then kills it if it does not exit in time.
pub(super) async fn terminate(child: &mut Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
        // SAFETY: the child has not been waited for, so its process id is still valid.
        unsafe {
            libc::kill(id, libc::SIGTERM);
        }
    }
    if timeout(TERMINATE_TIMEOUT, child.wait()).await.is_err() {
        // An error means that it has already exited.
        let _ = child.kill().await;
    }
}
