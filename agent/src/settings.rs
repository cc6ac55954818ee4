//! From what a trigger asks for to what a graph is told.

use graph::agent::{OnModelFailure, Settings};
use graph::budget::Budget;
use serde_json::Value;
use workflow::trigger::{self, Model, Trigger};

/// What a trigger that says nothing gets.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The model.
    pub model: Model,
    /// What happens when it stays down.
    pub on_model_failure: trigger::OnModelFailure,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { model: Model::Policy, on_model_failure: trigger::OnModelFailure::Policy }
    }
}

/// The settings of a session, fixed with its first claim.
pub fn settings(trigger: &Trigger, defaults: &Defaults) -> Settings {
    let model = match trigger.model.clone().unwrap_or_else(|| defaults.model.clone()) {
        Model::Policy => None,
        named => Some(String::from(named)),
    };
    let on_model_failure = match trigger.on_model_failure.unwrap_or(defaults.on_model_failure) {
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
    Settings { model, on_model_failure, budget, options: Value::Null, ..Settings::default() }
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
        assert_eq!(settings(&trigger, &Defaults::default()), Settings::default());
    }

    #[test]
    fn a_trigger_s_bounds_reach_the_graph() {
        let trigger =
            Trigger::parse(&json!({"model": "openai:m", "budget": {"usd": 1.5, "visits": 3}}))
                .unwrap();
        let settings = settings(&trigger, &Defaults::default());
        assert_eq!(settings.model.as_deref(), Some("openai:m"));
        assert_eq!(settings.budget.micro_usd, Some(1_500_000));
        assert_eq!(settings.budget.visits, Some(3));
    }
}
