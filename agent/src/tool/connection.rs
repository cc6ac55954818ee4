//! One connection to a server: opens it and lists its tools, calls them, and closes it.

use std::num::NonZeroUsize;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use graph::effect::{ToolOffer, ToolSpec};
use graph::outcome::{Failure, FailureKind};
use journal::clock::Clock;
use journal::id::SessionId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientRequest, ErrorCode, ListToolsResult,
    PaginatedRequestParams, PingRequest,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::DynamicTransportError;
use serde_json::Value;
use telemetry::context::TraceParent;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::answer::{ERROR_CHARS_MAX, cut};
use super::catalogue::{Catalogue, Listed, Readers};
use super::launch::Launch;
use super::process::{CLOSE_GRACE, Pipes, Running};
use super::remote::{self, Mishap};
use super::stdout::{Lines, Oddities};
use super::{CATEGORY_CONNECTION, CATEGORY_INIT, Timeouts};
use crate::progress::Listener;

/// Most pages of a server's list of tools. A longer list is an error.
pub const PAGES_MAX: usize = 32;

/// Most foreign programs that this process starts as servers at once. Further starts wait, before their timeouts begin:
/// after a restart of a stack, every session starts its servers.
pub const STARTS_AT_ONCE: usize = 32;

/// The permits to start a foreign program. Never closed.
static STARTS: Semaphore = Semaphore::const_new(STARTS_AT_ONCE);

/// The permits to start one of our own, which only needs a processor: one for each. More at once would all end later.
static OWN_STARTS: LazyLock<Semaphore> = LazyLock::new(|| {
    Semaphore::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
});

/// Timeout of the ping to a server that missed a call's deadline.
pub const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest message about a failed handshake, in characters: it may quote the server.
const HANDSHAKE_CHARS_MAX: usize = 300;

/// The field of a request's `_meta` with the parent span.
///
/// Source: Model Context Protocol, SEP-414, "Request meta: OpenTelemetry trace context".
pub(super) const TRACEPARENT_META: &str = "traceparent";

/// The server of a connection.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) launch: Launch,
    pub(super) readers: Readers,
    pub(super) clock: Clock,
    pub(super) listener: Listener,
}

/// A connection to a running server with its list of tools.
#[derive(Debug)]
pub(super) struct Connection {
    /// As last listed.
    catalogue: Mutex<Arc<Catalogue>>,
    target: Target,
    peer: Peer<RoleClient>,
    /// `None` once the connection is closing.
    running: AsyncMutex<Option<Client>>,
    process: AsyncMutex<Running>,
    oddities: Arc<Oddities>,
    /// Set when a call missed its deadline: the server may hang.
    is_suspect: AtomicBool,
    /// Set when the server needs a new connection.
    is_over: AtomicBool,
}

/// The transport to a server.
enum Wire {
    Pipes(Pipes),
    Remote(remote::Wire),
}

/// Why a handshake failed.
enum Handshake {
    /// It took longer than this timeout.
    Late(Duration),
    /// The server closed its stdout, or wrote a message that is too long.
    Gone,
    /// The server's answer is unusable.
    Unusable(String),
    /// A request over HTTP failed.
    Mishap(Mishap),
}

