//! The network agent's settings: maximum retries, and plans that replace or extend the bundled
//! ones. The session's first claim journals both, so a resumed session keeps its plans.

use std::collections::BTreeMap;
use std::path::Path;

use ::graph::profile::{Defaults, Environment, FolderQuery, Profile, Server, Unusable};
use serde_json::{Map, Value, json};

use super::graph::{RETRIES_MAX, SERVER};
use super::plan::{PLANS_MAX, Plan};

/// Maximum retries of failed steps.
pub const NETWORK_MAX_RETRIES: &str = "NETWORK_MAX_RETRIES";

/// A folder of plans, one file `INTENT.json` each; they take precedence over the bundled plans.
pub const NETWORK_PLANS: &str = "NETWORK_PLANS";

/// Largest plan file, in bytes. The bundled ones are below 3 KiB.
const FILE_BYTES_MAX: u64 = 64 * 1024;

pub static PROFILE: Profile = Profile {
    variables: &[NETWORK_MAX_RETRIES, NETWORK_PLANS],
    defaults,
    servers: &[Server {
        name: SERVER,
        options: &[("inventory", "--inventory")],
        in_account: None,
        state_option: None,
    }],
    ..Profile::PLAIN
};

fn defaults(environment: &Environment<'_>) -> Result<Defaults, Unusable> {
    let mut options = Map::new();
    let range = 0..=u64::from(RETRIES_MAX);
    let expected = "a whole number from 0 to 10";
    if let Some(number) = environment.whole_number(NETWORK_MAX_RETRIES, range, expected)? {
        options.insert("max_retries".to_owned(), json!(number));
    }
    if let Some(folder) = environment.text(NETWORK_PLANS) {
        let plans = plans(environment, Path::new(&folder))?;
        if !plans.is_empty() {
            options.insert("plans".to_owned(), json!(plans));
        }
    }
    let options = if options.is_empty() { Value::Null } else { Value::Object(options) };
    Ok(Defaults { options, ..Defaults::default() })
}

fn plans(environment: &Environment<'_>, folder: &Path) -> Result<BTreeMap<String, Plan>, Unusable> {
    let query = FolderQuery {
        folder,
        extension: "json",
        files_max: PLANS_MAX + 1,
        file_bytes_max: FILE_BYTES_MAX,
    };
    let mut plans = BTreeMap::new();
    for file in environment.files("plans", &query)? {
        let malformed = |problem: String| Unusable::Malformed {
            what: "plan",
            path: file.path.clone(),
            problem,
        };
        if plans.len() >= PLANS_MAX {
            return Err(malformed(format!("the folder holds more than {PLANS_MAX} plans")));
        }
        let intent = file.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let plan = Plan::parse(intent, &file.text).map_err(|error| malformed(error.to_string()))?;
        plans.insert(intent.to_owned(), plan);
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use ::graph::profile::TextFile;

    use super::*;

    fn read(pairs: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Defaults, Unusable> {
        let lookup = |asked: &str| {
            pairs.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
        };
        let folder = |query: &FolderQuery<'_>| {
            let file = |(name, text): &(&str, &str)| TextFile {
                path: query.folder.join(name),
                text: (*text).to_owned(),
            };
            Ok(files.iter().map(file).collect())
        };
        defaults(&Environment::of(&lookup).with_folders(&folder))
    }

    #[test]
    fn plans_and_maximum_retries_become_options() {
        assert_eq!(read(&[], &[]).unwrap(), Defaults::default());
        let text = r#"{"intent": "check_optics", "description": "d", "steps": ["Look."]}"#;
        let pairs = [(NETWORK_PLANS, "/plans"), (NETWORK_MAX_RETRIES, "0")];
        let options = read(&pairs, &[("check_optics.json", text)]).unwrap().options;
        assert_eq!(options["max_retries"], 0);
        assert_eq!(options["plans"]["check_optics"]["steps"], json!(["Look."]));

        let refusal = read(&pairs, &[("check_optics.json", "{}")]).unwrap_err().to_string();
        let expected = "/plans/check_optics.json is not a valid plan: missing field";
        assert!(refusal.starts_with(expected), "{refusal}");
    }

    #[test]
    fn a_folder_of_too_many_plans_is_refused() {
        let names: Vec<String> = (0..=PLANS_MAX).map(|number| format!("p{number}")).collect();
        let files: Vec<(String, String)> = names
            .iter()
            .map(|name| {
                let text = json!({"intent": name, "description": "d", "steps": ["Look."]});
                (format!("{name}.json"), text.to_string())
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let refusal = read(&[(NETWORK_PLANS, "/plans")], &files).unwrap_err().to_string();
        assert!(refusal.ends_with("the folder holds more than 50 plans"), "{refusal}");
    }

    #[test]
    fn invalid_maximum_retries_are_refused() {
        for value in ["many", "-1", "11"] {
            let refusal = read(&[(NETWORK_MAX_RETRIES, value)], &[]).unwrap_err().to_string();
            let expected = format!("NETWORK_MAX_RETRIES is `{value}`, expected a whole number");
            assert!(refusal.starts_with(&expected), "{refusal}");
        }
    }
}
