//! Commands that act on a session: `cancel`, `answer` and `chat`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group};

/// `cancel`.
#[derive(Debug, Group)]
pub struct Cancel {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    /// Reason for the cancellation
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `resume`.
#[derive(Debug, Group)]
pub struct Resume {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    /// Continue with this version of the agent instead of the session's own; journaled
    #[arg(long, value_name = "N")]
    pub as_version: Option<String>,
}

/// `erase`.
#[derive(Debug, Group)]
pub struct Erase {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    /// Reason for the erasure; journaled in plain text
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// `answer`.
#[derive(Debug, Group)]
#[command(group(ArgGroup::new("decision").args(["approve", "reject", "edit", "say"])))]
pub struct Answer {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    /// Approve the call exactly as proposed
    #[arg(long)]
    pub approve: bool,
    /// Reject
    #[arg(long)]
    pub reject: bool,
    /// Reason for the rejection
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["approve", "edit", "say"])]
    pub reason: Option<String>,
    /// Approve with the arguments from this JSON file, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub edit: Option<PathBuf>,
    /// Answer in words
    #[arg(long, value_name = "TEXT")]
    pub say: Option<String>,
    /// Answer only the question with this digest, as it was shown: its first characters (12 or more)
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
}

/// `chat`.
#[derive(Debug, Group)]
pub struct Chat {
    /// Rejoin this thread: session id, or its first characters
    #[arg(long, value_name = "SESSION")]
    pub thread: Option<String>,
    /// Model of a new thread: policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL", conflicts_with = "thread")]
    pub model: Option<String>,
}
