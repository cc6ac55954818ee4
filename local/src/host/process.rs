//! One agent process, in a container's stead.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::process::die_with_parent;

/// How long a process may take to finish after SIGTERM, by the machine's clock.
///
/// Source: AWS, Bedrock `AgentCore` runtime: SIGTERM, then up to 15 s.
const TERMINATE_WITHIN: Duration = Duration::from_secs(15);

/// Starts a program that dies with this process.
pub(super) fn start(program: &Path, environment: &[(String, String)]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    die_with_parent(&mut command);
    command.spawn()
}

/// Asks a process to finish, and ends it if it does not.
pub(super) async fn terminate(child: &mut Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        #[expect(unsafe_code, reason = "the standard library sends no SIGTERM")]
        // SAFETY: the child has not been waited for, so that its number is still its own.
        unsafe {
            libc::kill(id, libc::SIGTERM);
        }
    }
    if timeout(TERMINATE_WITHIN, child.wait()).await.is_err() {
        // It can only have ended meanwhile.
        let _ = child.kill().await;
    }
}
