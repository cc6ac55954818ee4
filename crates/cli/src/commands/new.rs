//! `new`: creates the folder of an agent.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::args::Language;
use crate::failure::{Exit, Failure};
use crate::new_agent::NewAgent;
use crate::output;
use crate::resolve::Context;

/// Creates an agent in a folder of its name, which must not exist.
///
/// # Errors
/// When the folder exists or cannot be written.
pub fn agent(context: &Context, new: &NewAgent) -> Result<Exit, Failure> {
    let folder = Path::new(&new.name);
    fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::unknown(format!("{} already exists", folder.display()))
                .hint("choose another name, or remove the folder; nothing was written")
        }
        _ => Failure::unknown(format!("cannot create the folder {}: {error}", folder.display())),
    })?;
    for (path, text) in new.files() {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&file, text));
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let (Language::Typescript, Some(kit)) = (new.language, new.kit()) {
        // What `npm install` would do with the dependency of package.json.
        let modules = folder.join("node_modules");
        fs::create_dir(&modules)?;
        symlink(kit, modules.join("daybook"))?;
    }
    if context.json {
        output::json(&json!({ "folder": new.name, "daybook": new.daybook.shown() }))?;
    } else {
        output::line(&new.name)?;
    }
    if new.language == Language::RustGraph {
        output::hint(&format!(
            "Daybook is not on crates.io; this crate uses {}, see its Cargo.toml",
            new.daybook.shown()
        ));
        output::hint(&format!("next: cd {} && cargo test", new.name));
    } else {
        let build = if new.language == Language::Rust { "cargo build && " } else { "" };
        output::hint(&format!(
            "next: cd {0} && {build}daybook dev, and there in another terminal: daybook trigger --agent {0} --input input.json --wait",
            new.name
        ));
    }
    Ok(Exit::Succeeded)
}
