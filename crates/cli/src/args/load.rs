//! Commands that hold agents back: `halt` and `unhalt`.

use clap::{ArgGroup, Args as Group};

/// `halt`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("of").required(true).args(["agent", "all"])))]
pub struct Halt {
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// All agents
    #[arg(long)]
    pub all: bool,
    /// Why; journaled
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// `unhalt`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("of").required(true).args(["agent", "all"])))]
pub struct Unhalt {
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The halt of all agents; halts of single agents stay
    #[arg(long)]
    pub all: bool,
    /// Why; journaled
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
}
