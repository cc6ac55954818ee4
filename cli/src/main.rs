//! The binary `daybook`, with the agents that ship.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A stack makes and drops small values on all of its threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main_with(Vec::new())
}
