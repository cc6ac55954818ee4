//! Plants defects in a copy of the workspace and checks that the tests find each.
//!
//! The list is `verify/defects/defects.toml`. All defects are planted into one copy ([`plant`]), each
//! enabled by an environment variable, so that one build is enough. Each named test must pass without
//! its defect and fail with it ([`suite`]).

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
