//! What an agent is to work on: a JSON file, standard input, or an incident folder.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use agents::incident::message::{Error as MessageError, Incident};
use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value};

use crate::args::Target;
use crate::failure::Failure;

/// The file of an incident folder that says what rang.
const INCIDENT_FILE: &str = "incident.json";

/// The file of a network folder that says what was asked, and of which network.
const QUERY_FILE: &str = "query.json";

/// The folder of an incident folder with what AWS answered, a folder a function.
const FUNCTIONS: &str = "functions";

/// Largest input that is read, in bytes: beyond it no bus takes the event.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

/// Most ids of one batch.
const IDS_MAX: usize = 10_000;

/// An agent's input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The JSON that the trigger carries.
    pub json: Value,
    /// Whether it came from an incident folder.
    pub is_incident: bool,
    /// Whether it came from a network folder.
    pub is_network: bool,
}

/// Reads what `--input` names.
///
/// # Errors
/// When it cannot be read, is no JSON, or is a folder and the target is not this machine.
pub fn read(path: &Path, target: Target) -> Result<Input, Failure> {
    let mut input = as_written(path, target)?;
    if target == Target::Local {
        find_inventory(&mut input.json, path);
    }
    Ok(input)
}

fn as_written(path: &Path, target: Target) -> Result<Input, Failure> {
    if target == Target::Local && path.join(QUERY_FILE).is_file() {
        let json = json(&path.join(QUERY_FILE))?;
        return Ok(Input { json, is_incident: false, is_network: true });
    }
    if let Some(folder) = incident_folder(path, target) {
        if target == Target::Aws {
            let problem = format!(
                "{} is a folder, and a folder can only be read on this machine",
                path.display()
            );
            return Err(
                Failure::usage(problem).hint("give the incident's JSON file, or --target local")
            );
        }
        return Ok(Input { json: incident(&folder)?, is_incident: true, is_network: false });
    }
    Ok(Input { json: json(path)?, is_incident: false, is_network: false })
}

/// Reads a JSON file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read or is no JSON.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let json =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()));
    Ok(json?)
}

