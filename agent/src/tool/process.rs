//! A running server. A local server process is started so that it cannot outlive this process.

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

/// How much of the end of a server's stderr is kept, in bytes.
pub const STDERR_BYTES_MAX: usize = 2 * 1024;

/// How long a server may take to exit after its stdin is closed, and again after it is killed.
///
/// Source: MCP specification, "Lifecycle", shutdown over stdio. It leaves the time open; its own
/// clients wait 2 to 3 s.
pub const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the exit status of a server that closed its stdout.
const EXIT_GRACE: Duration = Duration::from_millis(200);

/// How often to look whether a server has exited, by the machine's clock.
const EXIT_POLL: Duration = Duration::from_millis(2);

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(super) enum Running {
    Process(Box<Process>),
    Task(Task),
    /// A remote server, which this process neither starts nor stops.
    Elsewhere,
}

impl Running {
    /// # Errors
    /// When the operating system cannot start it: no such program, or no permission.
    pub(super) async fn program(program: &Program) -> io::Result<(Self, Pipes)> {
        let (process, pipes) = Process::start(program).await?;
        Ok((Self::Process(Box::new(process)), pipes))
    }

    /// Starts a server inside this program.
    pub(super) fn task(server: &InProcess) -> (Self, Pipes) {
        let (task, pipes) = server.start();
        (Self::Task(task), pipes)
    }

    /// The exit status, if its process has exited or exits within a short wait.
    pub(super) async fn exit_status(&mut self, clock: &Clock) -> Option<ExitStatus> {
        match self {
            Self::Process(process) => process.exit_status(clock).await,
            Self::Task(_) | Self::Elsewhere => None,
        }
    }

    /// The end of its stderr, in one line.
    pub(super) fn stderr_tail(&self) -> String {
        match self {
            Self::Process(process) => process.stderr.text(),
            Self::Task(_) | Self::Elsewhere => String::new(),
        }
    }

    /// Waits for it to exit after its stdin was closed, then kills its process group.
    pub(super) async fn end(&mut self, clock: &Clock) {
        match self {
            Self::Process(process) => process.end(clock).await,
            Self::Task(task) => task.end(CLOSE_GRACE, clock).await,
            Self::Elsewhere => {}
        }
    }

    /// Kills its process group, unless it has exited.
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
    /// The leader's id, which is also the group's.
    group: Option<u32>,
    stderr: Arc<Tail>,
    /// Reads stderr to its end, so that the server never blocks on a full pipe.
    reader: JoinSet<()>,
    _keeper: Keeper,
}

/// The pipes to a server.
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
        clock.timeout(EXIT_GRACE, self.exited()).await?;
        self.kill_group();
        let status = clock.timeout(EXIT_GRACE, self.child.wait()).await?.ok();
        // The pipe may still contain its last output.
        clock.timeout(EXIT_GRACE, self.reader.join_next()).await;
        status
    }

    async fn end(&mut self, clock: &Clock) {
        if clock.timeout(CLOSE_GRACE, self.exited()).await.is_none() {
            tracing::warn!(pid = self.group, "Killing an MCP server that did not exit.");
        }
        self.kill(clock).await;
    }

    async fn kill(&mut self, clock: &Clock) {
        self.kill_group();
        if clock.timeout(CLOSE_GRACE, self.child.wait()).await.is_none() {
            tracing::error!(pid = self.group, "Cannot kill an MCP server.");
        }
        self.reader.abort_all();
    }

    /// Waits until the server has exited, but does not reap it: until then, its id stays the group's, so that the
    /// processes that the server has left behind can be killed.
    async fn exited(&self) {
        while self.child.id().is_some_and(|id| !os::has_exited(id)) {
            tokio::time::sleep(EXIT_POLL).await;
        }
    }

    fn kill_group(&self) {
        // `id` is `None` once the child is reaped. The group's id may then be reused.
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

/// The thread that started a server. It lives as long as the server's [`Process`].
///
/// The kernel's parent-death signal fires when the *thread* that started the child exits. A runtime's
/// threads may exit long before the process does (those of `spawn_blocking` after ten idle seconds), so
/// each server has its own thread, which only waits.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Dropped to end the thread.
    _release: std::sync::mpsc::Sender<()>,
}

