//! How to start a server, or to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Stdio;

use files::Roots;
use serde_json::Value;

use super::in_process::InProcess;
use super::remote::Remote;
use super::text::{self, Text};

/// How to start a server, or to reach it. `Display` shows it as configured, without secrets.
#[derive(Clone, Debug)]
pub(super) enum Launch {
    /// A child process.
    Program(Program),
    /// A task of this process.
    InProcess(InProcess),
    /// A server that runs elsewhere.
    Remote(Remote),
}

impl Launch {
    /// The noun for its `Display` text.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Program(_) | Self::InProcess(_) => "command",
            Self::Remote(_) => "address",
        }
    }

    /// Identifies the server if sessions may share it: servers with equal identities are one.
    pub(super) fn shared(&self) -> Option<Identity> {
        match self {
            Self::Program(program) if program.is_shared && program.paths.is_empty() => {
                Some(program.identity())
            }
            Self::Program(_) | Self::InProcess(_) | Self::Remote(_) => None,
        }
    }

    /// Redacts the secrets of this server's configuration.
    pub(super) fn redact(&self, text: &str) -> String {
        text::redact(text, &self.secrets())
    }

    /// Redacts the secrets of this server's configuration in a tool's result.
    pub(super) fn redact_value(&self, value: Value) -> Value {
        text::redact_value(value, &self.secrets())
    }

    fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Program(program) => program.secrets().collect(),
            Self::InProcess(_) => Vec::new(),
            Self::Remote(remote) => remote.secrets().collect(),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::InProcess(_) => f.write_str("none, it is a part of this program"),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

/// A command, its arguments and its complete environment.
#[derive(Clone)]
pub(super) struct Program {
    path: Text,
    pub(super) args: Vec<Text>,
    pub(super) env: BTreeMap<String, Text>,
    /// Options with a path from the session's input. [`Self::admitted`] makes arguments of them.
    pub(super) paths: Vec<(&'static str, String)>,
    /// The paths that may be passed.
    pub(super) roots: Roots,
    /// Whether it is a server of a pack.
    pub(super) is_own: bool,
    /// Whether it keeps nothing between calls, so that sessions may share it.
    pub(super) is_shared: bool,
}

/// A command, its arguments and its complete environment, resolved. It may contain secrets.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Identity(Vec<String>, Vec<(String, String)>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Program {
    /// No arguments, empty environment.
    pub(super) fn new(path: Text) -> Self {
        let (args, env, paths) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { path, args, env, paths, roots: Roots::default(), is_own: false, is_shared: false }
    }

    fn identity(&self) -> Identity {
        let command = std::iter::once(&self.path).chain(&self.args);
        let command = command.map(|text| text.value.clone()).collect();
        let env = self.env.iter().map(|(name, text)| (name.clone(), text.value.clone()));
        Identity(command, env.collect())
    }

    /// The command with the input's paths as arguments, in canonical form. Reads the file system on a
    /// thread that may block.
    ///
    /// # Errors
    /// When a path may not be read.
    pub(super) async fn admitted(&self) -> Result<Self, String> {
        let mut program = self.clone();
        if program.paths.is_empty() {
            return Ok(program);
        }
        let (paths, roots) = (std::mem::take(&mut program.paths), self.roots.clone());
        let arguments = move || {
            let argument = |(option, path): (&str, String)| {
                let canonical = roots.admit(Path::new(&path)).map_err(|error| error.to_string())?;
                let path = canonical.to_str().ok_or("its path is not UTF-8")?;
                // One argument, so that a path that begins with a hyphen is not parsed as an option.
                Ok(Text::plain(format!("{option}={path}")))
            };
            paths.into_iter().map(argument).collect::<Result<Vec<_>, String>>()
        };
        let arguments = tokio::task::spawn_blocking(arguments).await;
        program.args.extend(arguments.map_err(|error| error.to_string())??);
        Ok(program)
    }

    /// The command with piped streams, in its own process group. Killing the group includes grandchildren,
    /// and a Ctrl-C in the terminal does not reach the server before we close it.
    pub(super) fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.path.value);
        command.args(self.args.iter().map(|arg| &arg.value));
        command.env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, &value.value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        let texts = std::iter::once(&self.path).chain(&self.args).chain(self.env.values());
        texts.flat_map(|text| &text.secrets).map(String::as_str)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path.shown)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", arg.shown))?;
        self.paths.iter().try_for_each(|(option, path)| write!(f, " {option}={path}"))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Program").field("command", &self.to_string()).field("env", &names).finish()
    }
}
