//! Runs the binary, with a deadline for every command.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Deadline of a command, on a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Reads the result of an ended command.
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            exit: output.status.code().expect("the command ended by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Each line of stdout as JSON.
    pub fn json(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:#?}")))
            .collect()
    }
}

/// The binary, with an empty environment, in `folder`.
pub fn daybook(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daybook"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("DAYBOOK_KEYS", folder.join(".keys"));
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    run_within(command, DEADLINE)
}

/// Runs a command to its end, with a deadline.
pub fn run_within(command: &mut Command, deadline: Duration) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let killer = {
        let id = child.id();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            if is_done.recv_timeout(deadline).is_err() {
                let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
            }
        });
        done
    };
    let mut stdin = child.stdin.take();
    drop(stdin.take());
    let output = child.wait_with_output().unwrap();
    let _ = killer.send(());
    Ran::of(output)
}

/// Runs a command line in a folder.
pub fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    run(daybook(folder).args(arguments))
}

/// A path from the test runner's environment; prints why it skips if unset.
#[expect(clippy::disallowed_methods, reason = "how the test runner says where they are")]
pub fn tool(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: {variable} is not set (`make verify` sets it)");
    }
    path
}

/// An endpoint at which nothing listens.
pub fn free_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// A bundled incident.
pub fn incident(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packs/incident/incidents")
        .join(name)
        .canonicalize()
        .unwrap()
}

/// A running `daybook dev`; killed on drop.
pub struct Dev {
    child: Child,
    pub endpoint: String,
}

impl Dev {
    /// Starts a stack on a free port and waits until it is ready.
    pub fn start(folder: &Path, data: &Path) -> Self {
        Self::listening(&mut daybook(folder), data, "127.0.0.1:0")
    }

    /// Starts a stack with a prepared command.
    pub fn listening(command: &mut Command, data: &Path, listen: &str) -> Self {
        Self::listening_with(command, data, listen, &[])
    }

    /// The same, with further arguments of `dev`.
    pub fn listening_with(
        command: &mut Command,
        data: &Path,
        listen: &str,
        arguments: &[&str],
    ) -> Self {
        command.arg("--data").arg(data).args(["dev", "--listen", listen]).args(arguments);
        Self::ready(command)
    }

    /// Starts a stack that writes its log to a file.
    pub fn logging_to(folder: &Path, data: &Path, log: &Path) -> Self {
        let mut command = daybook(folder);
        command.arg("--data").arg(data).args(["dev", "--listen", "127.0.0.1:0"]);
        Self::ready_with(&mut command, std::fs::File::create(log).unwrap().into())
    }

    /// Waits until a command says where it serves.
    pub fn ready(command: &mut Command) -> Self {
        Self::ready_with(command, Stdio::null())
    }

    /// The same, with its stderr.
    pub fn ready_with(command: &mut Command, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let endpoint = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}"));
        Self { child, endpoint: endpoint.trim().to_owned() }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal and waits; returns the exit code.
    pub fn stop(self, signal: &str) -> i32 {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        self.ended()
    }

    /// Waits until it ends by itself; returns the exit code.
    pub fn ended(mut self) -> i32 {
        for _ in 0..DEADLINE.as_millis() / 20 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the stack did not stop");
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
