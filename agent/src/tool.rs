//! The tools of one session: those of MCP servers and the built-in ones.
//!
//! [`Servers`] says which servers there are. A [`Toolbox`] has them for one run of a session: it
//! starts a server at its first use, holds arguments and results against the server's own schemas,
//! and turns whatever can go wrong into a [`ToolOutcome`] that says what may have happened. A
//! [`ToolSource`] is one server ([`server`]) or what is built in ([`built_in`]).
//!
//! A server is a process of ours ([`process`]), a part of this program ([`in_process`]), or somewhere
//! else and reached over HTTP ([`remote`]). What a call that brought no result may have done:
//!
//! | kind | category | when |
//! |---|---|---|
//! | not sent | [`CATEGORY_CONNECTION`] | it does not start or cannot be reached; HTTP 429; a session that it forgot |
//! | refused | [`CATEGORY_CONNECTION`] | HTTP 401 and 403, any other 4xx, a redirect to another origin |
//! | unknown | [`CATEGORY_CONNECTION`] | no answer in time, gone during the call, HTTP 5xx, an answer beyond its bound |
//! | not sent | [`CATEGORY_INIT`] | it answers, but its handshake or its list of tools cannot be used |
//!
//! A server is somebody else's program and is not trusted: it gets none of our environment, every
//! wait for it has a deadline, everything that it sends has a bound, its schemas may not have
//! anything fetched, and it does not outlive us. One that is a part of this program is held to the
//! same.

pub mod answer;
pub mod built_in;
pub mod catalogue;
mod connection;
pub mod in_process;
mod launch;
pub mod parameters;
pub mod process;
pub mod remote;
pub mod server;
pub mod servers;
pub mod stdout;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use graph::effect::{CATALOGUE, ToolCall};
use graph::outcome::{Failure, ToolOutcome};
use journal::clock::Clock;
use journal::id::SessionId;
use journal::store::Store;
use rmcp::model::{ClientConfig, Implementation};
use serde_json::Value;
use telemetry::context::TraceParent;

use self::answer::{ERROR_CHARS_MAX, cut};
use self::built_in::BuiltIn;
use self::server::Server;
pub use self::servers::Servers;
use crate::model::Models;
use crate::progress::{Broadcast, Listener};
use crate::session::Session;

/// The name of the server that is built in. A call that names no server is one of it, too.
pub const BUILT_IN_SERVER: &str = "daybook";

/// The category of failures to reach a server: it does not start, does not answer in time, is gone, or
/// does not accept our credentials.
pub const CATEGORY_CONNECTION: &str = "mcp_connection";

/// The category of failures of a server's handshake: it answers, but not so that it can be used.
pub const CATEGORY_INIT: &str = "mcp_init";

/// How long a server may take until it can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To start, or to be connected to.
    pub connect: Duration,
    /// To shake hands and list its tools; over Streamable HTTP this begins with the connection, which
    /// is made for the first request.
    pub init: Duration,
}

/// Somebody who has tools.
pub trait ToolSource: Send + Sync {
    /// What it offers: `{"tools": [ToolSpec…]}`, and those that cannot be used as `"unusable":
    /// [{"name", "reason"}]`.
    fn catalogue(&self, timeout: Duration) -> impl Future<Output = ToolOutcome> + Send;

    /// Calls a tool, which is told the span that it is called from. Ends within `timeout`, and what it
    /// takes to reach the source the first time.
    fn call(
        &self,
        tool: &str,
        arguments: &Value,
        timeout: Duration,
        parent: Option<TraceParent>,
    ) -> impl Future<Output = ToolOutcome> + Send;
}

/// The tools of one session's run. To be closed; what is only dropped is killed.
#[derive(Debug)]
pub struct Toolbox<S> {
    built_in: BuiltIn<S>,
    servers: BTreeMap<String, Server>,
}

