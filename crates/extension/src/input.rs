//! Inputs of agents: files, and folders that a pack recognises.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Largest input, in bytes; no event bus accepts a larger event.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

/// The input of a pack's agent.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// The agent's name.
    pub agent: &'static str,
    /// A folder that the pack recognises.
    pub folder: Option<Folder>,
    /// Fields of the input that may contain a path.
    pub paths: &'static [&'static str],
    /// Files that the file at such a path refers to, if it may.
    pub referred: Option<fn(&Path) -> Vec<PathBuf>>,
}

/// Reads a folder into the detail of a trigger; `None` if the folder is not this kind.
pub type ReadFolder = fn(&Path) -> Result<Option<Map<String, Value>>, Failure>;

/// A folder that a pack recognises as its agent's input.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The folder's format, for a hint.
    pub form: &'static str,
    /// Reads a path into the trigger's detail, with its `input` and `agent`; `None` if the pack does not
    /// recognise it.
    pub read: ReadFolder,
}

/// Reads a JSON file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read or is not JSON.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let json =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()));
    Ok(json?)
}

/// Reads a text file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read or is larger than 1 MiB.
pub fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let bound = INPUT_BYTES_MAX + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(bound).read_to_string(&mut text)?;
    } else {
        files::read::regular(path)?.take(bound).read_to_string(&mut text)?;
    }
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err(anyhow!("it is larger than {INPUT_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// Makes a field with a path absolute, because the stack may run in another folder.
///
/// The path is resolved against the input's folder (or the input, if it is a folder), then against the
/// working directory. A path that does not exist is left unchanged.
pub fn make_absolute(input: &mut Value, field: &str, beside: Option<&Path>) {
    let Some(file) = input.get(field).and_then(Value::as_str) else { return };
    let folder = beside.and_then(|path| if path.is_dir() { Some(path) } else { path.parent() });
    let places = folder.map(|folder| folder.join(file)).into_iter().chain([PathBuf::from(file)]);
    let mut found = places.filter_map(|place| place.canonicalize().ok());
    if let Some(path) = found.find(|place| place.is_file()).as_deref().and_then(Path::to_str) {
        input[field] = path.into();
    }
}

/// Makes the path in `transcript:FILE` absolute, because the stack may run in another folder.
pub fn model_name(model: String) -> String {
    let file = model.strip_prefix("transcript:").map(|file| Path::new(file).canonicalize());
    match file {
        Some(Ok(absolute)) => format!("transcript:{}", absolute.display()),
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_resolves_against_the_input_s_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a.csv");
        std::fs::write(&data, "x").unwrap();
        for beside in [folder.path().join("input.json"), folder.path().to_owned()] {
            let mut input = serde_json::json!({"data": "a.csv"});
            make_absolute(&mut input, "data", Some(&beside));
            assert_eq!(input["data"], data.canonicalize().unwrap().to_str().unwrap());
        }
    }

    #[test]
    fn a_value_that_is_not_a_file_is_unchanged() {
        for value in ["http://127.0.0.1:1", "nowhere.json"] {
            let mut input = serde_json::json!({ "data": value });
            make_absolute(&mut input, "data", None);
            assert_eq!(input["data"], value);
        }
    }
}
