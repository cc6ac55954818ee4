//! A program's process: its frames, its log, and its end.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use graph::program::frame::{self, Said};
use graph::program::{FRAME_BYTES_MAX, Launch, PROTOCOL};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::INHERITED;
use crate::tool::process::{Keeper, has_exited, kill_group};

/// Longest line of stderr that is kept, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Most lines of stderr that one start of a program may log.
const LINES_MAX: u32 = 10_000;

/// The last lines of stderr that an error quotes.
const TAIL_LINES: usize = 5;

/// How long to wait for the exit status of a program that closed its stdout.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// How often to look whether a program has exited.
const EXIT_POLL: Duration = Duration::from_millis(2);

/// The exit code of a shell whose command was killed with SIGKILL.
///
/// Source: POSIX, Shell Command Language, 2.8.2.
const KILLED_CODE: i32 = 128 + 9;

/// How often to look whether a program has exited whose stdout is open.
const EXIT_WATCH: Duration = Duration::from_millis(200);

/// How long to read what a program wrote before it exited.
const EXIT_DRAIN: Duration = Duration::from_millis(50);

/// How long a program may take to read a frame. A program that does not read is hanging.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest quote of a malformed line, in characters.
const QUOTE_CHARS_MAX: usize = 120;

/// Why no further frame comes.
#[derive(Debug)]
pub(super) enum Gone {
    /// A code and a message for the session's error.
    Broken(&'static str, String),
    /// stdout is closed.
    Closed,
}

/// A running program. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Option<u32>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The part of a line that has been read.
    partial: Vec<u8>,
    log: Arc<Log>,
    reader: JoinSet<()>,
    _keeper: Keeper,
}

