//! Reads lines from stdin, and single keys from a terminal.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines, Stdin};

use crate::output;

/// A single key counts as an answer after this pause. Within a word, the next key comes sooner.
const KEY_ALONE: Duration = Duration::from_millis(400);

/// Longest line read key by key, in bytes; further input is ignored.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// End of input. Source: POSIX, "General Terminal Interface", the usual EOF.
const END: u8 = 0x04;

/// Deletes the last character; terminals send one of the two.
const ERASE: [u8; 2] = [0x08, 0x7f];

/// Deletes the line. Source: as [`END`], the usual KILL.
const KILL: u8 = 0x15;

/// Standard input, read by line or by key.
pub struct Input {
    lines: Lines<BufReader<Stdin>>,
    is_terminal: bool,
    /// The unfinished line, read key by key.
    typed: Vec<u8>,
}

/// The effect of a typed byte.
#[derive(Debug, PartialEq)]
enum Typed {
    More,
    Line(String),
    End,
}

impl Input {
    pub fn of_stdin() -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Self { lines, is_terminal, typed: Vec::new() }
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
    /// When standard input cannot be read.
    pub async fn line(&mut self, keys: &[u8]) -> io::Result<Option<String>> {
        if keys.is_empty() || !self.is_terminal {
            return self.lines.next_line().await;
        }
        let _by_keys = ByKeys::begin()?;
        loop {
            let mut byte = [0];
            let read = self.lines.get_mut().read(&mut byte);
            let read = if matches!(self.typed[..], [key] if keys.contains(&key)) {
                match tokio::time::timeout(KEY_ALONE, read).await {
                    Ok(read) => read?,
                    Err(_) => return Ok(Some(self.taken())),
                }
            } else {
                read.await?
            };
            if read == 0 {
                return Ok(None);
            }
            match self.take(byte[0]) {
                Typed::More => {}
                Typed::Line(line) => return Ok(Some(line)),
                Typed::End => return Ok(None),
            }
        }
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

    #[tokio::test]
    async fn a_line_read_by_key_can_be_corrected() {
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
