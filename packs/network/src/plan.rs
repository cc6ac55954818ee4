//! Plans: the steps of a check in natural language, one file per intent and named after it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::interpret;
use super::query::Intent;

/// The default plan, for a query without a known intent. Always present.
pub const GENERAL: &str = "general_device_health_check";

pub const STEPS_MAX: usize = 20;

pub const TEXT_CHARS_MAX: usize = 2_000;

/// Longest intent, in characters.
pub const INTENT_CHARS_MAX: usize = 64;

/// Most custom plans.
pub const PLANS_MAX: usize = 50;

/// The bundled plans.
const SHIPPED: [(&str, &str); 13] = [
    ("check_bgp_neighbors", include_str!("../plans/check_bgp_neighbors.json")),
    ("check_interface_status", include_str!("../plans/check_interface_status.json")),
    ("check_mpls_state", include_str!("../plans/check_mpls_state.json")),
    ("check_access_lists", include_str!("../plans/check_access_lists.json")),
    ("check_name_resolution", include_str!("../plans/check_name_resolution.json")),
    ("check_ospf_neighbors", include_str!("../plans/check_ospf_neighbors.json")),
    ("check_spanning_tree", include_str!("../plans/check_spanning_tree.json")),
    ("check_vlans", include_str!("../plans/check_vlans.json")),
    (GENERAL, include_str!("../plans/general_device_health_check.json")),
    ("review_p_device", include_str!("../plans/review_p_device.json")),
    ("review_pe_device", include_str!("../plans/review_pe_device.json")),
    ("review_rr_device", include_str!("../plans/review_rr_device.json")),
    ("troubleshoot_vpn_vrf", include_str!("../plans/troubleshoot_vpn_vrf.json")),
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The intent; the file's name without its extension.
    pub intent: String,
    pub description: String,
    /// The steps, each an instruction for a junior engineer.
    pub steps: Vec<String>,
}

/// Why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAPlan(String);

impl Plan {
    /// Parses the plan of an intent.
    ///
    /// # Errors
    /// [`NotAPlan`], which names the field and the accepted form.
    pub fn parse(intent: &str, text: &str) -> Result<Self, NotAPlan> {
        let plan: Self = serde_json::from_str(text).map_err(|error| NotAPlan(error.to_string()))?;
        plan.check(intent)?;
        Ok(plan)
    }

    fn check(&self, intent: &str) -> Result<(), NotAPlan> {
        let wrong = |problem: String| Err(NotAPlan(problem));
        let is_intent = (1..=INTENT_CHARS_MAX).contains(&intent.len())
            && intent.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_intent {
            return wrong(format!(
                "the file's name must be 1 to {INTENT_CHARS_MAX} of a to z, 0 to 9 and _, \
                 with the ending .json"
            ));
        }
        if self.intent != intent {
            return wrong(format!("`intent` must be the file's name, `{intent}`"));
        }
        if !(1..=STEPS_MAX).contains(&self.steps.len()) {
            return wrong(format!("`steps` must hold 1 to {STEPS_MAX}, not {}", self.steps.len()));
        }
        let fits = |text: &str| (1..=TEXT_CHARS_MAX).contains(&text.trim().chars().count());
        if !fits(&self.description) || !self.steps.iter().all(|step| fits(step)) {
            return wrong(format!(
                "`description` and each of `steps` must have 1 to {TEXT_CHARS_MAX} characters"
            ));
        }
        Ok(())
    }
}

/// The bundled plans, by intent.
pub fn shipped() -> &'static BTreeMap<String, Plan> {
    static PLANS: OnceLock<BTreeMap<String, Plan>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let parse = |(intent, text): (&str, &str)| match Plan::parse(intent, text) {
            Ok(plan) => (intent.to_owned(), plan),
            Err(error) => unreachable!("a test reads every bundled plan: {intent}: {error}"),
        };
        SHIPPED.into_iter().map(parse).collect()
    })
}

/// The bundled plans, replaced or extended by those of the session's settings.
///
/// # Errors
/// [`NotAPlan`], for the first invalid plan.
pub(super) fn with(own: BTreeMap<String, Plan>) -> Result<BTreeMap<String, Plan>, NotAPlan> {
    let mut plans = shipped().clone();
    for (intent, plan) in own {
        plan.check(&intent)?;
        plans.insert(intent, plan);
    }
    Ok(plans)
}

/// Whether a port in a question only says where: a question about its optics asks for no check of all interfaces.
pub(super) fn is_only_where(query: &str, intent: &Intent, steps: &[String]) -> bool {
    let asked = interpret::subjects(query);
    let mut covered = steps.iter().flat_map(|step| interpret::subjects(step));
    intent.name == "check_interface_status"
        && !asked.is_empty()
        && !covered.any(|subject| asked.contains(&subject))
}

/// The intent of a question about a subject that no plan has: the question is the plan.
pub(super) const QUESTION: &str = "question";

/// The steps of a plan, and before them the question, if it asks about a subject that they leave out.
pub(super) fn with_question(query: &str, steps: Vec<String>, intent: &Intent) -> Vec<String> {
    let logs = "If something was found, check the logs for messages about it.";
    let covered: Vec<_> = steps.iter().flat_map(|step| interpret::subjects(step)).collect();
    let is_covered = |subject: &&str| covered.contains(subject);
    match intent.name.as_str() {
        QUESTION => vec![query.to_owned(), logs.to_owned()],
        _ if interpret::subjects(query).iter().all(is_covered) => steps,
        _ => [query.to_owned()].into_iter().chain(steps).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_plans_load_and_read_like_instructions() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/plans");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let intents: Vec<String> =
            shipped().keys().map(|intent| format!("{intent}.json")).collect();
        assert_eq!(files, intents);
        assert_eq!(files.len(), 13);
        for plan in shipped().values() {
            assert!(plan.steps.len() >= 2, "{}", plan.intent);
            for step in &plan.steps {
                assert!(step.ends_with('.') && !step.contains("get_"), "{step}");
            }
        }
    }

    #[test]
    fn what_is_no_plan_is_refused_by_its_field() {
        let text = |intent: &str, steps: &str| {
            format!(r#"{{"intent": "{intent}", "description": "d", "steps": {steps}}}"#)
        };
        let check = |name: &str, text: &str| Plan::parse(name, text).unwrap_err().to_string();
        assert!(check("a", "{").starts_with("EOF"));
        assert!(check("a", &text("b", r#"["s"]"#)).starts_with("`intent` must be the file's name"));
        assert!(check("a", &text("a", "[]")).starts_with("`steps` must hold 1 to 20, not 0"));
        assert!(check("a", &text("a", r#"[" "]"#)).starts_with("`description` and each"));
        assert!(check("A b", &text("A b", r#"["s"]"#)).starts_with("the file's name"));
        assert!(check("a", r#"{"intent": "a", "steps": []}"#).contains("description"));
    }
}
