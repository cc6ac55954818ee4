//! From what a trigger asks for to what a graph is told.

use agents::fraud::options::Options;
use agents::incident::graph::DEADLINE_SECONDS;
use graph::agent::{OnModelFailure, Settings};
use graph::budget::Budget;
use journal::id::SessionId;
use serde_json::{Value, json};
use workflow::env::{self, Invalid, Lookup};
use workflow::trigger::{self, Model, Trigger};

use crate::investigation;
use crate::network;

/// The agent whose budget the environment can set.
const INCIDENT: &str = "incident";

/// What a trigger that says nothing gets.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The model.
    pub model: Model,
    /// What happens when it stays down.
    pub on_model_failure: trigger::OnModelFailure,
    /// What an incident may use, where that is not the agent's own.
    pub incident_budget: Budget,
    /// What sessions of the network agent get besides.
    pub network: network::Defaults,
    /// What an investigation of a payment gets besides.
    pub investigation: investigation::Defaults,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            model: Model::Policy,
            on_model_failure: trigger::OnModelFailure::Policy,
            incident_budget: Budget::UNLIMITED,
            network: network::Defaults::default(),
            investigation: investigation::Defaults::default(),
        }
    }
}

/// What the environment says an incident may use.
///
/// # Errors
/// When a variable is no number in its bounds.
pub fn incident_budget(lookup: &impl Lookup) -> Result<Budget, Invalid> {
    let number = |name: &'static str, most: u64, expected: &'static str| {
        let Some(value) = env::text(lookup, name) else { return Ok(None) };
        match value.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(Invalid::Malformed { name, value, expected }),
        }
    };
    let from_one = "a whole number from 1 to 4294967295";
    let most = u64::from(u32::MAX);
    let buffer = number(
        env::INCIDENT_DEADLINE_BUFFER_SECONDS,
        DEADLINE_SECONDS - 1,
        "a whole number of seconds from 1 to 299",
    )?;
    Ok(Budget {
        tokens: number(env::MAX_TOKENS_PER_INCIDENT, most, from_one)?,
        visits: number(env::INCIDENT_RECURSION_LIMIT, most, from_one)?,
        seconds: buffer.map(|buffer| DEADLINE_SECONDS - buffer),
        ..Budget::UNLIMITED
    })
}

/// The settings of a session, fixed with its first claim.
pub fn settings(session: &SessionId, trigger: &Trigger, defaults: &Defaults) -> Settings {
    let investigation = (trigger.agent == investigation::AGENT).then_some(&defaults.investigation);
    let own_model = investigation.and_then(|investigation| investigation.model.as_ref());
    let model = trigger.model.as_ref().or(own_model).unwrap_or(&defaults.model).clone();
    let is_allowed = investigation.is_none_or(|investigation| investigation.options.planner_llm);
    let model = if is_allowed { model } else { Model::Policy };
    // A transcript is there to be followed to the letter: what it does not have is not made up for
    // unless the trigger itself says so.
    let otherwise = match &model {
        Model::Transcript(_) => trigger::OnModelFailure::Fail,
        _ if investigation.is_some_and(|i| !i.options.planner_fallback) => {
            trigger::OnModelFailure::Fail
        }
        _ => defaults.on_model_failure,
    };
    let model = match model {
        Model::Policy => None,
        named => Some(String::from(named)),
    };
    let on_model_failure = match trigger.on_model_failure.unwrap_or(otherwise) {
        trigger::OnModelFailure::Policy => OnModelFailure::Policy,
        trigger::OnModelFailure::Fail => OnModelFailure::Fail,
    };
    let asked = trigger.budget;
    let budget = Budget {
        tokens: asked.tokens.map(u64::from),
        calls: asked.calls.map(u64::from),
        visits: asked.visits.map(u64::from),
        seconds: asked.seconds.map(u64::from),
        micro_usd: asked.usd.map(micro_usd),
    };
    let budget = match (trigger.agent.as_str(), investigation) {
        (INCIDENT, _) => budget.or(defaults.incident_budget),
        (_, Some(investigation)) => budget.or(investigation.budget),
        _ => budget,
    };
    let (options, tool_timeout_s) = match (trigger.agent.as_str(), investigation) {
        (network::AGENT, _) => (defaults.network.options(), None),
        (_, Some(investigation)) => {
            let options =
                Options { investigation_id: session.to_string(), ..investigation.options.clone() };
            (json!(options), Some(options.tool_timeout_seconds))
        }
        _ => (Value::Null, None),
    };
    Settings { model, on_model_failure, budget, options, tool_timeout_s, ..Settings::default() }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trigger_that_says_nothing_gets_the_policy() {
        let trigger = Trigger::parse(&json!({})).unwrap();
        assert_eq!(
            settings(&SessionId::fresh(), &trigger, &Defaults::default()),
            Settings::default()
        );
    }

    #[test]
    fn the_environment_s_bounds_are_an_incident_s_unless_the_trigger_has_its_own() {
        let lookup = |name: &str| {
            let set = [
                ("MAX_TOKENS_PER_INCIDENT", "5000"),
                ("INCIDENT_RECURSION_LIMIT", "6"),
                ("INCIDENT_DEADLINE_BUFFER_SECONDS", "100"),
            ];
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let incident_budget = incident_budget(&lookup).unwrap();
        let defaults = Defaults { incident_budget, ..Defaults::default() };
        let budget_of = |detail| {
            settings(&SessionId::fresh(), &Trigger::parse(&detail).unwrap(), &defaults).budget
        };
        let incident = budget_of(json!({"agent": "incident", "budget": {"visits": 3}}));
        assert_eq!((incident.tokens, incident.visits), (Some(5_000), Some(3)));
        assert_eq!(incident.seconds, Some(200));
        assert_eq!(budget_of(json!({"agent": "checkup"})), Budget::UNLIMITED);
    }

    #[test]
    fn a_bound_of_an_incident_that_is_none_stops_the_program() {
        for (name, value) in [
            ("MAX_TOKENS_PER_INCIDENT", "0"),
            ("INCIDENT_RECURSION_LIMIT", "many"),
            ("INCIDENT_DEADLINE_BUFFER_SECONDS", "300"),
        ] {
            let refusal = incident_budget(&|asked: &str| (asked == name).then(|| value.to_owned()));
            assert!(refusal.unwrap_err().to_string().starts_with(&format!("{name} is `{value}`")));
        }
    }

    #[test]
    fn a_transcript_is_not_made_up_for_unless_the_trigger_says_so() {
        for (detail, expected) in [
            (json!({"model": "transcript:f"}), OnModelFailure::Fail),
            (
                json!({"model": "transcript:f", "on_model_failure": "policy"}),
                OnModelFailure::Policy,
            ),
            (json!({"model": "openai:m"}), OnModelFailure::Policy),
        ] {
            let trigger = Trigger::parse(&detail).unwrap();
            let settings = settings(&SessionId::fresh(), &trigger, &Defaults::default());
            assert_eq!(settings.on_model_failure, expected, "{detail}");
        }
    }

    #[test]
    fn a_trigger_s_bounds_reach_the_graph() {
        let trigger =
            Trigger::parse(&json!({"model": "openai:m", "budget": {"usd": 1.5, "visits": 3}}))
                .unwrap();
        let settings = settings(&SessionId::fresh(), &trigger, &Defaults::default());
        assert_eq!(settings.model.as_deref(), Some("openai:m"));
        assert_eq!(settings.budget.micro_usd, Some(1_500_000));
        assert_eq!(settings.budget.visits, Some(3));
    }
}
