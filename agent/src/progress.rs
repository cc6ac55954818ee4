//! What tools say of their calls while these run: told to whoever listens, never journaled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::id::SessionId;
use rmcp::ClientHandler;
use rmcp::model::{ClientConfig, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::tool::answer::cut;

/// Most reports that wait for a listener. A slower one misses the oldest.
const WAITING_MAX: usize = 256;

/// Longest message that is passed on, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// How far a running call has come, in its server's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The session.
    pub session_id: SessionId,
    /// The server.
    pub server: String,
    /// The tool, unless several calls of the server are running: their reports look alike.
    pub tool: Option<String>,
    /// So much is done, in a unit of the server's own.
    pub progress: f64,
    /// Of so much, if the server knows.
    pub total: Option<f64>,
    /// What it is about.
    pub message: Option<String>,
}

/// Where progress is told. Nobody need listen.
#[derive(Clone, Debug)]
pub struct Broadcast(broadcast::Sender<Arc<Progress>>);

impl Default for Broadcast {
    fn default() -> Self {
        Self(broadcast::channel(WAITING_MAX).0)
    }
}

impl Broadcast {
    /// The reports of all sessions from now on. A listener that is more than 256 behind misses the
    /// oldest.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Progress>> {
        self.0.subscribe()
    }

    /// Tells a report to whoever listens.
    pub fn tell(&self, report: Progress) {
        // Nobody may be listening.
        let _ = self.0.send(Arc::new(report));
    }
}

/// Listens to one server on behalf of one session.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    session: SessionId,
    server: String,
    broadcast: Broadcast,
    /// The tools of the calls that are running.
    running: Arc<Mutex<Vec<String>>>,
    ours: ClientConfig,
}

/// A running call; its end is known however it comes.
pub(crate) struct RunningCall<'a> {
    listener: &'a Listener,
    tool: &'a str,
}

impl Listener {
    pub(crate) fn new(
        session: SessionId,
        server: &str,
        broadcast: &Broadcast,
        ours: ClientConfig,
    ) -> Self {
        let (server, broadcast) = (server.to_owned(), broadcast.clone());
        Self { session, server, broadcast, running: Arc::default(), ours }
    }

    /// Takes note that a call of this tool is running.
    pub(crate) fn begin<'a>(&'a self, tool: &'a str) -> RunningCall<'a> {
        self.running().push(tool.to_owned());
        RunningCall { listener: self, tool }
    }

    fn report(&self, said: ProgressNotificationParam) -> Option<Progress> {
        let finite = |number: f64| number.is_finite().then_some(number);
        let tool = match self.running().as_slice() {
            [] => return None,
            [tool] => Some(tool.clone()),
            _ => None,
        };
        Some(Progress {
            session_id: self.session.clone(),
            server: self.server.clone(),
            tool,
            progress: finite(said.progress)?,
            total: said.total.and_then(finite),
            message: said.message.map(|message| cut(&message, MESSAGE_CHARS_MAX)),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<String>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut running = self.listener.running();
        if let Some(place) = running.iter().position(|tool| tool == self.tool) {
            running.remove(place);
        }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.ours.clone()
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(progress) = self.report(said) {
            self.broadcast.tell(progress);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ProgressToken};

    use super::*;

    fn said(progress: f64, message: &str) -> ProgressNotificationParam {
        let token = ProgressToken(NumberOrString::Number(1));
        ProgressNotificationParam::new(token, progress).with_message(message)
    }

    #[test]
    fn a_report_names_its_tool_where_it_can_be_no_other_s_and_is_cut() {
        let listener =
            Listener::new(SessionId::fresh(), "s", &Broadcast::default(), ClientConfig::default());
        assert_eq!(listener.report(said(1.0, "early")), None, "no call is running");
        let run = listener.begin("run");
        let report = listener.report(said(1.0, &"x".repeat(5_000))).unwrap();
        assert_eq!(report.tool.as_deref(), Some("run"));
        assert_eq!(report.message.unwrap().chars().count(), MESSAGE_CHARS_MAX);
        assert_eq!(listener.report(said(f64::NAN, "odd")), None);
        let other = listener.begin("other");
        assert_eq!(listener.report(said(2.0, "whose")).unwrap().tool, None);
        drop(run);
        assert_eq!(listener.report(said(3.0, "")).unwrap().tool.as_deref(), Some("other"));
        drop(other);
    }
}
