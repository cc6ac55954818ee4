//! The image's health check: a `GET /ping` to the container's own server, over a plain socket.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use workflow::env::Lookup;

use crate::config;

/// Timeout, below the three seconds of the image's check.
const WITHIN: Duration = Duration::from_secs(2);

/// The beginning of a healthy response.
const GOOD: &[u8] = b"HTTP/1.1 200 ";

/// Checks that this container's server is healthy.
///
/// # Errors
/// When the server does not answer, or answers another status than 200.
pub fn ping(lookup: &impl Lookup) -> io::Result<()> {
    let port = config::port(lookup).map_err(io::Error::other)?.unwrap_or(config::PORT);
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    stream.write_all(b"GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut begin = [0; GOOD.len()];
    stream.read_exact(&mut begin)?;
    if begin != GOOD {
        return Err(io::Error::other("the agent does not answer /ping with status 200"));
    }
    Ok(())
}
