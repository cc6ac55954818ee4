//! Finds `daybook.toml`, and takes over what it configures.

use std::collections::BTreeMap;
use std::path::Path;

use agent::project::{Error, FILE, Project};
use graph::agent::Agent;
use graph::check::nearest;

use crate::config::{self, VARIABLES};
use crate::failure::Failure;

/// Reads the file; without `path` the one that `DAYBOOK_CONFIG` names, else the one in the working directory, if there
/// is one.
///
/// # Errors
/// It cannot be read, or is invalid.
pub fn read(path: Option<&Path>) -> Result<Project, Failure> {
    let named = config::variable(workflow::env::DAYBOOK_CONFIG).filter(|name| !name.is_empty());
    let path = path.map(Path::to_owned).or(named.map(Into::into));
    let path = match path {
        Some(path) => path,
        None if Path::new(FILE).is_file() => FILE.into(),
        None => return Ok(Project::default()),
    };
    Project::read(&path).map_err(failure)
}

/// A failure of the file, with what to do.
pub fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::Program { .. } => Some(
            "run its command by hand in the folder of daybook.toml; it should wait for its host",
        ),
        Error::Agent { .. } => Some("`daybook check FILE` names every problem of an agent's file"),
        Error::Unreadable { .. } | Error::Invalid { .. } => None,
    };
    let failure = Failure::usage(format!("{:#}", anyhow::Error::from(error)));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The variables that the file's settings stand for.
///
/// # Errors
/// A key names no variable.
pub fn settings(project: &Project, agents: &[Agent]) -> Result<BTreeMap<String, String>, Failure> {
    let of_agents =
        agents.iter().flat_map(Agent::versions).flat_map(|agent| agent.profile().variables);
    let variables: Vec<&str> = VARIABLES.iter().chain(of_agents).copied().collect();
    let mut settings = BTreeMap::new();
    for (key, value) in &project.settings {
        let Some(variable) = variables.iter().find(|name| is_key_of(key, name)) else {
            return Err(unknown(key, &variables));
        };
        settings.insert((*variable).to_owned(), value.clone());
    }
    Ok(settings)
}

fn is_key_of(key: &str, variable: &str) -> bool {
    key == key_of(variable) || key == variable.to_ascii_lowercase()
}

/// The key of a variable in the file.
fn key_of(variable: &str) -> String {
    let key = variable.to_ascii_lowercase();
    key.strip_prefix("daybook_").map_or(key.clone(), str::to_owned)
}

fn unknown(key: &str, variables: &[&str]) -> Failure {
    let keys: Vec<_> = variables.iter().map(|name| key_of(name)).collect();
    let near = nearest(key, keys.iter().map(String::as_str));
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    Failure::usage(format!("{FILE}: unknown key `settings.{key}`{near}"))
        .hint("a key is a variable's name in lower case, without `daybook_`; docs/configuration.md lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(text: &str) -> Result<BTreeMap<String, String>, Failure> {
        let project = Project::parse(text, "/here".into()).unwrap();
        settings(&project, packs::all())
    }

    #[test]
    fn a_setting_stands_for_its_variable() {
        let found = settings_of(
            "[settings]\nmodel = \"openai:m\"\nopenai_base_url = \"http://x\"\njournal_ttl_days = 9\nencrypt = true\n",
        );
        let found: Vec<_> =
            found.unwrap().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            found,
            [
                "DAYBOOK_ENCRYPT=on",
                "DAYBOOK_MODEL=openai:m",
                "JOURNAL_TTL_DAYS=9",
                "OPENAI_BASE_URL=http://x"
            ]
        );
    }

    #[test]
    fn an_unknown_setting_names_the_nearest() {
        let error = settings_of("[settings]\nmodell = \"x\"\n").unwrap_err().to_string();
        assert_eq!(error, "daybook.toml: unknown key `settings.modell` (did you mean `model`?)");
    }

    #[test]
    fn every_variable_of_an_agent_has_a_key() {
        for variable in packs::all().iter().flat_map(|agent| agent.profile().variables) {
            let text = format!("[settings]\n{} = \"1\"\n", key_of(variable));
            assert!(settings_of(&text).unwrap().contains_key(*variable), "{variable}");
        }
    }
}
