//! Reads an agent's input: a JSON file, standard input, or a folder that a pack recognises.

use std::path::{Path, PathBuf};

use extension::Extension;
use extension::input::{self, Input};
use graph::agent::Agent;
use serde_json::{Map, Value};

use crate::args::Target;
use crate::failure::Failure;

/// Reads `--input` into fields of the trigger's detail: `input`, and the fields that a pack adds for a
/// folder that it recognises.
///
/// # Errors
/// When the input cannot be read, is not JSON, or is a folder that no pack recognises or that is meant for
/// an account.
pub fn read(
    path: &Path,
    target: Target,
    extensions: &[Extension],
) -> Result<Map<String, Value>, Failure> {
    if target == Target::Local {
        for folder in inputs(extensions).filter_map(|input| input.folder) {
            if let Some(detail) = (folder.read)(path)? {
                return Ok(detail);
            }
        }
    }
    if path.is_dir() {
        return Err(not_for(path, target, extensions));
    }
    Ok(Map::from_iter([("input".to_owned(), input::json(path)?)]))
}

/// Makes the paths in the input absolute, because the stack may run in another folder.
pub fn make_absolute(
    detail: &mut Map<String, Value>,
    path: Option<&Path>,
    extensions: &[Extension],
) {
    let agent = detail.get("agent").and_then(Value::as_str);
    let Some(of_agent) = inputs(extensions).find(|input| agent == Some(input.agent)) else {
        return;
    };
    let Some(input) = detail.get_mut("input") else { return };
    for field in of_agent.paths {
        input::make_absolute(input, field, path);
    }
}

/// The files and folders that a detail names: the transcript, the sources of the agent's servers, and the
/// files that these refer to.
pub fn named(
    detail: &Map<String, Value>,
    agents: &[Agent],
    extensions: &[Extension],
) -> Vec<PathBuf> {
    let name = detail.get("agent").and_then(Value::as_str);
    let model = detail.get("model").and_then(Value::as_str);
    let transcript = model.and_then(|model| model.strip_prefix("transcript:"));
    let servers = agents.iter().filter(|agent| name == Some(agent.name()));
    let options = servers.flat_map(|agent| agent.profile().servers).flat_map(|s| s.options);
    let source = |(field, _): &(&str, &str)| detail.get("input")?.get(field)?.as_str();
    let sources: Vec<&Path> = options.filter_map(source).map(Path::new).collect();
    let of_agent = inputs(extensions).filter(|input| name == Some(input.agent));
    let referred = of_agent.filter_map(|input| input.referred);
    let referred =
        referred.flat_map(|referred| sources.iter().flat_map(move |path| referred(path)));
    let mut named: Vec<PathBuf> = referred.collect();
    named.extend(transcript.map(PathBuf::from));
    named.extend(sources.into_iter().map(Path::to_owned));
    named
}

fn inputs(extensions: &[Extension]) -> impl Iterator<Item = Input> {
    extensions.iter().filter_map(|extension| extension.input)
}

/// The failure for a folder that cannot be this target's input.
fn not_for(path: &Path, target: Target, extensions: &[Extension]) -> Failure {
    let path = path.display();
    if target == Target::Aws {
        let problem = format!(
            "cannot use {path} with --target aws: it is a folder, and folders are read on this machine only"
        );
        return Failure::usage(problem).hint("pass a JSON file, or use --target local");
    }
    let forms: Vec<_> =
        inputs(extensions).filter_map(|input| input.folder).map(|folder| folder.form).collect();
    Failure::unknown(format!("unrecognized folder {path}: no agent takes it as input"))
        .hint(forms.join("; "))
}

/// Parses `--detail`.
///
/// # Errors
/// When it is not a JSON object.
pub fn detail(written: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(written) = written else { return Ok(Map::new()) };
    let hint = "for example: --detail '{\"budget\": {\"seconds\": 30}}'";
    match serde_json::from_str(written) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::usage("--detail is not a JSON object").hint(hint)),
        Err(error) => Err(Failure::usage(format!("--detail is not JSON: {error}")).hint(hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs() -> Vec<Extension> {
        packs_cli::all(packs_cli::Optional::default())
    }

    fn bundled(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs").join(path)
    }

    #[test]
    fn a_folder_selects_its_agent() {
        for (folder, agent) in [
            ("incident/incidents/network-blocked", "incident"),
            ("network/networks/mtu-mismatch", "network"),
        ] {
            let detail = read(&bundled(folder), Target::Local, &packs()).unwrap();
            assert_eq!(detail["agent"], agent);
        }
    }

    #[test]
    fn a_network_folder_queries_its_own_network() {
        let folder = bundled("network/networks/mtu-mismatch");
        let mut detail = read(&folder, Target::Local, &packs()).unwrap();
        make_absolute(&mut detail, Some(&folder), &packs());
        let file = Path::new(detail["input"]["inventory"].as_str().unwrap());
        assert!(file.is_absolute() && file.ends_with("mtu-mismatch/network.json"), "{file:?}");
    }

    #[test]
    fn the_files_that_a_command_line_names_are_found() {
        let named = |detail: &Map<String, Value>| named(detail, packs::all(), &packs());
        let incident = bundled("incident/incidents/network-blocked").canonicalize().unwrap();
        let detail = read(&incident, Target::Local, &packs()).unwrap();
        assert_eq!(named(&detail), [incident]);
        let network = bundled("network/networks/mtu-mismatch").canonicalize().unwrap();
        let mut detail = read(&network, Target::Local, &packs()).unwrap();
        make_absolute(&mut detail, Some(&network), &packs());
        let base = network.join("../healthy/network.json");
        assert_eq!(named(&detail), [base, network.join("network.json")]);
        let detail =
            detail_of(r#"{"agent": "fraud", "model": "transcript:t", "input": {"data": "d"}}"#);
        assert_eq!(named(&detail), [PathBuf::from("t"), PathBuf::from("d")]);
    }

    fn detail_of(text: &str) -> Map<String, Value> {
        detail(Some(text)).unwrap()
    }

    #[test]
    fn a_folder_cannot_go_to_aws_but_its_message_can() {
        let folder = bundled("incident/incidents/s3-permission-revoked");
        assert!(read(&folder, Target::Aws, &packs()).is_err());
        let detail = read(&folder.join("incident.json"), Target::Aws, &packs()).unwrap();
        assert_eq!(detail.keys().collect::<Vec<_>>(), ["input"]);
        assert!(detail["input"].get("snapshot").is_none());
    }

    #[test]
    fn an_unknown_folder_is_refused_with_the_known_forms() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = read(folder.path(), Target::Local, &packs()).unwrap_err();
        let hint = refusal.next().unwrap();
        assert!(hint.contains("incident.json") && hint.contains("query.json"), "{hint}");
    }

    #[test]
    fn a_detail_must_be_a_json_object() {
        assert_eq!(detail(None).unwrap(), Map::new());
        assert_eq!(detail(Some(r#"{"agent": "x"}"#)).unwrap()["agent"], "x");
        for text in ["", "[]", "null", "{", "agent"] {
            assert!(detail(Some(text)).is_err(), "{text}");
        }
    }
}
