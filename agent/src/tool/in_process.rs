//! A server inside this program: MCP over a pipe in memory.
//!
//! For programs with their own tools, and for the simulator, whose simulated clock cannot control a
//! child process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journal::clock::Clock;
use serde_json::Value;
use tokio::io::{DuplexStream, duplex, split};
use tokio::task::JoinSet;

use super::process::Pipes;

/// Serves one client until it disconnects. Gets the session's input and the server's end of the pipe.
pub type Serve = dyn Fn(&Value, DuplexStream) -> BoxFuture<'static, ()> + Send + Sync;

/// Buffer of each direction, in bytes.
const PIPE_BYTES: usize = 64 * 1024;

/// A server for a session with this input.
#[derive(Clone)]
pub(super) struct InProcess {
    pub(super) input: Value,
    pub(super) serve: Arc<Serve>,
}

impl InProcess {
    /// Starts it. Dropping the task ends it.
    pub(super) fn start(&self) -> (Task, Pipes) {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let mut task = JoinSet::new();
        task.spawn((self.serve)(&self.input, theirs));
        let (stdout, stdin) = split(ours);
        (Task(task), Pipes { stdin: Box::new(stdin), stdout: Box::new(stdout) })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Task(JoinSet<()>);

impl Task {
    /// Waits until it ends by itself, after its client disconnected, and aborts it otherwise.
    pub(super) async fn end(&mut self, within: Duration, clock: &Clock) {
        clock.timeout(within, self.0.join_next()).await;
        self.kill();
    }

    pub(super) fn kill(&mut self) {
        self.0.abort_all();
    }
}