impl Connection {
    /// Starts a server, performs the handshake and lists its tools. Waits while too many programs start.
    ///
    /// # Errors
    /// A failure of the kind `NotSent` or `Refused`: no tool was called.
    pub(super) async fn open(target: &Target, timeouts: Timeouts) -> Result<Self, Failure> {
        let _permit = match &target.launch {
            Launch::Program(program) if program.is_own => OWN_STARTS.acquire().await.ok(),
            Launch::Program(_) => STARTS.acquire().await.ok(),
            Launch::InProcess(_) | Launch::Remote(_) => None,
        };
        let oddities = Arc::new(Oddities::default());
        let (mut process, wire) = target.start(timeouts.connect, &oddities).await?;
        let handshake = Box::pin(handshake(target, wire, oddities.clone()));
        let failed = match target.clock.timeout(timeouts.init, handshake).await {
            Some(Ok((running, catalogue))) => {
                return Ok(Self {
                    catalogue: Mutex::new(Arc::new(catalogue)),
                    target: target.clone(),
                    peer: running.peer().clone(),
                    running: AsyncMutex::new(Some(running)),
                    process: AsyncMutex::new(process),
                    oddities,
                    is_suspect: AtomicBool::new(false),
                    is_over: AtomicBool::new(false),
                });
            }
            Some(Err(failed)) => failed,
            None => Handshake::Late(timeouts.init),
        };
        let status = match failed {
            Handshake::Gone => process.exit_status(&target.clock).await,
            Handshake::Late(_) | Handshake::Unusable(_) | Handshake::Mishap(_) => None,
        };
        let about = about(&process, &oddities);
        process.kill(&target.clock).await;
        let Handshake::Mishap(mishap) = failed else {
            let hint = format!("try it with `daybook tools {}`{about}", target.name);
            return Err(target.not_sent(failed.category(), &failed.problem(status), &hint));
        };
        Err(target.not_opened(&mishap))
    }

    /// The server's tools, as it last listed them.
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A tool as the server offers it now: asks it for its list again.
    ///
    /// # Errors
    /// The server does not list its tools in time, or has no such tool. No tool was called.
    pub(super) async fn offer(&self, tool: &str, timeout: Duration) -> Result<ToolOffer, Failure> {
        let listing = catalogue(&self.target, &self.peer);
        let listed = self.target.clock.timeout(timeout, listing).await;
        let listed = match listed.unwrap_or(Err(Handshake::Late(timeout))) {
            Ok(listed) => Arc::new(listed),
            Err(Handshake::Mishap(mishap)) => return Err(self.target.not_opened(&mishap)),
            Err(failed) => {
                let (category, problem) = (failed.category(), failed.problem(None));
                return Err(self.target.not_sent(category, &problem, "nothing was called"));
            }
        };
        *self.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&listed);
        listed.offer(&self.target.name, tool)
    }

    /// Whether it can be called. Pings a suspect server.
    pub(super) async fn is_usable(&self) -> bool {
        if self.peer.is_transport_closed() || self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        if !self.is_suspect.load(Ordering::Relaxed) {
            return true;
        }
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        // An error is an answer too: not every server supports pings.
        let answer = match self.target.clock.timeout(PING_TIMEOUT, ping).await {
            Some(Ok(_) | Err(ServiceError::McpError(_))) => true,
            Some(Err(_)) | None => false,
        };
        self.is_suspect.store(!answer, Ordering::Relaxed);
        answer
    }

    /// Calls a tool without checking its schema.
    ///
    /// # Errors
    /// Why there is no answer; `None` after a timeout.
    pub(super) async fn call(
        &self,
        session: &SessionId,
        tool: &str,
        arguments: &Value,
        timeout: Duration,
        parent: Option<TraceParent>,
    ) -> Result<CallToolResponse, Option<ServiceError>> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(parent) = parent {
            let meta = request.meta.get_or_insert_default();
            meta.0.insert(TRACEPARENT_META.to_owned(), parent.to_string().into());
        }
        let _running = self.target.listener.begin(session, tool);
        // Dropping the call at its deadline notifies the server of the cancellation.
        match self.target.clock.timeout(timeout, self.peer.call_tool_once(request)).await {
            Some(answered) => answered.map_err(Some),
            None => {
                self.is_suspect.store(true, Ordering::Relaxed);
                Err(None)
            }
        }
    }

    /// Classifies an error of a transport over HTTP. After a fatal one the next call opens a new
    /// connection.
    pub(super) fn mishap(&self, error: &DynamicTransportError) -> Option<Mishap> {
        let mishap = Mishap::of(error)?;
        if mishap.is_over {
            self.is_over.store(true, Ordering::Relaxed);
        }
        Some(mishap)
    }

    /// Why the server is gone: its exit status and the end of its stderr.
    pub(super) async fn exit_reason(&self) -> String {
        let mut process = self.process.lock().await;
        let status = process.exit_status(&self.target.clock).await;
        let status =
            status.map_or_else(|| "it disconnected".to_owned(), |status| status.to_string());
        let about = about(&process, &self.oddities);
        self.target.launch.redact(&format!("{status}{about}"))
    }

    /// Stops the server, and kills it if it does not exit.
    pub(super) async fn close(&self) {
        let running = self.running.lock().await.take();
        if let Some(mut running) = running {
            let _ = self.target.clock.timeout(CLOSE_GRACE, running.close()).await;
        }
        self.process.lock().await.end(&self.target.clock).await;
    }

    /// Kills a server that has exited or hangs.
    pub(super) async fn kill(&self) {
        drop(self.running.lock().await.take());
        self.process.lock().await.kill(&self.target.clock).await;
    }
}

