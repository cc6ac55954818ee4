//! The tools of one session: built-in tools and those of MCP servers.
//!
//! [`Servers`] is the configuration. A [`Toolbox`] holds the servers of one run of a session: it starts
//! a server at its first use, validates arguments and results against the server's schemas, and maps
//! every failure to a [`ToolOutcome`] that says what may have happened. A [`ToolSource`] is one server
//! ([`server`]) or the built-in tools ([`built_in`]).
//!
//! A server is a child process ([`process`]), a task of this program ([`in_process`]), or remote, over
//! HTTP ([`remote`]). The failures of a call:
//!
//! | kind | category | when |
//! |---|---|---|
//! | not sent | [`CATEGORY_CONNECTION`] | server not started or unreachable; HTTP 429; expired MCP session |
//! | refused | [`CATEGORY_CONNECTION`] | HTTP 401 and 403, any other 4xx, a redirect to another origin |
//! | unknown | [`CATEGORY_CONNECTION`] | timeout, server exited during the call, HTTP 5xx, answer too large |
//! | not sent | [`CATEGORY_INIT`] | unusable handshake or list of tools |
//!
//! Servers are third-party programs and are not trusted: a server gets none of our environment, every
//! wait for it has a deadline, all that it sends is bounded, its schemas cannot fetch anything, and it
//! does not outlive this process. The same holds for servers inside this program.

pub mod answer;
pub mod built_in;
pub mod catalogue;
pub mod connection;
pub mod holder;
pub mod in_process;
mod launch;
pub mod parameters;
pub mod pool;
pub mod process;
pub mod remote;
pub mod server;
pub mod servers;
pub mod stdout;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use graph::check::nearest;
use graph::effect::{CATALOGUE, ToolCall, ToolOffer};
use graph::outcome::{CATEGORY_TOOL_CHANGED, Failure, ToolOutcome};
use journal::clock::Clock;
use journal::id::SessionId;
use journal::store::Store;
use rmcp::model::{ClientConfig, Implementation};
use serde_json::Value;
use telemetry::context::TraceParent;

use self::answer::{ERROR_CHARS_MAX, cut};
use self::built_in::BuiltIn;
use self::connection::Target;
use self::server::Server;
pub use self::servers::Servers;
use crate::model::Models;
use crate::progress::{Broadcast, Listener};
use crate::session::ClaimedSession;

/// The name of the built-in server. It also serves calls that name no server.
pub const BUILT_IN_SERVER: &str = "daybook";

/// The category of connection failures: the server does not start, does not answer in time, has exited,
/// or does not accept our credentials.
pub const CATEGORY_CONNECTION: &str = "mcp_connection";

/// The category of handshake failures: the server answers, but not as a usable MCP server.
pub const CATEGORY_INIT: &str = "mcp_init";

/// Timeouts of opening a connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For starting the server, or connecting to it.
    pub connect: Duration,
    /// For the handshake and the list of tools. Over Streamable HTTP it includes connecting, which the
    /// first request does.
    pub init: Duration,
}

/// A source of tools.
pub trait ToolSource: Send + Sync {
    /// Its tools: `{"tools": [ToolSpec…]}`, with unusable ones as `"unusable": [{"name", "reason"}]`.
    fn catalogue(&self, timeout: Duration) -> impl Future<Output = ToolOutcome> + Send;

    /// A tool as the source offers it now.
    ///
    /// # Errors
    /// There is no such tool, or the source cannot be asked within `timeout`. No tool was called.
    fn offer(
        &self,
        tool: &str,
        timeout: Duration,
    ) -> impl Future<Output = Result<ToolOffer, Failure>> + Send;

    /// Calls a tool, with `parent` as its span's parent. Ends within `timeout`, plus the time to connect
    /// to the source at its first use.
    fn call(
        &self,
        tool: &str,
        arguments: &Value,
        timeout: Duration,
        parent: Option<TraceParent>,
    ) -> impl Future<Output = ToolOutcome> + Send;
}

