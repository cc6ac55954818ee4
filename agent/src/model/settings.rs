//! Settings of the models, from environment variables.

use std::num::NonZeroU32;
use std::path::PathBuf;

use graph::profile;
use workflow::env::{self, Invalid, Lookup};

use super::openai;
use super::price::Prices;

/// Settings of the models.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The OpenAI-compatible server.
    pub openai: openai::Settings,
    pub prices: Prices,
    /// The file to which every reply is recorded.
    pub record: Option<PathBuf>,
    /// Most concurrent calls of one provider; [`CALLS_MAX`](super::turns::CALLS_MAX) if absent.
    pub calls_max: Option<NonZeroU32>,
}

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Variable(#[from] Invalid),
    /// An unreadable or invalid price table.
    #[error("{name} names {}: {why}", path.display(), name = env::DAYBOOK_PRICES)]
    Prices { path: PathBuf, why: String },
    /// An agent's setting cannot be used.
    #[error(transparent)]
    Agent(#[from] profile::Unusable),
    /// An agent's profile names no model.
    #[error("the agent `{agent}` cannot use its model: {problem}")]
    Model {
        /// The agent's name.
        agent: &'static str,
        /// What is wrong with the model's name.
        problem: String,
    },
}

impl Settings {
    /// Reads the variables, and the price file if one is set.
    ///
    /// # Errors
    /// When a value or the file is invalid. No error contains a key.
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
            calls_max: env::at_least_one(lookup, env::DAYBOOK_MODEL_CALLS_MAX)?,
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
    fn an_invalid_value_is_refused_with_what_is_expected() {
        let refusal = read(&[("OPENAI_BASE_URL", "localhost:11434")]).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "OPENAI_BASE_URL is `localhost:11434`, expected a URL such as http://127.0.0.1:11434/v1"
        );
        let refusal = read(&[("DAYBOOK_PRICES", "/nonexistent/p.toml")]).unwrap_err().to_string();
        assert!(refusal.starts_with("DAYBOOK_PRICES names /nonexistent/p.toml: "), "{refusal}");
    }

    #[test]
    fn a_key_is_redacted_everywhere() {
        let settings = read(&[("OPENAI_API_KEY", "sk-very-secret")]).unwrap();
        assert!(!format!("{settings:?}").contains("very-secret"), "{settings:?}");
        let refusal = read(&[("OPENAI_API_KEY", "sk-very\nsecret")]).unwrap_err().to_string();
        assert_eq!(refusal, "OPENAI_API_KEY is `[hidden]`, expected a key of printable ASCII");
    }
}
