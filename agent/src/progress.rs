//! Progress of running tool calls: broadcast to listeners, never journaled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::id::SessionId;
use rmcp::ClientHandler;
use rmcp::model::{ClientConfig, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::tool::answer::cut;

/// Most reports buffered for a listener. A slower one misses the oldest.
const WAITING_MAX: usize = 256;

/// Longest forwarded message, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// A server's progress report on a running call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub session_id: SessionId,
    pub server: String,
    /// `None` while several calls of the server run: their reports cannot be distinguished.
    pub tool: Option<String>,
    /// In the server's own unit.
    pub progress: f64,
    /// In the same unit, if the server knows it.
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The channel of progress reports. It works without listeners.
#[derive(Clone, Debug)]
pub struct Broadcast(broadcast::Sender<Arc<Progress>>);

impl Default for Broadcast {
    fn default() -> Self {
        Self(broadcast::channel(WAITING_MAX).0)
    }
}

impl Broadcast {
    /// The reports of all sessions from now on. A listener that is more than 256 reports behind misses
    /// the oldest.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Progress>> {
        self.0.subscribe()
    }

    /// Sends a report to all listeners.
    pub fn tell(&self, report: Progress) {
        // An error means that there is no listener.
        let _ = self.0.send(Arc::new(report));
    }
}

/// The MCP client handler for one server, which several sessions may share.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    server: String,
    broadcast: Broadcast,
    /// The sessions and tools of the running calls.
    running: Arc<Mutex<Vec<(SessionId, String)>>>,
    ours: ClientConfig,
}

/// Guard of a running call: removes it on drop.
pub(crate) struct RunningCall<'a> {
    listener: &'a Listener,
    session: &'a SessionId,
    tool: &'a str,
}

impl Listener {
    pub(crate) fn new(server: &str, broadcast: &Broadcast, ours: ClientConfig) -> Self {
        let (server, broadcast) = (server.to_owned(), broadcast.clone());
        Self { server, broadcast, running: Arc::default(), ours }
    }

    /// Registers a running call of this session and tool.
    pub(crate) fn begin<'a>(&'a self, session: &'a SessionId, tool: &'a str) -> RunningCall<'a> {
        self.running().push((session.clone(), tool.to_owned()));
        RunningCall { listener: self, session, tool }
    }

    fn report(&self, said: ProgressNotificationParam) -> Option<Progress> {
        let finite = |number: f64| number.is_finite().then_some(number);
        let (session_id, tool) = match self.running().as_slice() {
            [] => return None,
            [(session, tool)] => (session.clone(), Some(tool.clone())),
            [(session, _), others @ ..] if others.iter().all(|(other, _)| other == session) => {
                (session.clone(), None)
            }
            // A report of several sessions' calls cannot be attributed.
            _ => return None,
        };
        Some(Progress {
            session_id,
            server: self.server.clone(),
            tool,
            progress: finite(said.progress)?,
            total: said.total.and_then(finite),
            message: said.message.map(|message| cut(&message, MESSAGE_CHARS_MAX)),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<(SessionId, String)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut running = self.listener.running();
        let is_this =
            |(session, tool): &(SessionId, String)| session == self.session && tool == self.tool;
        if let Some(place) = running.iter().position(is_this) {
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
    fn a_report_names_its_tool_while_only_one_call_runs() {
        let listener = Listener::new("s", &Broadcast::default(), ClientConfig::default());
        let (session, stranger) = (SessionId::fresh(), SessionId::fresh());
        assert_eq!(listener.report(said(1.0, "early")), None, "no call is running");
        let run = listener.begin(&session, "run");
        let report = listener.report(said(1.0, &"x".repeat(5_000))).unwrap();
        assert_eq!(report.tool.as_deref(), Some("run"));
        assert_eq!(report.message.unwrap().chars().count(), MESSAGE_CHARS_MAX);
        assert_eq!(listener.report(said(f64::NAN, "odd")), None);
        let other = listener.begin(&session, "other");
        assert_eq!(listener.report(said(2.0, "whose")).unwrap().tool, None);
        drop(run);
        let report = listener.report(said(3.0, "")).unwrap();
        assert_eq!((report.session_id, report.tool.as_deref()), (session.clone(), Some("other")));
        let foreign = listener.begin(&stranger, "other");
        assert_eq!(listener.report(said(4.0, "whose session")), None);
        drop(foreign);
        assert!(listener.report(said(5.0, "")).is_some());
        drop(other);
    }
}
