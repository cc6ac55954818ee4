//! What the environment says about the network agent: how often it repeats steps, and plans that
//! stand beside or over those that ship.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use agents::network::graph::RETRIES_MAX;
use agents::network::plan::{PLANS_MAX, Plan};
use serde_json::{Map, Value, json};
use workflow::env::{self, Invalid, Lookup};

use crate::model::settings::Unusable;

/// The agent's name.
pub const AGENT: &str = "network";

/// Largest plan file, in bytes. Those that ship have less than 3 KiB.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What sessions of the network agent get besides what their trigger says. It is journaled with a
/// session's first claim, so that a resumed session keeps the plans that it began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// How often steps that failed are repeated; the agent's own number if absent.
    pub max_retries: Option<u32>,
    /// Plans, by intent.
    pub plans: BTreeMap<String, Plan>,
}

/// Why a folder of plans cannot be used. Whoever named it names another, or mends the file.
#[derive(Debug, thiserror::Error)]
pub enum PlansError {
    /// The folder or a file of it cannot be read.
    #[error("cannot read the plans in {}", path.display())]
    Unreadable {
        /// The folder or file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
    /// A file is no plan.
    #[error("{} is no plan: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Defaults {
    /// Reads the variables, and the folder of plans if there is one.
    ///
    /// # Errors
    /// When a value or a plan cannot be used.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Unusable> {
        let name = env::NETWORK_MAX_RETRIES;
        let expected = "a whole number from 0 to 10";
        let max_retries = match env::text(lookup, name) {
            None => None,
            Some(value) => match value.parse() {
                Ok(number) if number <= RETRIES_MAX => Some(number),
                _ => return Err(Invalid::Malformed { name, value, expected }.into()),
            },
        };
        let folder = env::text(lookup, env::NETWORK_PLANS).map(PathBuf::from);
        let plans = folder.map_or_else(|| Ok(BTreeMap::new()), |folder| plans(&folder))?;
        Ok(Self { max_retries, plans })
    }

    /// The agent's own options in a session's settings; null if there are none.
    pub fn options(&self) -> Value {
        let mut options = Map::new();
        if let Some(number) = self.max_retries {
            options.insert("max_retries".to_owned(), json!(number));
        }
        if !self.plans.is_empty() {
            options.insert("plans".to_owned(), json!(self.plans));
        }
        if options.is_empty() { Value::Null } else { Value::Object(options) }
    }
}

/// The plans of a folder, one a file `INTENT.json`.
///
/// # Errors
/// [`PlansError`], at the first file that is no plan.
pub fn plans(folder: &Path) -> Result<BTreeMap<String, Plan>, PlansError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| PlansError::Unreadable { path, source }
    };
    let mut plans = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let malformed = |problem: String| PlansError::Malformed { path: path.clone(), problem };
        if plans.len() >= PLANS_MAX {
            return Err(malformed(format!("the folder holds more than {PLANS_MAX}")));
        }
        let intent = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let mut text = String::new();
        let file = std::fs::File::open(&path).map_err(unreadable(&path))?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable(&path))?;
        let plan = Plan::parse(intent, &text).map_err(|error| malformed(error.to_string()))?;
        plans.insert(intent.to_owned(), plan);
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(pairs: &[(&'static str, String)]) -> impl Fn(&str) -> Option<String> {
        let pairs = pairs.to_vec();
        move |asked| pairs.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.clone())
    }

    #[test]
    fn plans_of_a_folder_and_the_number_of_repetitions_become_options() {
        assert_eq!(Defaults::read(&lookup(&[])).unwrap().options(), Value::Null);
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"intent": "check_optics", "description": "d", "steps": ["Look."]}"#;
        std::fs::write(folder.path().join("check_optics.json"), text).unwrap();
        std::fs::write(folder.path().join("README.md"), "not a plan").unwrap();
        let named = folder.path().to_str().unwrap().to_owned();
        let pairs = [("NETWORK_PLANS", named), ("NETWORK_MAX_RETRIES", "0".to_owned())];
        let options = Defaults::read(&lookup(&pairs)).unwrap().options();
        assert_eq!(options["max_retries"], 0);
        assert_eq!(options["plans"]["check_optics"]["steps"], json!(["Look."]));

        std::fs::write(folder.path().join("check_optics.json"), "{}").unwrap();
        let refusal = Defaults::read(&lookup(&pairs)).unwrap_err().to_string();
        assert!(refusal.contains("check_optics.json is no plan: missing field"), "{refusal}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for value in ["many", "-1", "11"] {
            let pairs = [("NETWORK_MAX_RETRIES", value.to_owned())];
            let refusal = Defaults::read(&lookup(&pairs)).unwrap_err().to_string();
            let expected = format!("NETWORK_MAX_RETRIES is `{value}`, expected a whole number");
            assert!(refusal.starts_with(&expected), "{refusal}");
        }
        let pairs = [("NETWORK_PLANS", "/nonexistent".to_owned())];
        let refusal = Defaults::read(&lookup(&pairs)).unwrap_err().to_string();
        assert_eq!(refusal, "cannot read the plans in /nonexistent");
    }
}
