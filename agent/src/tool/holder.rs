//! One server, running or not: started at its first use, and again if it has exited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use graph::outcome::Failure;
use tokio::sync::Mutex;

use super::connection::{Connection, Target};
use super::{CATEGORY_CONNECTION, Timeouts};

/// Most starts of a server in one run of a session, including the first.
pub const STARTS_MAX: u32 = 5;

#[derive(Debug)]
pub(super) struct Holder {
    target: Target,
    timeouts: Timeouts,
    /// Completed starts, read outside the lock.
    starts: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Not started, or the last start failed with this.
    Down(Option<Failure>),
    /// Running, as far as known.
    Up(Arc<Connection>),
    /// Stopped for good.
    Closed,
}

impl Holder {
    pub(super) fn new(target: Target, timeouts: Timeouts) -> Self {
        let (starts, state) = (AtomicU32::new(0), Mutex::new(State::Down(None)));
        Self { target, timeouts, starts, state }
    }

    /// The connection. Starts the server if it is not running, unless `of_run` has reached [`STARTS_MAX`],
    /// and counts the start there.
    pub(super) async fn connection(&self, of_run: &AtomicU32) -> Result<Arc<Connection>, Failure> {
        let starts_before = self.starts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        let last_failure = match &*state {
            State::Closed => return Err(closed()),
            State::Up(connection) if connection.is_usable().await => return Ok(connection.clone()),
            State::Up(gone) => {
                gone.kill().await;
                None
            }
            State::Down(failure) => failure.clone(),
        };
        // Calls that waited for the same start share its failure. With a start each, the last call
        // would wait for the deadlines of all others.
        let starts = self.starts.load(Ordering::Acquire);
        if let Some(failure) = last_failure.as_ref().filter(|_| starts > starts_before) {
            return Err(failure.clone());
        }
        let starts = of_run.load(Ordering::Acquire);
        if starts >= STARTS_MAX {
            *state = State::Down(last_failure);
            return Err(self.started_too_often(starts));
        }
        *state = State::Down(None);
        let opened = Connection::open(&self.target, self.timeouts).await;
        of_run.fetch_add(1, Ordering::Release);
        self.starts.fetch_add(1, Ordering::Release);
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Up(connection.clone());
                Ok(connection)
            }
            Err(failure) => {
                *state = State::Down(Some(failure.clone()));
                Err(failure)
            }
        }
    }

    /// Stops the server for good.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        if let State::Up(connection) = std::mem::replace(&mut *state, State::Closed) {
            connection.close().await;
        }
    }

    fn started_too_often(&self, starts: u32) -> Failure {
        let problem = format!("was started {starts} times in this run and is not started again");
        let hint = format!("try it with `daybook tools {}`", self.target.name);
        Failure::refused(CATEGORY_CONNECTION, self.target.message(&problem, &hint))
    }
}

pub(super) fn closed() -> Failure {
    Failure::not_sent(CATEGORY_CONNECTION, "the session's tools are closed")
}
