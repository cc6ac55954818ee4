//! A server's stdout: one message a line, each of bounded length.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Longest message of a server, in bytes. A longer one closes the connection.
///
/// Below `rmcp`'s own bound, which only drops the message: the call would then wait for its deadline.
pub const MESSAGE_BYTES_MAX: usize = 12 * 1024 * 1024;

/// How much of a line that is not a message is kept, in bytes.
const CHATTER_BYTES_MAX: usize = 160;

/// Output that does not belong on stdout.
#[derive(Debug, Default)]
pub(super) struct Oddities(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The newest line that is not JSON. The program may log to stdout, or not be an MCP server.
    chatter: Option<String>,
    oversized: bool,
}

impl Oddities {
    /// A clause about the server, or `None` without oddities.
    pub(super) fn describe(&self) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.oversized {
            return Some(format!("it sent a message of more than {MESSAGE_BYTES_MAX} bytes"));
        }
        seen.chatter
            .as_ref()
            .map(|line| format!("its stdout has a line that is not JSON: `{line}`"))
    }

    /// Notes a message longer than [`MESSAGE_BYTES_MAX`].
    pub(super) fn note_oversized(&self) {
        self.note(|seen| seen.oversized = true);
    }

    /// Notes a line that is not a message.
    pub(super) fn note_chatter(&self, line: &str) {
        let head: String = line.trim().chars().take(CHATTER_BYTES_MAX).collect();
        let line = head.replace(char::is_control, " ");
        self.note(|seen| seen.chatter = Some(line));
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A reader that counts the bytes of each line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    inner: R,
    line_bytes: usize,
    head: Vec<u8>,
    oddities: Arc<Oddities>,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R, oddities: Arc<Oddities>) -> Self {
        Self { inner, line_bytes: 0, head: Vec::new(), oddities }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for (index, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.end_line();
            }
            self.line_bytes += part.len();
            let room = CHATTER_BYTES_MAX - self.head.len();
            self.head.extend_from_slice(&part[..part.len().min(room)]);
            if self.line_bytes > MESSAGE_BYTES_MAX {
                self.oddities.note_oversized();
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let head = String::from_utf8_lossy(&self.head);
        let head = head.trim();
        if !head.is_empty() && !head.starts_with(['{', '[']) {
            self.oddities.note_chatter(head);
        }
        self.head.clear();
        self.line_bytes = 0;
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let taken = self.take(&buffer.filled()[before..]);
        if taken.is_err() {
            // A failed read must not fill the buffer.
            buffer.set_filled(before);
        }
        Poll::Ready(taken)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(bytes: &[u8]) -> (io::Result<usize>, Option<String>) {
        let oddities = Arc::new(Oddities::default());
        let mut lines = Lines::new(bytes, oddities.clone());
        let read = lines.read_to_end(&mut Vec::new()).await;
        (read, oddities.describe())
    }

    #[tokio::test]
    async fn messages_pass() {
        let many = b"{\"a\": 1}\r\n\n  [1]\n".repeat(1_000);
        assert!(matches!(read(&many).await, (Ok(17_000), None)));
    }

    #[tokio::test]
    async fn a_line_that_is_not_json_is_remembered() {
        let (read, seen) = read(b"Listening on \x1b[1m8080\n{}\n").await;
        assert!(read.is_ok());
        assert!(seen.unwrap().ends_with("`Listening on  [1m8080`"));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_fails_the_read() {
        let (read, seen) = read(&vec![b'{'; MESSAGE_BYTES_MAX + 1]).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(seen.unwrap().contains("more than"));
    }
}
