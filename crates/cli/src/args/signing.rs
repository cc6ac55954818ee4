//! Commands about who signs the log of sessions: `keys` and `witness`.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand};

/// `witness`.
#[derive(Debug, Group)]
pub struct Witness {
    #[command(subcommand)]
    pub action: WitnessAction,
}

#[derive(Debug, Subcommand)]
pub enum WitnessAction {
    /// Cosign checkpoints that continue those that it has cosigned before
    #[command(after_help = "\
Prints `ready URL` and its public key to stdout when it accepts connections. Keeps its key and the last checkpoint of
each log in --data. Run it on another machine than the stack: somebody who controls both machines can rewrite both.

Example:
  daybook --data witness witness serve --log log.pub
  DAYBOOK_WITNESSES=\"KEY http://127.0.0.1:4610\" daybook dev
  daybook verify SESSION --key log.pub --witness KEY")]
    Serve(WitnessServe),
}

/// `witness serve`.
#[derive(Debug, Group)]
pub struct WitnessServe {
    /// The listen address
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4610")]
    pub listen: String,
    /// A file with the public keys of a log, as `daybook keys show` prints them; repeat for several logs
    #[arg(long, value_name = "FILE", required = true)]
    pub log: Vec<PathBuf>,
}

/// `keys`.
#[derive(Debug, Group)]
pub struct Keys {
    #[command(subcommand)]
    pub action: KeysAction,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum KeysAction {
    /// Print the public keys, newest first, one a line
    Show,
    /// Make a new signing key, and print its public key
    Rotate {
        /// Begin a log under a new name: for a journal that no longer continues what was signed, as after a restore
        #[arg(long)]
        new_log: bool,
    },
}