impl Handshake {
    /// A missed deadline and an exited process count as failures of the connection.
    fn category(&self) -> &'static str {
        match self {
            Self::Late(_) | Self::Gone => CATEGORY_CONNECTION,
            Self::Unusable(_) => CATEGORY_INIT,
            Self::Mishap(mishap) => mishap.category(),
        }
    }

    /// What the server did, with its exit status if it has exited.
    fn problem(&self, status: Option<ExitStatus>) -> String {
        match (self, status) {
            (Self::Late(within), _) => {
                format!("did not finish the handshake within {}", seconds(*within))
            }
            (Self::Gone, Some(status)) => format!("ended before the handshake was done ({status})"),
            (Self::Gone, None) => "closed the connection before the handshake was done".to_owned(),
            (Self::Unusable(why), _) => why.clone(),
            (Self::Mishap(mishap), _) => mishap.problem.clone(),
        }
    }
}

impl Target {
    /// Starts the server, or connects to it.
    async fn start(
        &self,
        within: Duration,
        oddities: &Arc<Oddities>,
    ) -> Result<(Running, Wire), Failure> {
        let (problem, hint) = match &self.launch {
            Launch::InProcess(server) => {
                let (running, pipes) = Running::task(server);
                return Ok((running, Wire::Pipes(pipes)));
            }
            Launch::Program(program) => {
                let program = program.admitted().await.map_err(|refusal| {
                    let problem = format!("was not started: {refusal}");
                    let hint = "start the stack with --allow DIR, or trigger with --input PATH";
                    Failure::refused(CATEGORY_CONNECTION, self.message(&problem, hint))
                })?;
                let problem = match self.clock.timeout(within, Running::program(&program)).await {
                    Some(Ok((running, pipes))) => return Ok((running, Wire::Pipes(pipes))),
                    Some(Err(error)) => format!("cannot be started: {error}"),
                    None => format!("did not start within {}", seconds(within)),
                };
                (problem, "check its command")
            }
            Launch::Remote(server) => {
                match self.clock.timeout(within, server.open(within, oddities)).await {
                    Some(Ok(wire)) => return Ok((Running::Elsewhere, Wire::Remote(wire))),
                    Some(Err(mishap)) => return Err(self.not_opened(&mishap)),
                    None => (format!("did not answer within {}", seconds(within)), "check its url"),
                }
            }
        };
        Err(self.not_sent(CATEGORY_CONNECTION, &problem, hint))
    }

    /// The failure of opening a connection. No tool was called; the failed request decides whether a retry
    /// makes sense.
    fn not_opened(&self, mishap: &Mishap) -> Failure {
        let hint = format!("{}, try it with `daybook tools {}`", mishap.hint, self.name);
        let message = self.message(&mishap.problem, &hint);
        match mishap.kind {
            FailureKind::Refused => Failure::refused(mishap.category(), message),
            FailureKind::NotSent | FailureKind::Unknown => {
                Failure::not_sent(mishap.category(), message)
            }
        }
    }

    /// The failure of a call without an answer.
    pub(super) fn not_answered(&self, tool: &str, mishap: &Mishap) -> Failure {
        let problem = format!("{}, asked for `{tool}`", mishap.problem);
        let message = |hint: &str| self.message(&problem, hint);
        match mishap.kind {
            FailureKind::NotSent => {
                Failure::not_sent(CATEGORY_CONNECTION, message("nothing was called"))
            }
            FailureKind::Refused => {
                let hint = format!("nothing was called, {}", mishap.hint);
                Failure::refused(CATEGORY_CONNECTION, message(&hint))
            }
            FailureKind::Unknown => {
                let hint = "whether the call had an effect is not known";
                Failure::unknown(CATEGORY_CONNECTION, message(hint))
            }
        }
    }

