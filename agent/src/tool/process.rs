//! A server at work on this machine, most often a process: started so that it cannot outlive us,
//! watched, and ended.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use journal::clock::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::in_process::{InProcess, Task};
use super::launch::Program;

/// How much of the end of what a server writes to stderr is kept, in bytes.
pub const STDERR_BYTES_MAX: usize = 2 * 1024;

/// How long a server may take to end by itself once its stdin is closed, and then to be gone once
/// it is killed.
///
/// Source: MCP specification, "Lifecycle", shutdown over stdio, which leaves the time open; its
/// own clients wait 2 to 3 s.
pub const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the exit status of a server that has hung up: it is about to end.
const EXIT_GRACE: Duration = Duration::from_millis(200);

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(super) enum Running {
    Process(Box<Process>),
    Task(Task),
    /// Somewhere else, where others start and end it.
    Elsewhere,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// When the operating system will not: there is no such program, or it may not be run.
    pub(super) async fn program(program: &Program) -> io::Result<(Self, Pipes)> {
        let (process, pipes) = Process::start(program).await?;
        Ok((Self::Process(Box::new(process)), pipes))
    }

    /// Starts a part of this program.
    pub(super) fn task(server: &InProcess) -> (Self, Pipes) {
        let (task, pipes) = server.start();
        (Self::Task(task), pipes)
    }

    /// How its process ended, if it has one and that has ended or is about to.
    pub(super) async fn exit_status(&mut self, clock: &Clock) -> Option<ExitStatus> {
        match self {
            Self::Process(process) => process.exit_status(clock).await,
            Self::Task(_) | Self::Elsewhere => None,
        }
    }

    /// The last that it wrote to stderr, in one line; empty if it wrote nothing.
    pub(super) fn last_words(&self) -> String {
        match self {
            Self::Process(process) => process.stderr.text(),
            Self::Task(_) | Self::Elsewhere => String::new(),
        }
    }

    /// Waits until it ends by itself, its stdin being closed, then kills it and what it started.
    pub(super) async fn end(&mut self, clock: &Clock) {
        match self {
            Self::Process(process) => process.end(clock).await,
            Self::Task(task) => task.end(CLOSE_GRACE, clock).await,
            Self::Elsewhere => {}
        }
    }

    /// Kills it and what it started, unless it has ended.
    pub(super) async fn kill(&mut self, clock: &Clock) {
        match self {
            Self::Process(process) => process.kill(clock).await,
            Self::Task(task) => task.kill(),
            Self::Elsewhere => {}
        }
    }
}

/// A server's process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The leader's id, which is the group's too.
    group: Option<u32>,
    stderr: Arc<Tail>,
    /// Reads stderr to its end, lest the server blocks on a full pipe.
    reader: JoinSet<()>,
    _keeper: Keeper,
}

/// What a server is spoken to through.
pub(super) struct Pipes {
    pub(super) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) stdout: Box<dyn AsyncRead + Send + Unpin>,
}

impl Process {
    async fn start(program: &Program) -> io::Result<(Self, Pipes)> {
        let (mut child, keeper) = Keeper::start(program.command()).await?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let tail = Arc::new(Tail::default());
        let mut reader = JoinSet::new();
        reader.spawn(follow(stderr, tail.clone()));
        let group = child.id();
        let process = Self { child, group, stderr: tail, reader, _keeper: keeper };
        Ok((process, Pipes { stdin: Box::new(stdin), stdout: Box::new(stdout) }))
    }

    async fn exit_status(&mut self, clock: &Clock) -> Option<ExitStatus> {
        let status = clock.timeout(EXIT_GRACE, self.child.wait()).await?.ok();
        // What it wrote last may still be in the pipe.
        clock.timeout(EXIT_GRACE, self.reader.join_next()).await;
        status
    }

    async fn end(&mut self, clock: &Clock) {
        if clock.timeout(CLOSE_GRACE, self.child.wait()).await.is_none() {
            tracing::warn!(pid = self.group, "An MCP server did not stop by itself and is killed.");
        }
        self.kill(clock).await;
    }

    async fn kill(&mut self, clock: &Clock) {
        self.kill_group();
        if clock.timeout(CLOSE_GRACE, self.child.wait()).await.is_none() {
            tracing::error!(pid = self.group, "An MCP server cannot be killed.");
        }
        self.reader.abort_all();
    }

