//! The interface through which packs extend the program `daybook`.
//!
//! The command line (`cli`) takes a list of [`Extension`]s and names no pack. From each extension,
//! `daybook mcp` serves the [`server`]s, `daybook trigger` reads the folders of the [`input`], and the
//! [`command`]s become subcommands. All of them end with an exit code or a failure from [`failure`].

pub mod command;
pub mod failure;
pub mod input;
pub mod server;

use std::fmt;

use clap::ArgMatches;

use crate::command::Command;
use crate::failure::Failure;
use crate::input::Input;
use crate::server::Server;

/// The additions of one pack.
#[derive(Default)]
pub struct Extension {
    /// The MCP servers that `daybook mcp` serves.
    pub servers: Vec<Box<dyn Server>>,
    /// The input of the pack's agent.
    pub input: Option<Input>,
    /// Subcommands of `daybook`.
    pub commands: Vec<Box<dyn Command>>,
    /// Additional options of `daybook dev`.
    pub dev: Option<DevOptions>,
    /// The agent that `daybook chat` talks with.
    pub chat: Option<Chat>,
    /// Examples for the help of built-in commands, as pairs of command and line.
    pub examples: &'static [(&'static str, &'static str)],
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<_> = self.servers.iter().map(|server| server.info().name).collect();
        f.debug_struct("Extension").field("servers", &servers).finish_non_exhaustive()
    }
}

/// Reads options into environment variables: name and value.
pub type ReadVariables = fn(&ArgMatches) -> Result<Vec<(&'static str, String)>, Failure>;

/// Options of `daybook dev`, and the environment variables that they set for the stack.
#[derive(Clone, Copy)]
pub struct DevOptions {
    /// Adds the options.
    pub define: fn(clap::Command) -> clap::Command,
    /// The variables that the options set.
    pub variables: ReadVariables,
    /// The hint when the stack rejects one of the variables.
    pub hint: &'static str,
}

/// A conversational agent, and its texts in the help of `daybook chat`.
#[derive(Clone, Copy, Debug)]
pub struct Chat {
    /// The agent's name.
    pub agent: &'static str,
    /// One line on the conversation.
    pub about: &'static str,
    /// Example lines.
    pub examples: &'static str,
}
