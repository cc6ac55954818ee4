//! What the environment says about models, read once.

use std::path::PathBuf;

use workflow::env::{self, Invalid, Lookup};

use super::openai;
use super::price::Prices;
use crate::network::PlansError;

/// What models are asked with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The OpenAI-compatible server.
    pub openai: openai::Settings,
    /// What tokens cost.
    pub prices: Prices,
    /// The file to which every reply of a model is appended.
    pub record: Option<PathBuf>,
}

/// Why the environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A variable has a wrong value.
    #[error(transparent)]
    Variable(#[from] Invalid),
    /// The price table cannot be read.
    #[error("{name} names {}: {why}", path.display(), name = env::DAYBOOK_PRICES)]
    Prices {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The plans that it names cannot be used.
    #[error(transparent)]
    Plans(#[from] PlansError),
}

impl Settings {
    /// Reads the variables, and the file with prices if there is one.
    ///
    /// # Errors
    /// When a value or the file cannot be used. A key's value is in no error.
    pub fn read(lookup: &impl Lookup) -> Result<Self, Unusable> {
        let prices = match env::text(lookup, env::DAYBOOK_PRICES).map(PathBuf::from) {
            None => Prices::default(),
            Some(path) => {
                let unusable = |why: String| Unusable::Prices { path: path.clone(), why };
                let text =
                    std::fs::read_to_string(&path).map_err(|error| unusable(error.to_string()))?;
                Prices::default().with(Prices::parse(&text).map_err(|e| unusable(e.to_string()))?)
            }
        };
        Ok(Self {
            openai: openai::Settings::read(lookup)?,
            prices,
            record: env::text(lookup, env::DAYBOOK_RECORD).map(PathBuf::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Unusable> {
        Settings::read(&|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_wrong_value_stops_the_program_and_names_what_it_takes() {
        let refusal = read(&[("OPENAI_BASE_URL", "localhost:11434")]).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "OPENAI_BASE_URL is `localhost:11434`, expected a URL such as http://127.0.0.1:11434/v1"
        );
        let refusal = read(&[("DAYBOOK_PRICES", "/nonexistent/p.toml")]).unwrap_err().to_string();
        assert!(refusal.starts_with("DAYBOOK_PRICES names /nonexistent/p.toml: "), "{refusal}");
    }

    #[test]
    fn a_key_is_shown_to_nobody() {
        let settings = read(&[("OPENAI_API_KEY", "sk-very-secret")]).unwrap();
        assert!(!format!("{settings:?}").contains("very-secret"), "{settings:?}");
        let refusal = read(&[("OPENAI_API_KEY", "sk-very\nsecret")]).unwrap_err().to_string();
        assert_eq!(refusal, "OPENAI_API_KEY is `[hidden]`, expected a key of printable ASCII");
    }
}
