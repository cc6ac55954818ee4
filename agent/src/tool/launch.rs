//! How a server is started.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Stdio;

use super::in_process::InProcess;
use super::servers::Text;

/// Shorter secrets are not looked for in what a server says: they would be found everywhere.
const SECRET_CHARS_MIN: usize = 4;

/// How a server is started. Displays as a person wrote it.
#[derive(Clone, Debug)]
pub(super) enum Launch {
    /// As a process of its own.
    Program(Program),
    /// As a task of ours.
    InProcess(InProcess),
}

impl Launch {
    /// A text without the secrets that this server was given.
    pub(super) fn redact(&self, text: &str) -> String {
        match self {
            Self::Program(program) => program.redact(text),
            Self::InProcess(_) => text.to_owned(),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::InProcess(_) => f.write_str("none, it is a part of this program"),
        }
    }
}

/// A command, its arguments and its whole environment.
#[derive(Clone)]
pub(super) struct Program {
    path: Text,
    pub(super) args: Vec<Text>,
    pub(super) env: BTreeMap<String, Text>,
}

impl Program {
    /// Without arguments, in an empty environment.
    pub(super) fn new(path: Text) -> Self {
        Self { path, args: Vec::new(), env: BTreeMap::new() }
    }

    /// The command, its three streams piped, leading a process group of its own: what it starts is
    /// killed with it, and a Ctrl-C in our terminal does not reach it before we close it.
    pub(super) fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.path.value);
        command.args(self.args.iter().map(|arg| &arg.value));
        command.env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, &value.value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }

    fn redact(&self, text: &str) -> String {
        let texts = std::iter::once(&self.path).chain(&self.args).chain(self.env.values());
        let secrets = texts.flat_map(|text| &text.secrets);
        secrets
            .filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN)
            .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path.shown)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", arg.shown))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Program").field("command", &self.to_string()).field("env", &names).finish()
    }
}
