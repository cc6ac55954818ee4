//! The load of a stack: its limits, and the commands `halt`, `unhalt` and `drain`.

use std::num::NonZeroU32;

use clap::{ArgGroup, Args as Group};

/// The limits of `dev`. Each has an environment variable, over which it takes precedence.
#[derive(Debug, Group)]
pub struct Caps {
    /// Most sessions at work at once; further ones wait in a queue [env: DAYBOOK_AGENTS_MAX] [default: 10000, with
    /// --isolate 64]
    #[arg(long, value_name = "N")]
    pub agents_max: Option<NonZeroU32>,
    /// The same for one agent; repeatable [env: DAYBOOK_AGENT_MAX=NAME=N,...]
    #[arg(long, value_name = "NAME=N", value_parser = agent_max)]
    pub agent_max: Vec<AgentMax>,
    /// Most sessions in the queue; then new ones are throttled [env: DAYBOOK_QUEUE_MAX] [default: 10000]
    #[arg(long, value_name = "N")]
    pub queue_max: Option<u32>,
    /// Most executions under way; then new sessions are throttled [env: DAYBOOK_EXECUTIONS_MAX] [default: 100000]
    #[arg(long, value_name = "N")]
    pub executions_max: Option<NonZeroU32>,
    /// Disk budget of the data folder; near it, new sessions are throttled, and those under way end
    /// [env: DAYBOOK_DISK_MAX] [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub disk_max: Option<u64>,
    /// Most calls at once of one provider of models [env: DAYBOOK_MODEL_CALLS_MAX] [default: 64]
    #[arg(long, value_name = "N")]
    pub model_calls_max: Option<NonZeroU32>,
}

/// Most sessions of one agent at work at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMax {
    pub agent: String,
    pub most: NonZeroU32,
}

/// Parses `NAME=N`.
///
/// # Errors
/// If it is something else. The error says what is expected.
pub fn agent_max(text: &str) -> Result<AgentMax, String> {
    let parsed = text.split_once('=').and_then(|(agent, most)| {
        let agent = Some(agent.trim()).filter(|agent| !agent.is_empty())?;
        Some(AgentMax { agent: agent.to_owned(), most: most.trim().parse().ok()? })
    });
    parsed.ok_or_else(|| "expected NAME=N, with N at least 1".to_owned())
}

/// Parses a size in bytes: a whole number, with a unit or without.
///
/// # Errors
/// If it is something else, or zero. The error says what is expected.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bytes = match unit.trim() {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        "TiB" => Some(1_u64 << 40),
        "KB" | "kB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "TB" => Some(1_000_000_000_000),
        _ => None,
    };
    let size = bytes.and_then(|unit: u64| unit.checked_mul(number.parse().ok()?));
    size.filter(|size| *size > 0).ok_or_else(|| format!("expected {SIZE}"))
}

/// What [`size`] accepts.
pub const SIZE: &str = "a size above zero, such as 500MB or 20GiB";

/// `drain`.
#[derive(Debug, Group)]
#[command(after_help = "\
Exits 0 when the stack has stopped, 2 if it did not stop. What was not at work, or not done in time, goes on when
the stack starts again; nothing is lost.")]
pub struct Drain {
    /// Time for sessions at work to end or pause; then they are stopped after their last journaled step
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub within: u32,
}

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