    fn kill_group(&self) {
        // `id` is none once the child is reaped, after which the group's id may be another's.
        if let (Some(_), Some(group)) = (self.child.id(), self.group) {
            os::kill_group(group);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The thread that a server was started from, which lasts as long as the server's [`Process`].
///
/// The kernel's promise to kill a child with its parent is kept when the *thread* ends that started
/// it. A runtime's threads may end long before the process does (those of `spawn_blocking` after
/// ten idle seconds), so each server has one of its own, which does nothing but wait.
#[derive(Debug)]
struct Keeper {
    /// Dropped to let the thread end.
    _release: std::sync::mpsc::Sender<()>,
}

impl Keeper {
    async fn start(mut command: Command) -> io::Result<(Child, Self)> {
        os::die_with_parent(&mut command);
        let (release, released) = std::sync::mpsc::channel();
        let (started, child) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("mcp-server".to_owned()).spawn(move || {
            let child = {
                let _context = runtime.enter();
                command.spawn()
            };
            // If nobody waits for the child any more it is dropped here, which kills it.
            if started.send(child).is_ok() {
                let _ = released.recv();
            }
        })?;
        let child = child.await.map_err(io::Error::other)??;
        Ok((child, Self { _release: release }))
    }
}

/// The end of a text that grows.
#[derive(Debug, Default)]
struct Tail(Mutex<Vec<u8>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        let excess = tail.len().saturating_sub(STDERR_BYTES_MAX);
        tail.drain(..excess);
    }

    fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let lines = text.lines().map(|line| line.trim().replace(char::is_control, " "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ")
    }
}

async fn follow(mut stderr: ChildStderr, tail: Arc<Tail>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        tail.push(&buffer[..read]);
    }
}

/// The two system calls that no safe interface offers.
mod os {
    use tokio::process::Command;

    /// Has the kernel kill the child when the thread that starts it ends, so that a server that
    /// hangs does not outlive an agent that was killed. Elsewhere than on Linux nothing does that.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "code between fork and exec can only be given as unsafe")]
    pub(super) fn die_with_parent(command: &mut Command) {
        let parent = std::process::id();
        let arm = move || {
            // SAFETY: both are single system calls on integers.
            let (armed, now) =
                unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
            // The parent may have been killed before the call above, which would then wait for the
            // end of whoever adopted the child.
            if armed == -1 || u32::try_from(now) != Ok(parent) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: `arm` allocates nothing, takes no lock and calls only what is async-signal-safe.
        unsafe { command.pre_exec(arm) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn die_with_parent(_command: &mut Command) {}

    /// Kills a process group whose leader has not been reaped.
    #[expect(unsafe_code, reason = "the standard library kills single processes only")]
    pub(super) fn kill_group(leader: u32) {
        let Ok(leader) = i32::try_from(leader) else { return };
        assert!(leader > 1, "a group of our own");
        // SAFETY: one system call on integers; it fails if there is no such group.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::Text;
    use super::*;

    fn shell(script: &str) -> Program {
        let mut program = Program::new(Text::plain("/bin/sh"));
        program.args.extend(["-c", script].map(Text::plain));
        program
    }

    #[test]
    fn the_tail_keeps_the_last_of_it() {
        let tail = Tail::default();
        (0..1_000).for_each(|n| tail.push(format!("line {n}\n").as_bytes()));
        let text = tail.text();
        assert!(text.len() <= 2 * STDERR_BYTES_MAX && text.ends_with("line 998 | line 999"));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_an_error() {
        let program = Program::new(Text::plain("/nonexistent/server"));
        let error = Process::start(&program).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn last_words_and_exit_status_are_known() {
        let (mut process, _pipes) =
            Process::start(&shell("echo one >&2; echo two >&2; exit 3")).await.unwrap();
        let mut status = None;
        for _ in 0..50 {
            status = process.exit_status(&Clock::system()).await;
            if status.is_some() {
                break;
            }
        }
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(process.stderr.text(), "one | two");
    }

    /// The kernel kills a child with the thread that started it, so that must not be a thread that
    /// a runtime ends when it is idle.
    #[test]
    fn a_server_outlives_the_thread_that_asked_for_it() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let handle = runtime.handle().clone();
        let (mut process, pipes) = std::thread::spawn(move || {
            handle.block_on(Process::start(&shell("read line; exit 7"))).unwrap()
        })
        .join()
        .unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(process.child.try_wait().unwrap(), None);
        drop(pipes);
        let status = runtime.block_on(process.child.wait()).unwrap();
        assert_eq!(status.code(), Some(7));
    }
}
