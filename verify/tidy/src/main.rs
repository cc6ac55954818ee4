//! Prints violations of the workspace's rules; exits 0 if there are none.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tidy::rules::findings(tidy::workspace_root()) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            eprintln!("tidy: {} to fix", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
