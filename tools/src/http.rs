//! Serving one of the servers over Streamable HTTP.
//!
//! Every request stands alone: there are no sessions that a client could leave behind, and what a
//! server keeps is kept under a name that the request says. `guard` decides who may ask.

mod guard;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use guard::Guard;
pub use guard::TokenMissing;

/// Where the server is, below the address that it listens on.
pub const PATH: &str = "/mcp";

/// Largest request, in bytes. The longest text that a tool takes is a function's ARN.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Why a server cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Others could reach it, and nothing would keep them out; a token has to be set.
    #[error(transparent)]
    Token(#[from] TokenMissing),
    /// The address cannot be listened on; the caller names another one.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The listener broke.
    #[error("the server stopped")]
    Stopped(#[source] std::io::Error),
}

/// A server that has its address and is not served yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

impl Listening {
    /// Listens. With a token, every request has to present it as bearer.
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

    /// Where a client finds the server.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop` is ready, and then finishes what it has begun.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub async fn serve<S>(
        self,
        server: S,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error>
    where
        S: ServerHandler + Clone + Send + Sync + 'static,
    {
        // The guard knows which names are ours; a list of names would not do for all interfaces.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(REQUEST_BYTES_MAX)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
        let router = Router::new()
            .route_service(PATH, service)
            .layer(axum::middleware::from_fn_with_state(self.guard, guard::check));
        axum::serve(self.listener, router)
            .with_graceful_shutdown(stop)
            .await
            .map_err(Error::Stopped)
    }
}
