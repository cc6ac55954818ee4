//! The commands that say something to a session.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group};

/// `cancel`.
#[derive(Debug, Group)]
pub struct Cancel {
    /// The session's id, or how it begins
    pub session: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `answer`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("decision").args(["approve", "reject", "edit", "say"])))]
pub struct Answer {
    /// The session's id, or how it begins
    pub session: String,
    /// Yes, exactly this
    #[arg(long)]
    pub approve: bool,
    /// No
    #[arg(long)]
    pub reject: bool,
    /// Why not
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["approve", "edit", "say"])]
    pub reason: Option<String>,
    /// Yes, with the arguments in this JSON file (- for stdin)
    #[arg(long, value_name = "FILE")]
    pub edit: Option<PathBuf>,
    /// Something in words
    #[arg(long, value_name = "TEXT")]
    pub say: Option<String>,
}

/// `chat`.
#[derive(Debug, Group)]
pub struct Chat {
    /// The thread to join: its session's id, or how it begins
    #[arg(long, value_name = "T")]
    pub thread: Option<String>,
    /// For a new thread: policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL", conflicts_with = "thread")]
    pub model: Option<String>,
}
