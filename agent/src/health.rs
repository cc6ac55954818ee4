//! The image's health check: `GET /ping` of the container's own server, without a client of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use workflow::env::Lookup;

use crate::config;

/// How long the server may take; the image's check gives up after three seconds.
const WITHIN: Duration = Duration::from_secs(2);

/// What a good answer begins with.
const GOOD: &[u8] = b"HTTP/1.1 200 ";

/// Asks the server of this container whether it answers.
///
/// # Errors
/// When it does not, or not well.
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
        return Err(io::Error::other("the agent answers, and is not well"));
    }
    Ok(())
}