    /// The failure of a call that was not made.
    pub(super) fn not_sent(&self, category: &str, problem: &str, hint: &str) -> Failure {
        Failure::not_sent(category, self.message(problem, hint))
    }

    /// A message about this server with a hint, its secrets redacted.
    pub(super) fn message(&self, problem: &str, hint: &str) -> String {
        let Self { name, launch, .. } = self;
        let noun = launch.noun();
        let text = format!("the MCP server `{name}` {problem}; {hint}; its {noun}: {launch}");
        cut(&launch.redact(&text), ERROR_CHARS_MAX)
    }
}

/// A server's other output, to append to a message.
fn about(process: &Running, oddities: &Oddities) -> String {
    let mut about = String::new();
    if let Some(oddity) = oddities.describe() {
        about.push_str("; ");
        about.push_str(&oddity);
    }
    let words = process.stderr_tail();
    if !words.is_empty() {
        about.push_str("; its stderr ends: ");
        about.push_str(&words);
    }
    about
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

type Client = RunningService<RoleClient, Listener>;

async fn handshake(
    target: &Target,
    wire: Wire,
    oddities: Arc<Oddities>,
) -> Result<(Client, Catalogue), Handshake> {
    let client = target.listener.clone();
    // All servers support the old handshake. A probe for the newest one would run into the timeout
    // with servers that ignore unknown requests.
    let lifecycle = ClientLifecycleMode::Initialize;
    let running = match wire {
        Wire::Pipes(Pipes { stdin, stdout }) => {
            let transport = (Lines::new(stdout, oddities), stdin);
            client.serve_with_lifecycle(transport, lifecycle).await
        }
        Wire::Remote(remote::Wire::Http(transport)) => {
            client.serve_with_lifecycle(*transport, lifecycle).await
        }
        Wire::Remote(remote::Wire::Sse(events)) => {
            client.serve_with_lifecycle(*events, lifecycle).await
        }
    };
    let running = running.map_err(refused)?;
    let catalogue = catalogue(target, running.peer()).await?;
    Ok((running, catalogue))
}

fn refused(error: ClientInitializeError) -> Handshake {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            Mishap::of(&error).map_or(Handshake::Gone, Handshake::Mishap)
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
            Handshake::Gone
        }
        other => {
            Handshake::Unusable(cut(&format!("failed the handshake: {other}"), HANDSHAKE_CHARS_MAX))
        }
    }
}

async fn catalogue(target: &Target, peer: &Peer<RoleClient>) -> Result<Catalogue, Handshake> {
    let mut catalogue = Catalogue::new(target.readers.clone());
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = match peer.list_tools(Some(page)).await {
            Ok(page) => page,
            // A server without tools need not support the request.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                ListToolsResult::default()
            }
            Err(ServiceError::TransportSend(error)) => {
                return Err(Mishap::of(&error).map_or(Handshake::Gone, Handshake::Mishap));
            }
            Err(ServiceError::TransportClosed) => return Err(Handshake::Gone),
            Err(error) => {
                let why = format!("does not list its tools: {error}");
                return Err(Handshake::Unusable(cut(&why, HANDSHAKE_CHARS_MAX)));
            }
        };
        for tool in page.tools {
            let spec = ToolSpec {
                server: Some(target.name.clone()),
                name: tool.name.into_owned(),
                description: tool.description.unwrap_or_default().into_owned(),
                input_schema: Value::Object((*tool.input_schema).clone()),
            };
            let output_schema = tool.output_schema.map(|schema| Value::Object((*schema).clone()));
            let (title, hints) = (tool.title, tool.annotations);
            catalogue.add(spec, &Listed { title, output_schema, hints });
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(catalogue);
        }
    }
    Err(Handshake::Unusable(format!("lists tools on more than {PAGES_MAX} pages")))
}