/// The tools of one session's run. Close it: servers of a dropped toolbox are killed.
#[derive(Debug)]
pub struct Toolbox<S> {
    built_in: BuiltIn<S>,
    /// The tools that need a person's approval, as the agent names them.
    critical: &'static [&'static str],
    servers: BTreeMap<String, Server>,
}

impl<S: Store> Toolbox<S> {
    /// The tools of a session with this input. Starts no server.
    pub fn new(
        session: ClaimedSession<S>,
        servers: Servers,
        timeouts: Timeouts,
        models: Models,
        progress: &Broadcast,
        input: &Value,
    ) -> Self {
        let clock = session.hlc.clock().clone();
        let configured = servers.configured().map(str::to_owned).collect();
        let id = &session.author.session;
        let servers = of_session(&servers, id, input, timeouts, &clock, progress);
        Self { built_in: BuiltIn::new(session, configured, models), critical: &[], servers }
    }

    /// The same for an agent with these critical tools. Each must exist: a misspelt one would leave its tool without an
    /// approval, so no other tool of its server is called then.
    #[must_use]
    pub fn with_critical(self, critical: &'static [&'static str]) -> Self {
        Self { critical, ..self }
    }

    /// Makes one call, without retries; calls may run concurrently. [`CATALOGUE`] lists a server's tools.
    ///
    /// `timeout` bounds the call alone, by the session's clock; starting a server has the additional
    /// [`Timeouts`].
    pub async fn call(&self, call: &ToolCall, timeout: Duration) -> ToolOutcome {
        self.call_from(None, call, timeout).await
    }

    /// [`Self::call`] with a parent span.
    pub async fn call_from(
        &self,
        parent: Option<TraceParent>,
        call: &ToolCall,
        timeout: Duration,
    ) -> ToolOutcome {
        match call.server.as_deref() {
            None | Some(BUILT_IN_SERVER) => ask(&self.built_in, call, timeout, parent).await,
            Some(name) => match self.servers.get(name) {
                Some(server) => match self.without_its_critical(name, server, timeout).await {
                    Some(failure) => ToolOutcome::Failed(failure),
                    None => ask(server, call, timeout, parent).await,
                },
                None => ToolOutcome::Failed(no_such_server(&self.servers, name)),
            },
        }
    }

    /// The failure of a server that lacks a tool which the agent names as critical.
    async fn without_its_critical(
        &self,
        name: &str,
        server: &Server,
        timeout: Duration,
    ) -> Option<Failure> {
        let mut named = critical_of(self.critical, name).peekable();
        named.peek()?;
        // What it offers was read when it was connected. Without a connection, the call itself fails.
        let ToolOutcome::Ok(content) = server.catalogue(timeout).await else { return None };
        let tools = offered(&content);
        let lacks = named.find_map(|tool| lacks(name, tool, &tools))?;
        let message = format!("{lacks}; nothing was called");
        Some(Failure::refused(CATEGORY_INIT, cut(&message, ERROR_CHARS_MAX)))
    }

    /// The tool of a call as its server offers it now.
    ///
    /// # Errors
    /// There is no such tool, or the server cannot be asked within `timeout`. No tool was called.
    pub async fn offer(&self, call: &ToolCall, timeout: Duration) -> Result<ToolOffer, Failure> {
        match call.server.as_deref() {
            None | Some(BUILT_IN_SERVER) => self.built_in.offer(&call.tool, timeout).await,
            Some(name) => match self.servers.get(name) {
                Some(server) => server.offer(&call.tool, timeout).await,
                None => Err(no_such_server(&self.servers, name)),
            },
        }
    }

    /// [`Self::call_from`] for a call that a person approved for the tool with this hash. Asks the server
    /// for the tool again, and does not make the call if the server offers another one.
    pub async fn call_approved(
        &self,
        parent: Option<TraceParent>,
        call: &ToolCall,
        schema: &str,
        timeout: Duration,
    ) -> ToolOutcome {
        match self.offer(call, timeout).await {
            Ok(offered) if offered.schema_hash.as_str() == schema => {
                self.call_from(parent, call, timeout).await
            }
            Ok(offered) => ToolOutcome::Failed(changed(call, schema, &offered)),
            Err(failure) => ToolOutcome::Failed(failure),
        }
    }

    /// Stops all servers of its own: closes their stdin and kills those that do not exit. Shared ones stay for
    /// other sessions. Later calls fail.
    pub async fn close(&self) {
        join_all(self.servers.values().map(Server::close)).await;
    }
}

