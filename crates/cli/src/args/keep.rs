//! Commands that keep and remove sessions: `backup`, `restore`, `prune`, `hold` and `release`.

use std::path::PathBuf;

use clap::Args as Group;
use stack::list::When;

/// `backup`.
#[derive(Debug, Group)]
#[command(after_help = "\
The stack may run meanwhile. FILE appears when it is whole; until then it is FILE.part, and an interrupted backup is
begun anew. The keys that sign the log of sessions are not in it: keep ~/.config/daybook/keys apart from it.

Exit codes: 0 every session verifies · 1 the journal is damaged, and so is its copy; or its pages are, and there is no copy
            2 of a session, nothing can be proven; or nothing was written

Example:
  daybook backup /mnt/backup/daybook-$(date +%F).db")]
pub struct Backup {
    /// The file to write; it must not exist
    pub file: PathBuf,
}

/// `restore`.
#[derive(Debug, Group)]
#[command(after_help = "\
Example:
  daybook restore /mnt/backup/daybook-2026-11-22.db --data-dir .daybook --replace")]
pub struct Restore {
    /// The file that `daybook backup` wrote
    pub file: PathBuf,
    /// The data folder [default: --data, else .daybook]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Require the signature of this log: a file with its public keys, as `daybook keys show` prints them
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Put it in the place of a journal, which is kept beside it under another name
    #[arg(long)]
    pub replace: bool,
    /// Restore although sessions in it are damaged; they stay so
    #[arg(long)]
    pub allow_damage: bool,
    /// Restore although it does not prove what --key requires; with --key
    #[arg(long, requires = "key")]
    pub allow_unproven: bool,
}

/// `prune`.
#[derive(Debug, Group)]
pub struct Prune {
    /// Ended before: an age (30m, 24h, 90d) or a time (2026-11-22T08:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub before: When,
    /// Also keep sessions that were once held under this label and released; repeat for several
    #[arg(long, value_name = "LABEL")]
    pub keep_label: Vec<String>,
    /// Why, for the log of sessions
    #[arg(long, value_name = "TEXT", default_value = "pruned by age")]
    pub reason: String,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `hold`.
#[derive(Debug, Group)]
pub struct Hold {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    #[command(flatten)]
    pub label: Label,
    /// Why, for the log of sessions
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// `release`.
#[derive(Debug, Group)]
pub struct Release {
    /// Session id, or its first characters (6 or more)
    pub session: String,
    #[command(flatten)]
    pub label: Label,
    /// Why, for the log of sessions
    #[arg(long, value_name = "TEXT", default_value = "released")]
    pub reason: String,
}

#[derive(Debug, Group)]
pub struct Label {
    /// The label of the hold, of which a session may have several: letters, digits, `.`, `_` and `-`
    #[arg(long, value_name = "LABEL", default_value = "hold")]
    pub label: String,
}
