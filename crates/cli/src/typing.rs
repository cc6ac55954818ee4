//! Reads lines from stdin, and single keys from a terminal.
//!
//! Nothing is read before it is asked for, so [`Input::forget`] can discard what was typed ahead.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};

use crate::output;

/// A single key counts as an answer after this pause. Within a word, the next key comes sooner.
const KEY_ALONE: Duration = Duration::from_millis(400);

/// Keys typed within this time after a question appeared are discarded: no person has read it so soon.
const UNREAD: Duration = Duration::from_millis(300);

/// Longest wait for input at a time; a command that ends waits at most this long for its last one.
const READY_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Longest line read key by key, in bytes; further input is ignored.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Longest line of other input, in bytes; a longer one is an error.
const PIPED_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of one read.
const READ_BYTES: usize = 4 * 1024;

/// End of input. Source: POSIX, "General Terminal Interface", the usual EOF.
const END: u8 = 0x04;

/// Deletes the last character; terminals send one of the two.
const ERASE: [u8; 2] = [0x08, 0x7f];

/// Deletes the line. Source: as [`END`], the usual KILL.
const KILL: u8 = 0x15;

/// Standard input, read by line or by key.
pub struct Input {
    is_terminal: bool,
    /// Bytes read, and not part of a line yet.
    read: Vec<u8>,
    /// The unfinished line, read key by key.
    typed: Vec<u8>,
    has_ended: bool,
}

/// The effect of a typed byte.
#[derive(Debug, PartialEq)]
enum Typed {
    More,
    Line(String),
    End,
}

/// Whether a person sees the questions and types the answers: stdin, stdout and stderr are terminals.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

impl Input {
    pub fn of_stdin() -> Self {
        let (read, typed) = (Vec::new(), Vec::new());
        Self { is_terminal: is_interactive(), read, typed, has_ended: false }
    }

    /// Whether a person types, after reading what is on the screen.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Discards what was typed before a question was on the screen. Input that is no terminal keeps its
    /// lines: there, an approval names what it approves.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub async fn forget(&mut self) -> io::Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        tokio::time::sleep(UNREAD).await;
        let had_some = !self.read.is_empty() || !self.typed.is_empty() || is_ready(&NO_WAIT)?;
        self.read.clear();
        self.typed.clear();
        tcflush(io::stdin(), QueueSelector::IFlush)?;
        if had_some {
            output::say("discarded what was typed before the question was shown");
        }
        Ok(())
    }

    /// Writes a prompt, if stdin is a terminal.
    pub fn ask(&self, words: &str) {
        if self.is_terminal {
            output::prompt(words);
        }
    }

    /// Reads the next line; `None` at the end of input. At a terminal, one of `keys` is a line without
    /// Enter, unless another key follows at once.
    ///
    /// Cancel safe: only the pause after a key starts again.
    ///
    /// # Errors
    /// When standard input cannot be read, or a line is too long.
    pub async fn line(&mut self, keys: &[u8]) -> io::Result<Option<String>> {
        if keys.is_empty() || !self.is_terminal {
            return self.whole_line().await;
        }
        let _by_keys = ByKeys::begin()?;
        loop {
            if self.read.is_empty() {
                let is_key = matches!(self.typed[..], [key] if keys.contains(&key));
                let read = self.fill();
                let read = match is_key {
                    true => tokio::time::timeout(KEY_ALONE, read).await,
                    false => Ok(read.await),
                };
                match read {
                    Ok(read) => read?,
                    Err(_) => return Ok(Some(self.taken())),
                }
            }
            if self.read.is_empty() && self.has_ended {
                return Ok(None);
            }
            match self.take_read() {
                Typed::More => {}
                Typed::Line(line) => return Ok(Some(line)),
                Typed::End => return Ok(None),
            }
        }
    }

    async fn whole_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(text(&line)));
            }
            if self.read.len() > PIPED_LINE_BYTES_MAX {
                let problem = format!("a line of input has more than {PIPED_LINE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            if self.has_ended {
                let rest = std::mem::take(&mut self.read);
                return Ok((!rest.is_empty()).then(|| text(&rest)));
            }
            self.fill().await?;
        }
    }

    /// Waits for input and reads it; reads nothing at the end of input.
    async fn fill(&mut self) -> io::Result<()> {
        // A wait that was given up takes no input.
        while !tokio::task::spawn_blocking(|| is_ready(&READY_WITHIN)).await?? {}
        let mut bytes = [0; READ_BYTES];
        let count = match rustix::io::read(io::stdin(), &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            read => read?,
        };
        self.has_ended |= count == 0;
        self.read.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// Takes the bytes read, up to the end of a line.
    fn take_read(&mut self) -> Typed {
        while !self.read.is_empty() {
            let byte = self.read.remove(0);
            match self.take(byte) {
                Typed::More => {}
                done => return done,
            }
        }
        Typed::More
    }

    fn taken(&mut self) -> String {
        output::echo(b"\n");
        String::from_utf8_lossy(&std::mem::take(&mut self.typed)).into_owned()
    }

    /// Applies a byte as a terminal's line editor does, and echoes the effect.
    fn take(&mut self, byte: u8) -> Typed {
        match byte {
            b'\n' | b'\r' => return Typed::Line(self.taken()),
            END if self.typed.is_empty() => return Typed::End,
            KILL => while self.erase() {},
            byte if ERASE.contains(&byte) => {
                self.erase();
            }
            byte if byte < b' ' || self.typed.len() >= LINE_BYTES_MAX => {}
            byte => {
                self.typed.push(byte);
                output::echo(&[byte]);
            }
        }
        Typed::More
    }

    /// Deletes the last character; returns whether there was one.
    fn erase(&mut self) -> bool {
        let is_inner = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let inner = self.typed.iter().rev().take_while(|byte| is_inner(byte)).count();
        let left = self.typed.len().saturating_sub(inner + 1);
        let is_shorter = left < self.typed.len();
        self.typed.truncate(left);
        if is_shorter {
            output::echo(b"\x08 \x08");
        }
        is_shorter
    }
}

/// Whether standard input can be read without waiting: it has input, or has ended.
fn is_ready(within: &Timespec) -> io::Result<bool> {
    let stdin = io::stdin();
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(within)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// A line without its end.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}

/// Terminal mode without line editing and echo; restored on drop. Ctrl-C still interrupts.
struct ByKeys(Termios);

impl ByKeys {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut by_keys = before.clone();
        by_keys.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &by_keys)?;
        Ok(Self(before))
    }
}

impl Drop for ByKeys {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_read_by_key_can_be_corrected() {
        let mut input = Input::of_stdin();
        let mut typed = |bytes: &[u8]| {
            let last = bytes.iter().map(|byte| input.take(*byte)).last();
            last.unwrap()
        };
        assert_eq!(typed(b"no, too mich\x7f\x7f\x08uch\n"), Typed::Line("no, too much".to_owned()));
        assert_eq!(
            typed("Köl\u{7f}\u{7f}\u{7f}\u{7f}yes\r".as_bytes()),
            Typed::Line("yes".to_owned())
        );
        assert_eq!(typed(b"e {\x15\x1b\x01y\n"), Typed::Line("y".to_owned()));
        assert_eq!(typed(b"y\x04"), Typed::More);
        assert_eq!(typed(b"\x15\x04"), Typed::End);
    }
}
