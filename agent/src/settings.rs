//! A session's settings: the trigger's values, then the agent's, then the environment's.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use graph::agent::{Agent, OnModelFailure, Settings};
use graph::budget::Budget;
use graph::profile::{self, Environment, FolderQuery, TextFile, Unreadable};
use journal::id::SessionId;
use serde_json::{Map, Value, json};
use workflow::env::Lookup;
use workflow::trigger::{self, Model, Trigger};

use crate::config::{named_model, on_model_failure};
use crate::model::settings::Unusable;

/// Defaults for triggers.
#[derive(Clone, Debug)]
pub struct Defaults {
    pub model: Model,
    /// The reaction to an unavailable model, if the host's environment sets one. Without it, a session
    /// whose trigger names a model fails, and any other falls back to the policy.
    pub on_model_failure: Option<trigger::OnModelFailure>,
    /// The defaults of each agent, by name, which take precedence. An agent that is not listed has its
    /// profile's defaults for an empty environment.
    agents: BTreeMap<&'static str, profile::Defaults>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { model: Model::Policy, on_model_failure: None, agents: BTreeMap::new() }
    }
}

impl Defaults {
    /// Reads the variables of the host and of these agents, and the files that they name.
    ///
    /// # Errors
    /// If a value or a file is invalid.
    pub fn read(agents: &[Agent], lookup: &impl Lookup) -> Result<Self, Unusable> {
        let environment = Environment::of(lookup).with_folders(&read_folder);
        let mut by_agent = BTreeMap::new();
        for agent in agents {
            let defaults = (agent.profile().defaults)(&environment)?;
            if let Some(model) = &defaults.model {
                let (agent, problem) = (agent.name(), Model::try_from(model.clone()).err());
                if let Some(problem) = problem {
                    return Err(Unusable::Model { agent, problem });
                }
            }
            by_agent.insert(agent.name(), defaults);
        }
        let own = Self::default();
        Ok(Self {
            model: named_model(lookup)?.unwrap_or(own.model),
            on_model_failure: on_model_failure(lookup)?,
            agents: by_agent,
        })
    }

    /// The transcripts that the environment names, and not a trigger.
    pub fn transcripts(&self) -> impl Iterator<Item = PathBuf> {
        let of_agents = self.agents.values().filter_map(|defaults| defaults.model.clone());
        let models = of_agents.filter_map(|model| Model::try_from(model).ok());
        models.chain([self.model.clone()]).filter_map(|model| match model {
            Model::Transcript(file) => Some(PathBuf::from(file)),
            _ => None,
        })
    }

    fn of(&self, agent: &Agent) -> profile::Defaults {
        let unread = || (agent.profile().defaults)(&Environment::EMPTY).unwrap_or_default();
        self.agents.get(agent.name()).cloned().unwrap_or_else(unread)
    }
}

