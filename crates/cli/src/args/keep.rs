//! `backup` and `restore`.

use std::path::PathBuf;

use clap::Args as Group;

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
}
