//! A function that is a command: the payload on its stdin, the response on its stdout.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{ANSWER_BYTES_MAX, Answer, FunctionError};
use crate::process::{die_with_parent, kill_group};

/// A command, run once per call, without a shell.
pub(super) struct Program {
    path: PathBuf,
    folder: PathBuf,
    pub(super) args: Vec<String>,
    /// Its whole environment.
    pub(super) environment: BTreeMap<String, String>,
}

/// A process group; killed when dropped before it has exited.
struct Group(Child);

impl Group {
    fn kill(&self) {
        // A reaped leader has no id: another process may have it by now.
        if let Some(leader) = self.0.id() {
            kill_group(leader);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.keys().collect();
        f.debug_struct("Program").field("path", &self.path).field("env", &names).finish()
    }
}

impl Program {
    /// A command that runs in a folder. A relative path is relative to that folder.
    pub(super) fn new(command: &str, folder: &Path) -> Self {
        let path = match command.contains('/') {
            true => folder.join(command),
            false => PathBuf::from(command),
        };
        let (args, environment) = (Vec::new(), BTreeMap::new());
        Self { path, folder: folder.to_owned(), args, environment }
    }

    /// Runs the command once. Dropping the future kills it.
    pub(super) async fn call(&self, payload: &Value) -> Answer {
        match self.run(payload).await {
            Ok((status, output)) => answer(status, &output),
            Err(error) => {
                let path = self.path.display();
                let message = format!("cannot run {path}: {error}");
                Err(FunctionError::new("Runtime.InvalidEntrypoint", message))
            }
        }
    }

    async fn run(&self, payload: &Value) -> io::Result<(ExitStatus, Vec<u8>)> {
        let mut command = Command::new(&self.path);
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its stderr goes to the stack's own.
            .stderr(Stdio::inherit())
            .process_group(0);
        die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut group = Group(child);
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("a pipe is missing"));
        };
        // Both at once: a command may write before it has read everything.
        let ((), output) = tokio::join!(feed(stdin, payload), collect(stdout));
        let output = output?;
        if output.len() > ANSWER_BYTES_MAX {
            // The output is over the limit; the rest is not read.
            group.kill();
        }
        Ok((group.0.wait().await?, output))
    }
}

async fn feed(mut stdin: ChildStdin, payload: &Value) {
    // A command may close its stdin without reading the payload.
    let _ = stdin.write_all(payload.to_string().as_bytes()).await;
}

/// Reads the output, up to one byte over the limit.
async fn collect(stdout: ChildStdout) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    stdout.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut output).await?;
    Ok(output)
}

/// Maps a command's exit to Lambda's response. A failing command may report its error in the JSON form
/// of Lambda's runtimes.
fn answer(status: ExitStatus, output: &[u8]) -> Answer {
    if output.len() > ANSWER_BYTES_MAX {
        return Err(FunctionError::too_large());
    }
    if !status.success() {
        let said = serde_json::from_slice(output).ok();
        return Err(said.as_ref().and_then(FunctionError::said).unwrap_or_else(|| {
            let message = format!("Error: Runtime exited with error: {status}");
            FunctionError::new("Runtime.ExitError", message)
        }));
    }
    FunctionError::unless_json(output)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn shell(script: &str) -> Program {
        let mut program = Program::new("/bin/sh", Path::new("/"));
        program.args = vec!["-c".to_owned(), script.to_owned()];
        program.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        program
    }

    #[tokio::test]
    async fn a_command_responds_and_fails_as_a_lambda_function_does() {
        for (script, expected) in [
            ("cat", Ok(json!({"a": 1}))),
            ("echo 7", Ok(json!(7))),
            ("true", Ok(Value::Null)),
            ("echo hello", Err("Runtime.MarshalError")),
            ("exit 3", Err("Runtime.ExitError")),
            ("kill -9 $$", Err("Runtime.ExitError")),
            (
                r#"echo '{"errorType": "NoStock", "errorMessage": "sold out"}'; exit 1"#,
                Err("NoStock"),
            ),
            ("head -c 6291557 /dev/zero", Err("Function.ResponseSizeTooLarge")),
            // Writes forever.
            ("yes", Err("Function.ResponseSizeTooLarge")),
        ] {
            let answer = shell(script).call(&json!({"a": 1})).await;
            assert_eq!(
                answer.as_ref().map_err(|error| error.name.as_str()),
                expected.as_ref().map_err(|name| *name),
                "{script}"
            );
        }
        let gone = Program::new("./gone", Path::new("/nonexistent")).call(&json!({})).await;
        assert_eq!(gone.unwrap_err().name, "Runtime.InvalidEntrypoint");
    }

    #[tokio::test]
    async fn a_command_may_write_before_it_reads_a_large_payload() {
        let payload = json!("x".repeat(200 * 1024));
        let echoed = shell("printf ''; cat").call(&payload).await;
        assert_eq!(echoed, Ok(payload));
    }

    #[tokio::test]
    async fn a_dropped_call_kills_the_command_and_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = shell("sleep 60 & echo $! >child; echo $$ >leader; wait");
        program.folder = folder.path().to_owned();
        let payload = json!({});
        let begun = async {
            while std::fs::read_to_string(folder.path().join("leader"))
                .unwrap_or_default()
                .is_empty()
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = program.call(&payload) => panic!("it sleeps"),
            () = begun => {}
        }
        for name in ["leader", "child"] {
            let id = std::fs::read_to_string(folder.path().join(name)).unwrap();
            let gone = async {
                // A killed process that is not reaped yet is a zombie.
                while std::fs::read_to_string(format!("/proc/{}/stat", id.trim()))
                    .is_ok_and(|stat| !stat.contains(") Z "))
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), gone).await.expect(name);
        }
    }
}