/// The files of a folder, sorted by name.
fn read_folder(query: &FolderQuery<'_>) -> Result<Vec<TextFile>, Unreadable> {
    let unreadable = |path: &std::path::Path| {
        let path = path.to_owned();
        move |source| Unreadable { path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(query.folder).map_err(unreadable(query.folder))? {
        let path = entry.map_err(unreadable(query.folder))?.path();
        if path.extension().is_some_and(|extension| extension == query.extension) {
            paths.push(path);
        }
    }
    paths.sort();
    paths.truncate(query.files_max);
    let read = |path: std::path::PathBuf| {
        let mut text = String::new();
        let file = files::read::regular(&path).map_err(unreadable(&path))?;
        file.take(query.file_bytes_max).read_to_string(&mut text).map_err(unreadable(&path))?;
        Ok(TextFile { path, text })
    };
    paths.into_iter().map(read).collect()
}

/// The settings of a session, fixed with its first claim.
pub fn settings(
    session: &SessionId,
    trigger: &Trigger,
    agent: &Agent,
    defaults: &Defaults,
) -> Settings {
    let own = defaults.of(agent);
    let own_model = own
        .model
        .clone()
        .or(agent.model().map(str::to_owned))
        .and_then(|model| Model::try_from(model).ok());
    let model = trigger.model.clone().or(own_model).unwrap_or_else(|| defaults.model.clone());
    let model = if own.is_policy_only { Model::Policy } else { model };
    let set = own.on_model_failure.or(defaults.on_model_failure.map(of_graph));
    let otherwise = match (&model, set) {
        // A request that a transcript does not have fails the session: falling back to the policy would
        // hide the difference.
        (Model::Transcript(_), _) => OnModelFailure::Fail,
        (_, Some(set)) => set,
        // The trigger's sender wants this model's answer, not the policy's in its place.
        (named, None) if *named != Model::Policy && trigger.model.as_ref() == Some(named) => {
            OnModelFailure::Fail
        }
        (_, None) => OnModelFailure::Policy,
    };
    let model = match model {
        Model::Policy => None,
        named => Some(String::from(named)),
    };
    let asked = trigger.budget;
    let budget = Budget {
        tokens: asked.tokens.map(u64::from),
        calls: asked.calls.map(u64::from),
        visits: asked.visits.map(u64::from),
        seconds: asked.seconds.map(u64::from),
        micro_usd: asked.usd.map(micro_usd),
    };
    Settings {
        model,
        on_model_failure: trigger.on_model_failure.map_or(otherwise, of_graph),
        budget: budget.or(own.budget).within(own.ceiling.or(own.budget)),
        tool_timeout_s: own.tool_timeout_s,
        options: options(session, own),
        ..Settings::default()
    }
}

fn options(session: &SessionId, own: profile::Defaults) -> Value {
    let Some(name) = own.session_option else { return own.options };
    let mut options = match own.options {
        Value::Object(options) => options,
        _ => Map::new(),
    };
    options.insert(name.to_owned(), json!(session.as_str()));
    Value::Object(options)
}

fn of_graph(asked: trigger::OnModelFailure) -> OnModelFailure {
    match asked {
        trigger::OnModelFailure::Policy => OnModelFailure::Policy,
        trigger::OnModelFailure::Fail => OnModelFailure::Fail,
    }
}

/// The trigger's check keeps dollars between 0 and 4,000, so that the conversion is exact enough.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by the trigger's check"
)]
fn micro_usd(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use graph::profile::Profile;
    use serde_json::json;

    use super::*;

    /// An agent with variables of its own.
    static PROFILE: Profile = Profile {
        variables: &["OWN_VISITS", "OWN_NOTES"],
        defaults: |environment| {
            let expected = "a whole number";
            let query =
                |folder| FolderQuery { folder, extension: "txt", files_max: 2, file_bytes_max: 4 };
            let notes = match environment.text("OWN_NOTES") {
                Some(folder) => environment.files("notes", &query(folder.as_ref()))?,
                None => vec![],
            };
            let notes: Vec<String> = notes.into_iter().map(|file| file.text).collect();
            Ok(profile::Defaults {
                ceiling: Budget { tokens: Some(1_000_000), ..Budget::UNLIMITED },
                model: environment.text("OWN_MODEL"),
                is_policy_only: environment.flag("OWN_POLICY")?.unwrap_or(false),
                on_model_failure: Some(OnModelFailure::Fail),
                budget: Budget {
                    visits: environment.whole_number("OWN_VISITS", 1..=9, expected)?,
                    ..Budget::UNLIMITED
                },
                tool_timeout_s: Some(7),
                options: json!({ "notes": notes }),
                session_option: Some("id"),
            })
        },
        ..Profile::PLAIN
    };

    fn plain() -> Agent {
        packs::find("checkup").unwrap().clone()
    }

    fn own() -> Agent {
        plain().with_profile(&PROFILE)
    }

    fn settings_of(agent: &Agent, detail: &Value, variables: &[(&str, &str)]) -> Settings {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let defaults = Defaults::read(std::slice::from_ref(agent), &lookup).unwrap();
        let trigger = Trigger::parse_or(detail, Some(agent.name())).unwrap();
        settings(&SessionId::fresh(), &trigger, agent, &defaults)
    }

    #[test]
    fn the_default_model_is_the_policy() {
        assert_eq!(settings_of(&plain(), &json!({}), &[]), Settings::default());
    }

    #[test]
    fn a_trigger_overrides_the_defaults_of_its_agent() {
        let variables = [("OWN_VISITS", "6"), ("OWN_MODEL", "openai:m")];
        let own = own();
        let settings = settings_of(&own, &json!({"budget": {"tokens": 5}}), &variables);
        assert_eq!((settings.budget.tokens, settings.budget.visits), (Some(5), Some(6)));
        assert_eq!(settings.model.as_deref(), Some("openai:m"));
        assert_eq!(settings.on_model_failure, OnModelFailure::Fail);
        assert_eq!(settings.tool_timeout_s, Some(7));
        assert_eq!(settings.options["id"].as_str().map(str::len), Some(36));
        let asked = json!({
            "budget": {"visits": 3}, "model": "openai:n", "on_model_failure": "policy",
        });
        let settings = settings_of(&own, &asked, &variables);
        assert_eq!(settings.budget.visits, Some(3));
        assert_eq!(settings.model.as_deref(), Some("openai:n"));
        assert_eq!(settings.on_model_failure, OnModelFailure::Policy);
        let settings = settings_of(&own, &asked, &[("OWN_POLICY", "true")]);
        assert_eq!(settings.model, None);
        assert_eq!(settings_of(&plain(), &json!({}), &variables), Settings::default());
    }

    #[test]
    fn a_trigger_never_raises_tokens_or_seconds() {
        let budget = |agent: &Agent, budget: Value| {
            settings_of(agent, &json!({ "budget": budget }), &[]).budget
        };
        let raised = budget(&own(), json!({"tokens": 2_000_000, "visits": 50}));
        assert_eq!((raised.tokens, raised.visits), (Some(1_000_000), Some(50)));
        let incident = packs::find("incident").unwrap();
        let raised = budget(incident, json!({"tokens": 200_000, "seconds": 299}));
        assert_eq!((raised.tokens, raised.seconds), (Some(100_000), Some(210)));
        let lowered = budget(incident, json!({"tokens": 5, "seconds": 9}));
        assert_eq!((lowered.tokens, lowered.seconds), (Some(5), Some(9)));
    }

    #[test]
    fn files_of_a_folder_are_read_by_name_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.txt", "second"), ("a.txt", "one"), ("c.txt", "3"), ("0.md", "0")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let named = folder.path().to_str().unwrap();
        let settings = settings_of(&own(), &json!({}), &[("OWN_NOTES", named)]);
        assert_eq!(settings.options["notes"], json!(["one", "seco"]));
    }

    #[test]
    fn an_agents_invalid_variable_stops_the_program() {
        for (name, value, expected) in [
            ("OWN_VISITS", "many", "OWN_VISITS is `many`, expected a whole number"),
            ("OWN_NOTES", "/nonexistent", "cannot read the notes in /nonexistent"),
            ("OWN_MODEL", "gpt", "the agent `checkup` cannot use its model: expected policy"),
        ] {
            let lookup = |asked: &str| (asked == name).then(|| value.to_owned());
            let refusal = Defaults::read(&[own()], &lookup).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }

    #[test]
    fn a_model_that_a_trigger_names_has_no_silent_stand_in() {
        const POLICY: &[(&str, &str)] = &[("DAYBOOK_ON_MODEL_FAILURE", "policy")];
        const MODEL: &[(&str, &str)] = &[("DAYBOOK_MODEL", "openai:m")];
        for (detail, variables, expected) in [
            (json!({"model": "transcript:f"}), &[][..], OnModelFailure::Fail),
            (json!({"model": "transcript:f"}), POLICY, OnModelFailure::Fail),
            (
                json!({"model": "transcript:f", "on_model_failure": "policy"}),
                &[],
                OnModelFailure::Policy,
            ),
            (json!({"model": "openai:m"}), &[], OnModelFailure::Fail),
            (json!({"model": "openai:m"}), MODEL, OnModelFailure::Fail),
            (json!({"model": "openai:m"}), POLICY, OnModelFailure::Policy),
            (
                json!({"model": "openai:m", "on_model_failure": "policy"}),
                &[],
                OnModelFailure::Policy,
            ),
            (json!({"model": "policy"}), &[], OnModelFailure::Policy),
            (json!({}), MODEL, OnModelFailure::Policy),
            (json!({}), &[("DAYBOOK_ON_MODEL_FAILURE", "fail")], OnModelFailure::Fail),
        ] {
            let settings = settings_of(&plain(), &detail, variables);
            assert_eq!(settings.on_model_failure, expected, "{detail} {variables:?}");
        }
    }

    #[test]
    fn a_triggers_budget_reaches_the_graph() {
        let detail = json!({"model": "openai:m", "budget": {"usd": 1.5, "visits": 3}});
        let settings = settings_of(&plain(), &detail, &[]);
        assert_eq!(settings.model.as_deref(), Some("openai:m"));
        assert_eq!(settings.budget.micro_usd, Some(1_500_000));
        assert_eq!(settings.budget.visits, Some(3));
    }
}
