//! Serves a stack's ports.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::StartError;
use super::agents::Inside;
use crate::clients::Wire;
use crate::endpoint::{Callers, Endpoint, Guard};

/// Serves the stack's endpoint, and the agents' own port if there is one. Returns the routes that the stack's own clients
/// call.
pub(super) fn serve(
    endpoint: &Endpoint,
    wire: &Wire,
    listener: TcpListener,
    (guard, callers): (Guard, Callers),
    inside: Option<Inside>,
    stop: &CancellationToken,
) -> Result<(JoinSet<()>, Arc<Router>), StartError> {
    let own_guard = Guard::new(Ipv4Addr::LOCALHOST.into(), None)?;
    let routes = Arc::new(endpoint.clone().router(own_guard, Callers::Unknown));
    wire.lead_to(&routes);
    let mut servers = JoinSet::new();
    if let Some(inside) = inside {
        servers.spawn(inside.serve(endpoint.aws.clone(), stop.clone())?);
    }
    let router = endpoint.clone().router(guard, callers);
    servers.spawn(guard::serve(listener, router, stop.clone().cancelled_owned()));
    Ok((servers, routes))
}
