//! Incident folders: saved AWS CLI output as an agent's input.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use extension::failure::Failure;
use extension::input;
use incident::graph::GRAPH;
use incident::message::{Error as MessageError, Incident};
use journal::id::SessionId;
use serde_json::{Map, Value, json};

/// The format of an incident folder, for hints.
pub const FORM: &str = "an incident folder has incident.json and functions/NAME/…; see packs/incident/incidents/README.md";

/// The alarm, in an incident folder.
const INCIDENT_FILE: &str = "incident.json";

/// AWS's responses, one folder per function.
const FUNCTIONS: &str = "functions";

/// The trigger's detail for an incident folder, or for the `incident.json` in one.
///
/// # Errors
/// When the incident cannot be read.
pub fn read(path: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    let Some(folder) = folder(path) else { return Ok(None) };
    let detail = [
        ("agent".to_owned(), json!(GRAPH.name)),
        ("input".to_owned(), message(&folder)?),
        // Unique, because triggering a saved incident again is intended, unlike a repeated alarm.
        ("dedupe_key".to_owned(), json!(format!("folder/{}", SessionId::fresh()))),
    ];
    Ok(Some(Map::from_iter(detail)))
}

fn folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return path.join(INCIDENT_FILE).is_file().then(|| path.to_owned());
    }
    let is_incident_file = path.file_name()? == INCIDENT_FILE && path.is_file();
    let parent = path
        .parent()
        .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
    (is_incident_file && parent.join(FUNCTIONS).is_dir()).then(|| parent.to_owned())
}

/// The incident message with its snapshot folder. If the message names no function, the folder's only
/// function is added.
fn message(folder: &Path) -> Result<Value, Failure> {
    let mut message = input::json(&folder.join(INCIDENT_FILE))?;
    let absolute =
        folder.canonicalize().with_context(|| format!("cannot open {}", folder.display()))?;
    let absolute =
        absolute.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", absolute.display()))?;
    let names_none = matches!(
        Incident::parse(&message),
        Err(MessageError::Missing { field, .. }) if field == "lambda_name"
    );
    if let Some(fields) = message.as_object_mut() {
        fields.insert("snapshot".to_owned(), absolute.into());
        if names_none && let Some(function) = only_function(folder) {
            fields.insert("lambda_name".to_owned(), function.into());
        }
    }
    Ok(message)
}

fn only_function(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder.join(FUNCTIONS)).ok()?;
    let mut functions = entries.flatten().filter(|entry| entry.path().is_dir());
    match (functions.next(), functions.next()) {
        (Some(only), None) => only.file_name().into_string().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundled(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../incidents").join(name)
    }

    fn input(path: &Path) -> Value {
        read(path).unwrap().unwrap()["input"].clone()
    }

    #[test]
    fn a_folder_and_its_incident_file_are_equivalent() {
        let folder = bundled("network-blocked");
        let message = input(&folder);
        assert_eq!(message, input(&folder.join(INCIDENT_FILE)));
        let snapshot = message["snapshot"].as_str().unwrap();
        assert!(Path::new(snapshot).is_absolute(), "{snapshot}");
        assert!(message.get("lambda_name").is_none(), "the alarm names the function");
    }

    #[test]
    fn every_bundled_incident_names_a_function() {
        for entry in std::fs::read_dir(bundled("")).unwrap() {
            let folder = entry.unwrap().path();
            if folder.is_dir() {
                let incident = Incident::parse(&input(&folder)).unwrap();
                let functions = folder.join(FUNCTIONS).join(&incident.lambda_name);
                assert!(functions.is_dir(), "{}", functions.display());
            }
        }
    }

    #[test]
    fn a_message_without_a_function_gets_the_only_one() {
        let folder = tempfile::tempdir().unwrap();
        let functions = folder.path().join(FUNCTIONS);
        std::fs::create_dir_all(functions.join("lonely")).unwrap();
        std::fs::write(folder.path().join(INCIDENT_FILE), r#"{"error_type": "Timeout"}"#).unwrap();
        let named = |path: &Path| input(path).get("lambda_name").cloned();
        assert_eq!(named(folder.path()), Some("lonely".into()));
        std::fs::create_dir_all(functions.join("second")).unwrap();
        assert_eq!(named(folder.path()), None);
    }

    #[test]
    fn a_message_alone_is_not_an_incident_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let file = folder.path().join(INCIDENT_FILE);
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(read(&file).unwrap(), None);
    }
}