impl<S: Store> Toolbox<S> {
    /// The tools of a session with this input. Starts nothing.
    pub fn new(
        session: Session<S>,
        servers: Servers,
        timeouts: Timeouts,
        models: Models,
        progress: &Broadcast,
        input: &Value,
    ) -> Self {
        let clock = session.hlc.clock().clone();
        let configured = servers.configured().map(str::to_owned).collect();
        let listens = |name: &str| listener(&session.author.session, name, progress);
        let servers = of_input(&servers, input, timeouts, &clock, listens);
        Self { built_in: BuiltIn::new(session, configured, models), servers }
    }

    /// Makes one call, at once and once; several may run at a time. [`CATALOGUE`] asks what a
    /// server offers.
    ///
    /// `timeout` is the call's own, by the session's clock; a server that is not running yet has
    /// besides what [`Timeouts`] allow.
    pub async fn call(&self, call: &ToolCall, timeout: Duration) -> ToolOutcome {
        self.call_from(None, call, timeout).await
    }

    /// As [`Self::call`], from within a span.
    pub async fn call_from(
        &self,
        parent: Option<TraceParent>,
        call: &ToolCall,
        timeout: Duration,
    ) -> ToolOutcome {
        match call.server.as_deref() {
            None | Some(BUILT_IN_SERVER) => ask(&self.built_in, call, timeout, parent).await,
            Some(name) => match self.servers.get(name) {
                Some(server) => ask(server, call, timeout, parent).await,
                None => ToolOutcome::Failed(no_such_server(&self.servers, name)),
            },
        }
    }

    /// Ends all servers: closes their stdin and kills those that do not stop. Nothing can be
    /// called afterwards.
    pub async fn close(&self) {
        join_all(self.servers.values().map(Server::close)).await;
    }
}

/// What one server offers, outside any session: starts it, asks it and ends it.
pub async fn offer(
    servers: &Servers,
    name: &str,
    input: &Value,
    timeouts: Timeouts,
    clock: &Clock,
) -> ToolOutcome {
    // Nobody listens: nothing is called.
    let nobody = (SessionId::fresh(), Broadcast::default());
    let listens = |name: &str| listener(&nobody.0, name, &nobody.1);
    let servers = of_input(servers, input, timeouts, clock, listens);
    let Some(server) = servers.get(name) else {
        return ToolOutcome::Failed(no_such_server(&servers, name));
    };
    let offer = server.catalogue(timeouts.init).await;
    server.close().await;
    offer
}

fn of_input(
    servers: &Servers,
    input: &Value,
    timeouts: Timeouts,
    clock: &Clock,
    listens: impl Fn(&str) -> Listener,
) -> BTreeMap<String, Server> {
    let server = |(name, launch): (String, _)| {
        let listener = listens(&name);
        (name.clone(), Server::new(name, launch, timeouts, clock.clone(), listener))
    };
    servers.launches(input).into_iter().map(server).collect()
}

fn listener(session: &SessionId, server: &str, progress: &Broadcast) -> Listener {
    let ours = Implementation::new("daybook", env!("CARGO_PKG_VERSION"));
    Listener::new(session.clone(), server, progress, ClientConfig::new(Default::default(), ours))
}

fn no_such_server(servers: &BTreeMap<String, Server>, name: &str) -> Failure {
    let names: Vec<&str> = servers.keys().map(String::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!(
        "no MCP server is named `{name}`; there are: {names}; others are configured in the file \
         that DAYBOOK_MCP_SERVERS names"
    );
    Failure::refused(CATEGORY_CONNECTION, cut(&message, ERROR_CHARS_MAX))
}

async fn ask(
    source: &impl ToolSource,
    call: &ToolCall,
    timeout: Duration,
    parent: Option<TraceParent>,
) -> ToolOutcome {
    match call.tool.as_str() {
        CATALOGUE => source.catalogue(timeout).await,
        tool => source.call(tool, &call.arguments, timeout, parent).await,
    }
}
