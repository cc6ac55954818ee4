//! Edits text in the user's editor.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, anyhow};

/// Opens JSON text in an editor and returns the edited text. `editor` is a command line, as in `EDITOR`.
///
/// # Errors
/// When the editor cannot be started or exits with an error.
pub fn edit(editor: &str, text: &str) -> anyhow::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("daybook-arguments-")
        .suffix(".json")
        .tempfile()
        .context("cannot create a temporary file")?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // A shell parses the command line, which may have options, as git and crontab do.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .status()
        .with_context(|| format!("cannot start `{editor}`"))?;
    if !status.success() {
        return Err(anyhow!("`{editor}` failed ({status}); the arguments are unchanged"));
    }
    // Many editors replace the file instead of writing to it.
    Ok(std::fs::read_to_string(file.path())?)
}
