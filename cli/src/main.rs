//! The binary `daybook`, with the agents that ship.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main_with(Vec::new())
}
