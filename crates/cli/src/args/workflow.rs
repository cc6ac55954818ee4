//! `workflow`: state machines without a stack.

use std::path::PathBuf;

use super::Group;
use clap::Subcommand;

/// `workflow`.
#[derive(Debug, Group)]
pub struct Workflow {
    /// The action.
    #[command(subcommand)]
    pub action: WorkflowAction,
}

/// Actions on a state machine.
#[derive(Debug, Subcommand)]
pub enum WorkflowAction {
    /// Validate the definition as AWS does; exit 1 if it is invalid
    Check {
        /// The definition file, or - for stdin
        #[arg(value_name = "PATH|-")]
        file: PathBuf,
    },
    /// Run it once and print its history; exit 1 if it fails. Waits take no time, and only the
    /// functions in --functions are called
    Run {
        /// The definition file
        file: PathBuf,
        /// The input: a JSON file, or - for stdin [default: an empty object]
        #[arg(long, value_name = "PATH|-")]
        input: Option<PathBuf>,
        /// Functions that its tasks may call, in the format of dev --functions
        #[arg(long, value_name = "FILE")]
        functions: Option<PathBuf>,
    },
    /// Run the test cases of a file with mocked tasks, in the format of Step Functions Local's
    /// MockConfigFile.json; exit 1 if one fails
    Test {
        /// The file of mocks and test cases
        file: PathBuf,
        /// The definition file of all its machines [default: each machine's Definition in the file]
        #[arg(long, value_name = "PATH")]
        definition: Option<PathBuf>,
    },
}
