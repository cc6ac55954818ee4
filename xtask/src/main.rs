//! Xtask keeps the promises that the compiler cannot: it reads the workspace and names what breaks them.
//!
//! [`tree`] loads every file that git tracks or would track; each module under [`tidy`] is one rule,
//! a pure function from that tree to findings. [`defects`] keeps the tests honest: it puts defects into
//! a copy of the workspace and says which of them no test finds.

mod defects;
mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- tidy | defects [name…]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => run_tidy(),
        ["defects", ..] => run_defects(&arguments[1..]),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(64)
        }
    }
}

fn run_tidy() -> ExitCode {
    match tidy::findings(workspace_root()) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            eprintln!("tidy: {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run_defects(names: &[String]) -> ExitCode {
    match defects::run(workspace_root(), names) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The folder that holds the workspace's Cargo.toml.
fn workspace_root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir)
}
