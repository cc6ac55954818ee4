//! A text in a person's own editor.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, anyhow};

/// Opens a JSON text in an editor and returns what it was left as. `editor` is a command line, as in
/// `EDITOR`.
///
/// # Errors
/// When the editor cannot be started, or says that it failed.
pub fn edit(editor: &str, text: &str) -> anyhow::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("daybook-arguments-")
        .suffix(".json")
        .tempfile()
        .context("there is no place for a file to edit")?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // The shell reads what may have options, as it does for git and crontab.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .status()
        .with_context(|| format!("`{editor}` was not started"))?;
    if !status.success() {
        return Err(anyhow!("`{editor}` failed ({status}); nothing was changed"));
    }
    // Many editors write another file in the place of the one they were given.
    Ok(std::fs::read_to_string(file.path())?)
}