/// The end of stderr.
#[derive(Debug, Default)]
struct Log(Mutex<VecDeque<String>>);

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// The operating system cannot start it.
    pub(super) async fn start(
        launch: &Launch,
        mask: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (mut child, keeper) = Keeper::start(command(launch)?).await?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let log = Arc::new(Log::default());
        let mut reader = JoinSet::new();
        reader.spawn(follow(stderr, Arc::clone(&log), mask).in_current_span());
        let group = child.id();
        let stdout = BufReader::with_capacity(64 * 1024, stdout);
        let partial = Vec::new();
        Ok(Self { child, group, stdin, stdout, partial, log, reader, _keeper: keeper })
    }

    /// Writes a frame.
    pub(super) async fn send(&mut self, frame: &Value) -> Result<(), Gone> {
        let mut line = frame.to_string();
        line.push('\n');
        let written = tokio::time::timeout(WRITE_TIMEOUT, self.stdin.write_all(line.as_bytes()));
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Gone::Closed),
            Err(_) => {
                let text = format!("the program read nothing for {} s", WRITE_TIMEOUT.as_secs());
                Err(Gone::Broken("Idle", text))
            }
        }
    }

    /// The next frame. Dropping the future loses nothing.
    pub(super) async fn frame(&mut self) -> Result<Said, Gone> {
        let line = self.line().await?;
        let text = std::str::from_utf8(&line).map_err(|error| malformed(&line, &error))?;
        frame::read(text).map_err(|error| malformed(&line, &error))
    }

    /// `fill_buf` and `consume` keep what was read when this future is dropped at an await.
    async fn line(&mut self) -> Result<Vec<u8>, Gone> {
        loop {
            let id = self.child.id();
            // Either future may be dropped: the reader keeps what it has read.
            let is_read = tokio::select! {
                biased;
                read = self.stdout.fill_buf() => read.is_ok(),
                () = exited(id) => false,
            };
            if !is_read {
                // What the program wrote last. Its children may keep the pipe open.
                let _ = tokio::time::timeout(EXIT_DRAIN, self.stdout.fill_buf()).await;
            }
            let buffer = self.stdout.buffer();
            if buffer.is_empty() {
                return Err(Gone::Closed);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            self.partial.extend_from_slice(&buffer[..end.unwrap_or(taken)]);
            self.stdout.consume(taken);
            if self.partial.len() > FRAME_BYTES_MAX {
                let text = format!("a frame has more than {FRAME_BYTES_MAX} bytes");
                return Err(Gone::Broken("FrameTooLarge", text));
            }
            if end.is_some() {
                return Ok(std::mem::take(&mut self.partial));
            }
        }
    }

    /// Reads the program's greeting.
    pub(super) async fn greeted(&mut self) -> Result<(), Gone> {
        match self.frame().await? {
            Said::Hello { protocol: PROTOCOL } => Ok(()),
            Said::Hello { protocol } => {
                let text = format!(
                    "the program speaks version {protocol} of the protocol, the host version {PROTOCOL}"
                );
                Err(Gone::Broken("Protocol", text))
            }
            other => {
                let text = format!("the first frame is no `hello`: {other:?}");
                Err(Gone::Broken("Malformed", text.chars().take(QUOTE_CHARS_MAX).collect()))
            }
        }
    }

    /// How a program that closed its stdout has ended, with the end of its log.
    pub(super) async fn ending(&mut self) -> (String, bool) {
        let exited = async {
            while self.child.id().is_some_and(|id| !has_exited(id)) {
                tokio::time::sleep(EXIT_POLL).await;
            }
        };
        let exited = tokio::time::timeout(EXIT_GRACE, exited).await;
        // Before the leader is reaped: until then its number is the group's.
        self.kill_group();
        let status = tokio::time::timeout(EXIT_GRACE, self.child.wait()).await;
        let (how, was_killed) = match status {
            Ok(Ok(status)) if exited.is_ok() => {
                let how = format!("the program exited without `end`: {status}");
                (how, status.signal().is_some() || status.code() == Some(KILLED_CODE))
            }
            _ => ("the program closed its stdout without `end`".to_owned(), false),
        };
        // The pipe may still contain its last output.
        let _ = tokio::time::timeout(EXIT_GRACE, self.reader.join_next()).await;
        let tail = self.log.text();
        let text = if tail.is_empty() { how } else { format!("{how}; its log ends: {tail}") };
        (text, was_killed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

impl Process {
    fn kill_group(&self) {
        // A leader that was reaped has a number that may be in use again.
        if let (Some(_), Some(group)) = (self.child.id(), self.group) {
            kill_group(group);
        }
    }
}

impl Log {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        if lines.len() > TAIL_LINES {
            lines.pop_front();
        }
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

/// Waits until a process has exited. It is not reaped.
async fn exited(id: Option<u32>) {
    loop {
        tokio::time::sleep(EXIT_WATCH).await;
        if id.is_none_or(has_exited) {
            return;
        }
    }
}

fn command(launch: &Launch) -> io::Result<Command> {
    let Some((program, arguments)) = launch.command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&launch.folder).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, variable(name)?))));
    command.env("PYTHONUNBUFFERED", "1").env("DAYBOOK_PROTOCOL", PROTOCOL.to_string());
    command.envs(&launch.environment);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

#[expect(clippy::disallowed_methods, reason = "a program needs the machine's search path")]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

fn malformed(line: &[u8], problem: &dyn std::fmt::Display) -> Gone {
    let quote: String = String::from_utf8_lossy(line).chars().take(QUOTE_CHARS_MAX).collect();
    Gone::Broken("Malformed", format!("stdout has a line that is no frame, `{quote}`: {problem}"))
}

/// Logs the lines of stderr.
async fn follow(mut stderr: ChildStderr, log: Arc<Log>, mask: impl Fn(&str) -> String) {
    let (mut line, mut buffer, mut lines) = (Vec::new(), [0; 4096], 0_u32);
    let mut write = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line).trim_end().replace(char::is_control, " ");
        line.clear();
        if text.is_empty() {
            return;
        }
        lines = lines.saturating_add(1);
        let text = mask(&text);
        match lines {
            ..LINES_MAX => tracing::info!(target: "program", "{text}"),
            LINES_MAX => {
                tracing::warn!(target: "program", "Further lines of the program are dropped.")
            }
            _ => {}
        }
        log.push(text);
    };
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        for byte in &buffer[..read] {
            match byte {
                b'\n' => write(&mut line),
                _ if line.len() < LINE_BYTES_MAX => line.push(*byte),
                _ => {}
            }
        }
    }
    write(&mut line);
}
