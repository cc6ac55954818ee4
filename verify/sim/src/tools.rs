//! MCP servers of a simulated session: the real protocol over an in-memory pipe, with a log of
//! calls.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use agent::tool::Servers;
use rmcp::ServiceExt as _;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{DynService, NotificationContext, RequestContext, RoleServer, Service};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, split};

use crate::process::Process;
use crate::store::Disk;
use crate::table::Call;

type Start = dyn Fn(&Value) -> Box<dyn DynService<RoleServer>> + Send + Sync;

/// An MCP server for a scenario's agents.
#[derive(Clone)]
pub struct ToolServer {
    name: &'static str,
    start: Arc<Start>,
}

impl ToolServer {
    /// A server with this name. `start` creates it for each run, from the session's input.
    pub fn new<S: Service<RoleServer>>(
        name: &'static str,
        start: impl Fn(&Value) -> S + Send + Sync + 'static,
    ) -> Self {
        Self { name, start: Arc::new(move |input| start(input).into_dyn()) }
    }

    /// The server as a part of an agent's process: it dies with it.
    pub(crate) fn of(&self, process: &Arc<Process>, disk: &Arc<Disk>) -> Servers {
        let (name, start) = (self.name, Arc::clone(&self.start));
        let (process, disk) = (Arc::clone(process), Arc::clone(disk));
        let serve = move |input: &Value, stream: DuplexStream| {
            let (process, disk) = (Arc::clone(&process), Arc::clone(&disk));
            let counted = Counted { server: start(input), name, process, disk };
            let serving = async move {
                // A client that closes during the handshake has died, which is expected here.
                if let Ok(running) = counted.serve(split(stream)).await {
                    let _ = running.waiting().await;
                }
            };
            Box::pin(serving) as _
        };
        Servers::in_process(name, Arc::new(serve))
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolServer").field(&self.name).finish()
    }
}

/// A server that takes time and logs each call.
struct Counted<S> {
    server: S,
    name: &'static str,
    process: Arc<Process>,
    disk: Arc<Disk>,
}

impl<S: Service<RoleServer>> Service<RoleServer> for Counted<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let ClientRequest::CallToolRequest(call) = &request else {
            return self.server.handle_request(request, context).await;
        };
        let call = Call {
            at: self.disk.now(),
            process: self.process.name.clone(),
            after: 0,
            server: self.name.to_owned(),
            tool: call.params.name.to_string(),
            arguments: json!(call.params.arguments),
        };
        self.disk.pass_time().await;
        self.process.reach().await;
        self.disk.table().called(Call { at: self.disk.now(), ..call });
        let result = self.server.handle_request(request, context).await;
        self.disk.pass_time().await;
        self.process.reach().await;
        result
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }
}