/// Reads a text file, or standard input for `-`.
///
/// # Errors
/// It cannot be read, or is larger than 1 MiB.
pub fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let bound = INPUT_BYTES_MAX + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(bound).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(path)?.take(bound).read_to_string(&mut text)?;
    }
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err(anyhow!("it is larger than {INPUT_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// The incident folder that a path means: the folder itself, or that of its `incident.json`. To AWS
/// only the file's content goes.
fn incident_folder(path: &Path, target: Target) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let is_incident_file = path.file_name()? == INCIDENT_FILE && path.is_file();
    let parent = path
        .parent()
        .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
    (is_incident_file && target == Target::Local && parent.join(FUNCTIONS).is_dir())
        .then(|| parent.to_owned())
}

/// The incident message, with the folder to answer from and, if the message names no function, the
/// folder's only one.
fn incident(folder: &Path) -> Result<Value, Failure> {
    let file = folder.join(INCIDENT_FILE);
    if !file.is_file() {
        return Err(Failure::unknown(format!(
            "there is no {INCIDENT_FILE} in {}",
            folder.display()
        ))
        .hint(
            "an incident folder holds incident.json and functions/NAME/…; see incidents/README.md",
        ));
    }
    let mut message = json(&file)?;
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

/// Makes the path of a network's file absolute, for the stack may run in another folder: it is looked
/// for beside the input, else where we are. What is not found is left as it is.
fn find_inventory(input: &mut Value, path: &Path) {
    let Some(file) = input.get("inventory").and_then(Value::as_str) else { return };
    let beside = if path.is_dir() { Some(path) } else { path.parent() };
    let places = beside.map(|folder| folder.join(file)).into_iter().chain([PathBuf::from(file)]);
    let mut found = places.filter_map(|place| place.canonicalize().ok());
    if let Some(path) = found.find(|place| place.is_file()).as_deref().and_then(Path::to_str) {
        input["inventory"] = path.into();
    }
}

/// Reads ids, one a line. Empty lines and what follows a `#` at a line's start do not count, and what is
/// there twice counts once.
///
/// # Errors
/// When the file cannot be read, or holds none or more than [`IDS_MAX`].
pub fn ids(path: &Path) -> Result<Vec<String>, Failure> {
    let text = text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut seen = std::collections::BTreeSet::new();
    let ids: Vec<String> = lines.filter(|id| seen.insert(*id)).map(str::to_owned).collect();
    let problem = match ids.len() {
        0 => "holds no id".to_owned(),
        1..=IDS_MAX => return Ok(ids),
        many => format!("holds {many} ids, {IDS_MAX} at most"),
    };
    Err(Failure::usage(format!("{} {problem}", path.display()))
        .hint("it has one transaction's id a line"))
}

/// Makes the path of an investigation's data absolute, for the stack may run in another folder: it is
/// looked for beside the input's own file, else where we are. What is not found is left as it is.
pub fn find_data(input: &mut Value, file: Option<&Path>) {
    let Some(data) = input.get("data").and_then(Value::as_str) else { return };
    let beside = file.and_then(Path::parent).map(|folder| folder.join(data));
    let places = beside.into_iter().chain([PathBuf::from(data)]);
    let found = places.filter_map(|place| place.canonicalize().ok()).find(|place| place.is_file());
    if let Some(path) = found.as_deref().and_then(Path::to_str) {
        input["data"] = path.into();
    }
}

/// The trigger's detail: what was written out, and over it what the options say.
///
/// # Errors
/// When what was written out is no JSON object.
pub fn detail(written: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(written) = written else { return Ok(Map::new()) };
    let hint = "for example: --detail '{\"agent\": \"checkup\"}'";
    match serde_json::from_str(written) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::usage("--detail is no JSON object").hint(hint)),
        Err(error) => Err(Failure::usage(format!("--detail is not JSON: {error}")).hint(hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundled(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../incidents").join(name)
    }

    #[test]
    fn a_folder_and_its_incident_file_mean_the_same() {
        let folder = bundled("network-blocked");
        let input = read(&folder, Target::Local).unwrap();
        assert!(input.is_incident);
        assert_eq!(input, read(&folder.join(INCIDENT_FILE), Target::Local).unwrap());
        let snapshot = input.json["snapshot"].as_str().unwrap();
        assert!(Path::new(snapshot).is_absolute(), "{snapshot}");
        assert!(input.json.get("lambda_name").is_none(), "the alarm names the function");
    }

    #[test]
    fn every_bundled_incident_names_a_function_in_the_end() {
        for entry in std::fs::read_dir(bundled("")).unwrap() {
            let folder = entry.unwrap().path();
            if folder.is_dir() {
                let input = read(&folder, Target::Local).unwrap();
                let incident = Incident::parse(&input.json).unwrap();
                let functions = folder.join(FUNCTIONS).join(&incident.lambda_name);
                assert!(functions.is_dir(), "{}", functions.display());
            }
        }
    }

    #[test]
    fn a_message_without_a_function_means_the_only_one() {
        let folder = tempfile::tempdir().unwrap();
        let functions = folder.path().join(FUNCTIONS);
        std::fs::create_dir_all(functions.join("lonely")).unwrap();
        std::fs::write(folder.path().join(INCIDENT_FILE), r#"{"error_type": "Timeout"}"#).unwrap();
        let named =
            |path: &Path| read(path, Target::Local).unwrap().json.get("lambda_name").cloned();
        assert_eq!(named(folder.path()), Some("lonely".into()));
        std::fs::create_dir_all(functions.join("second")).unwrap();
        assert_eq!(named(folder.path()), None);
    }

    #[test]
    fn a_network_folder_asks_its_query_of_its_own_network() {
        let folder = bundled("../networks/mtu-mismatch");
        let input = read(&folder, Target::Local).unwrap();
        assert!(input.is_network && !input.is_incident);
        let file = Path::new(input.json["inventory"].as_str().unwrap());
        assert!(file.is_absolute() && file.ends_with("mtu-mismatch/network.json"), "{file:?}");
        let mut missing = serde_json::json!({"inventory": "nowhere.json"});
        find_inventory(&mut missing, &folder);
        assert_eq!(missing["inventory"], "nowhere.json");
    }

    #[test]
    fn a_folder_cannot_go_to_the_cloud_but_its_message_can() {
        let folder = bundled("s3-permission-revoked");
        assert!(read(&folder, Target::Aws).is_err());
        let input = read(&folder.join(INCIDENT_FILE), Target::Aws).unwrap();
        assert!(!input.is_incident);
        assert!(input.json.get("snapshot").is_none());
    }

    #[test]
    fn ids_are_read_one_a_line_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ids");
        std::fs::write(&file, "# alerts\nt1\n\n t2 \nt1\n").unwrap();
        assert_eq!(ids(&file).unwrap(), ["t1", "t2"]);
        std::fs::write(&file, "# none\n").unwrap();
        assert!(ids(&file).is_err());
    }

    #[test]
    fn data_are_looked_for_beside_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a.csv");
        std::fs::write(&data, "x").unwrap();
        let mut input = serde_json::json!({"data": "a.csv"});
        find_data(&mut input, Some(&folder.path().join("input.json")));
        assert_eq!(input["data"], data.canonicalize().unwrap().to_str().unwrap());
        let mut elsewhere = serde_json::json!({"data": "http://127.0.0.1:1"});
        find_data(&mut elsewhere, None);
        assert_eq!(elsewhere["data"], "http://127.0.0.1:1");
    }

    #[test]
    fn a_detail_is_an_object_or_refused() {
        assert_eq!(detail(None).unwrap(), Map::new());
        assert_eq!(detail(Some(r#"{"agent": "x"}"#)).unwrap()["agent"], "x");
        for text in ["", "[]", "null", "{", "agent"] {
            assert!(detail(Some(text)).is_err(), "{text}");
        }
    }
}
