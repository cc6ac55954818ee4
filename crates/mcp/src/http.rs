//! Serves an MCP server over Streamable HTTP.
//!
//! The transport is stateless: it has no MCP sessions. Servers with state keep it under a name in the
//! request. [`Guard`] decides which requests are admitted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use guard::{Guard, Refusal, TokenMissing, bearer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

/// The server's path.
pub const PATH: &str = "/mcp";

/// Largest request, in bytes. The longest text that a tool takes is a function's ARN.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Why a server cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is reachable from other machines and no token is set.
    #[error(transparent)]
    Token(#[from] TokenMissing),
    /// The address is unavailable; the caller chooses another one.
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
}

/// A server that is bound to its address and not yet served.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

impl Listening {
    /// Binds the address. With a token, every request needs it as a bearer token.
    ///
    /// # Errors
    /// [`Error::Token`] for an address beyond loopback without a token, [`Error::Listen`].
    pub async fn on(address: SocketAddr, token: Option<&str>) -> Result<Self, Error> {
        let guard = Guard::new(address.ip(), token)?;
        let failed = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, guard })
    }

    /// The server's URL.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop` is ready, then finishes the open requests.
    pub async fn serve<S>(self, server: S, stop: impl Future<Output = ()>)
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        // The guard checks `Host`: a fixed list of names does not fit all interfaces.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(REQUEST_BYTES_MAX)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
        let router =
            Router::new().route_service(PATH, service).layer(from_fn_with_state(self.guard, check));
        guard::serve(self.listener, router, stop).await;
    }
}

/// Admits a request, or answers it with the reason of its refusal.
async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let admitted = guard.admit_source(headers, request.uri());
    match admitted.and_then(|()| guard.admit_token(bearer(headers))) {
        Ok(()) => next.run(request).await,
        Err(refusal @ Refusal::Token) => {
            let reason = "this server requires its token as a bearer token";
            (refusal.status(), [(WWW_AUTHENTICATE, "Bearer")], reason).into_response()
        }
        Err(refusal) => (refusal.status(), refusal.to_string()).into_response(),
    }
}