/// Lists the tools of one server outside any session: starts it, asks it and stops it.
pub async fn offer(
    servers: &Servers,
    name: &str,
    input: &Value,
    timeouts: Timeouts,
    clock: &Clock,
) -> ToolOutcome {
    // Without a call there is no progress, and without another session nothing to share.
    let (session, progress) = (SessionId::fresh(), Broadcast::default());
    let servers = servers.clone().unshared();
    let servers = of_session(&servers, &session, input, timeouts, clock, &progress);
    let Some(server) = servers.get(name) else {
        return ToolOutcome::Failed(no_such_server(&servers, name));
    };
    let offer = server.catalogue(timeouts.init).await;
    server.close().await;
    offer
}

/// The tools of a server among names of critical tools, `SERVER.TOOL`.
pub fn critical_of<'a>(critical: &'a [&'a str], server: &str) -> impl Iterator<Item = &'a str> {
    critical.iter().filter_map(move |name| name.strip_prefix(server)?.strip_prefix('.'))
}

/// The names of a server's tools, from its catalogue; those that cannot be used, too.
pub fn offered(catalogue: &Value) -> Vec<&str> {
    let lists = ["tools", "unusable"].into_iter().filter_map(|list| catalogue[list].as_array());
    lists.flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

/// What is wrong if a critical tool is not among those of its server.
pub fn lacks(server: &str, tool: &str, offered: &[&str]) -> Option<String> {
    if offered.contains(&tool) {
        return None;
    }
    let near = nearest(tool, offered.iter().copied());
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    Some(format!("the critical tool `{server}.{tool}` is not offered by server `{server}`{near}"))
}

fn of_session(
    servers: &Servers,
    session: &SessionId,
    input: &Value,
    timeouts: Timeouts,
    clock: &Clock,
    progress: &Broadcast,
) -> BTreeMap<String, Server> {
    let server = |(name, launch): (String, _)| {
        let (listener, readers) = (listener(&name, progress), servers.readers(&name));
        let target = Target { name: name.clone(), launch, readers, clock: clock.clone(), listener };
        (name, Server::new(session.clone(), target, timeouts, servers.pool()))
    };
    servers.launches(session, input).into_iter().map(server).collect()
}

fn listener(server: &str, progress: &Broadcast) -> Listener {
    let ours = Implementation::new("daybook", env!("CARGO_PKG_VERSION"));
    Listener::new(server, progress, ClientConfig::new(Default::default(), ours))
}

fn changed(call: &ToolCall, approved: &str, offered: &ToolOffer) -> Failure {
    let server = call.server.as_deref().unwrap_or(BUILT_IN_SERVER);
    let message = format!(
        "the tool `{}` of server `{server}` was approved as {approved}, and the server now offers {}; \
         nothing was called",
        call.tool, offered.schema_hash
    );
    Failure::refused(CATEGORY_TOOL_CHANGED, cut(&message, ERROR_CHARS_MAX))
}

fn no_such_server(servers: &BTreeMap<String, Server>, name: &str) -> Failure {
    let names: Vec<&str> = servers.keys().map(String::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!(
        "no MCP server is named `{name}`; known servers: {names}; configure others under \
         `[mcp.NAME]` in daybook.toml, or in the file that DAYBOOK_MCP_SERVERS names"
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