impl Keeper {
    pub(crate) async fn start(mut command: Command) -> io::Result<(Child, Self)> {
        os::die_with_parent(&mut command);
        let (release, released) = std::sync::mpsc::channel();
        let (started, child) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("child".to_owned()).spawn(move || {
            let child = {
                let _context = runtime.enter();
                command.spawn()
            };
            // Without a receiver the child is dropped here, which kills it.
            if started.send(child).is_ok() {
                let _ = released.recv();
            }
        })?;
        let child = child.await.map_err(io::Error::other)??;
        Ok((child, Self { _release: release }))
    }
}

pub(crate) use os::{has_exited, kill_group};

/// The last bytes of a stream.
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

/// The system calls without a safe interface.
mod os {
    use tokio::process::Command;

    /// Sets the parent-death signal, so that a hanging server does not outlive a killed agent. Linux only.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "code between fork and exec can only be given as unsafe")]
    pub(super) fn die_with_parent(command: &mut Command) {
        let parent = std::process::id();
        let arm = move || {
            // SAFETY: both are single system calls on integers.
            let (armed, now) =
                unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
            // The parent may have died before the call above. The signal would then wait for the
            // process that adopted the child.
            if armed == -1 || u32::try_from(now) != Ok(parent) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        };
        // SAFETY: `arm` allocates nothing, takes no lock and calls only async-signal-safe functions.
        unsafe { command.pre_exec(arm) };
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn die_with_parent(_command: &mut Command) {}

    /// Whether a child has exited. Does not reap it.
    #[expect(unsafe_code, reason = "the standard library reaps what it finds exited")]
    pub(crate) fn has_exited(child: u32) -> bool {
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: zeroes are a valid `siginfo_t`, and the call writes to nothing else.
        let (found, id) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let found = libc::waitid(libc::P_PID, child, &raw mut info, flags);
            (found, info.si_pid())
        };
        // Without such a child there is nothing to wait for.
        found == -1 || id != 0
    }

    /// Kills a process group whose leader has not been reaped.
    #[expect(unsafe_code, reason = "the standard library kills single processes only")]
    pub(crate) fn kill_group(leader: u32) {
        let Ok(leader) = i32::try_from(leader) else { return };
        assert!(leader > 1, "not init and not our own group");
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
    fn the_tail_keeps_the_last_bytes() {
        let tail = Tail::default();
        (0..1_000).for_each(|n| tail.push(format!("line {n}\n").as_bytes()));
        let text = tail.text();
        assert!(text.len() <= 2 * STDERR_BYTES_MAX && text.ends_with("line 998 | line 999"));
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let program = Program::new(Text::plain("/nonexistent/server"));
        let error = Process::start(&program).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn stderr_and_exit_status_of_a_server_are_known() {
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

    /// Starts a server that starts a process of its own. Returns that process's id, too.
    async fn with_grandchild(then: &str) -> (Process, Pipes, u32) {
        let script = format!("sleep 300 >/dev/null 2>&1 & echo $! >&2; {then}");
        let (process, pipes) = Process::start(&shell(&script)).await.unwrap();
        let grandchild = loop {
            if let Ok(id) = process.stderr.text().parse() {
                break id;
            }
            tokio::time::sleep(EXIT_POLL).await;
        };
        (process, pipes, grandchild)
    }

    async fn is_gone(process: u32) {
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        };
        let gone = async {
            while state().is_some_and(|state| state != 'Z') {
                tokio::time::sleep(EXIT_POLL).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it is killed");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_server_started_ends_with_it() {
        let clock = Clock::system();
        // It ends when its stdin is closed.
        let (mut process, pipes, grandchild) = with_grandchild("read line").await;
        drop(pipes);
        process.end(&clock).await;
        is_gone(grandchild).await;
        // It is killed.
        let (mut process, _pipes, grandchild) = with_grandchild("sleep 300").await;
        process.kill(&clock).await;
        is_gone(grandchild).await;
        // It exits by itself.
        let (mut process, _pipes, grandchild) = with_grandchild("exit 3").await;
        while process.exit_status(&clock).await.is_none() {}
        is_gone(grandchild).await;
        // It is dropped.
        let (process, _pipes, grandchild) = with_grandchild("sleep 300").await;
        drop(process);
        is_gone(grandchild).await;
        let (process, _pipes, grandchild) = with_grandchild("exit 0").await;
        process.exited().await;
        drop(process);
        is_gone(grandchild).await;
    }

    /// The kernel kills a child with the thread that started it, so that thread must not be one that a
    /// runtime ends when idle.
    #[test]
    fn a_server_outlives_the_thread_that_requested_it() {
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
