//! Plants defects in a copy of the workspace and checks that the tests find each.
//!
//! The list is `verify/defects/defects.toml`. All defects are planted at once into the copy
//! ([`plant`]), each behind a switch that a process is started with, so that one build serves them
//! all. Then every named test is run without any defect and must pass, and with its own and must
//! fail ([`suite`]).

mod defects;
mod plant;
mod suite;

use std::process::ExitCode;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match defects::run(tidy::workspace_root(), &names) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
