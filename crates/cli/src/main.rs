//! The binary `daybook` with the bundled agents.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A stack allocates and frees many small values on all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main_with(Vec::new())
}
