//! The incident agent's host configuration: limits from the environment, deduplication and rate limit of
//! reports, and two log lines.

use ::graph::budget::{Budget, Limit};
use ::graph::profile::{
    Defaults, Environment, InAccount, Observed, Profile, RateLimit, Server, Unusable,
};
use ::graph::run::Run;
use journal::step::{Step, StepBody};
use serde_json::{Value, json};

use super::graph::{DEADLINE_SECONDS, SERVER};

/// Most tokens of one incident.
pub const MAX_TOKENS_PER_INCIDENT: &str = "MAX_TOKENS_PER_INCIDENT";

/// Most node visits of one incident.
pub const INCIDENT_RECURSION_LIMIT: &str = "INCIDENT_RECURSION_LIMIT";

/// How long before an incident's deadline the last model call starts, in seconds.
pub const INCIDENT_DEADLINE_BUFFER_SECONDS: &str = "INCIDENT_DEADLINE_BUFFER_SECONDS";

/// Most sessions of the incident agent per hour. The invoker reads it.
pub const MAX_INCIDENTS_PER_HOUR: &str = "MAX_INCIDENTS_PER_HOUR";

/// Default of [`MAX_INCIDENTS_PER_HOUR`].
///
/// Source: the incident specification, section 7, `MAX_INCIDENTS_PER_HOUR`.
pub const INCIDENTS_PER_HOUR: u32 = 20;

/// Joins an alarm's name and the time of its change; neither contains it.
const JOINT: char = '@';

pub static PROFILE: Profile = Profile {
    variables: &[
        MAX_TOKENS_PER_INCIDENT,
        INCIDENT_RECURSION_LIMIT,
        INCIDENT_DEADLINE_BUFFER_SECONDS,
    ],
    defaults,
    dedupe_key,
    rate_limit: Some(RateLimit {
        per_hour: INCIDENTS_PER_HOUR,
        variable: Some(MAX_INCIDENTS_PER_HOUR),
        plural: "incidents",
    }),
    observe,
    servers: &[Server {
        name: SERVER,
        options: &[("snapshot", "--snapshot")],
        in_account: Some(InAccount { argument: "--target=aws", unless: "snapshot" }),
        state_option: None,
    }],
    ..Profile::PLAIN
};

fn defaults(environment: &Environment<'_>) -> Result<Defaults, Unusable> {
    let any = 1..=u64::from(u32::MAX);
    let from_one = "a whole number from 1 to 4294967295";
    let buffer = environment.whole_number(
        INCIDENT_DEADLINE_BUFFER_SECONDS,
        1..=DEADLINE_SECONDS - 1,
        "a whole number of seconds from 1 to 299",
    )?;
    let budget = Budget {
        tokens: environment.whole_number(MAX_TOKENS_PER_INCIDENT, any.clone(), from_one)?,
        visits: environment.whole_number(INCIDENT_RECURSION_LIMIT, any, from_one)?,
        seconds: buffer.map(|buffer| DEADLINE_SECONDS - buffer),
        ..Budget::UNLIMITED
    };
    Ok(Defaults { budget, ..Defaults::default() })
}

/// The incident's id, else its SNS message's id, else the alarm's name and the time of its change.
fn dedupe_key(input: &Value) -> Option<String> {
    let sns = &input["Records"][0]["Sns"];
    let inner = sns["Message"].as_str().and_then(|message| serde_json::from_str(message).ok());
    let message: &Value = inner.as_ref().unwrap_or(input);
    let detail = &message["detail"];
    text(&message["incident_id"])
        .or_else(|| text(&sns["MessageId"]))
        .or_else(|| changed(&message["AlarmName"], &message["StateChangeTime"]))
        .or_else(|| changed(&detail["alarmName"], &detail["state"]["timestamp"]))
}

fn changed(alarm: &Value, at: &Value) -> Option<String> {
    Some(format!("{}{JOINT}{}", text(alarm)?, text(at)?))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Logs two lines at the end of a session, for readers without the journal.
///
/// Source: the incident specification, section 7. These are the only logged payloads.
fn observe(run: &Run, step: &Step<Value>) -> Observed {
    match &step.body {
        StepBody::End { payload, .. } => {
            Observed { log: lines(run, payload), ..Observed::default() }
        }
        _ => Observed::default(),
    }
}

fn lines(run: &Run, result: &Value) -> Vec<Value> {
    let used = run.usage();
    // A session whose model failed has no result; the graph's state has the id.
    let incident_id = match &result["incident_id"] {
        Value::Null => run.state_json().unwrap_or_default()["incident"]["incident_id"].clone(),
        id => id.clone(),
    };
    let allowed = run.budget().allowed(Limit::Tokens);
    let metrics = json!({
        "event": "agent_metrics",
        "incident_id": incident_id,
        "llm_calls": used.model_calls,
        "total_prompt_tokens": used.input_tokens,
        "total_completion_tokens": used.output_tokens,
        "unsettled_tokens": used.unsettled_tokens,
        "total_tokens": used.tokens(),
        "budget_remaining": allowed.map(|allowed| allowed.saturating_sub(used.tokens())),
    });
    let summary = json!({
        "event": "agent_reasoning_summary",
        "incident_id": incident_id,
        "tools_called": result["tools_called"],
        "fault_types": result["fault_types"],
        "root_cause": result["root_cause"],
        "severity": result["severity"],
        "steps": used.calls,
    });
    vec![metrics, summary]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dedupe_key_is_the_incident_s_id_message_or_alarm() {
        let wrapped = |message: Value| json!({"Records": [{"Sns": {"MessageId": "m-1", "Message": message.to_string()}}]});
        let alarm = json!({"AlarmName": "a", "StateChangeTime": "2026-11-21T10:00:00Z"});
        let event = json!({"detail": {"alarmName": "a", "state": {"timestamp": "t"}}});
        for (input, expected) in [
            (json!({"incident_id": "i-1", "lambda_name": "f"}), Some("i-1")),
            (wrapped(json!({"incident_id": "i-1"})), Some("i-1")),
            (wrapped(json!({"lambda_name": "f"})), Some("m-1")),
            (wrapped(alarm.clone()), Some("m-1")),
            (alarm, Some("a@2026-11-21T10:00:00Z")),
            (event, Some("a@t")),
            (json!({"lambda_name": "f"}), None),
            (json!({"incident_id": 7}), None),
        ] {
            assert_eq!(dedupe_key(&input).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn the_environment_sets_the_limits() {
        let lookup = |name: &str| {
            let set = [
                ("MAX_TOKENS_PER_INCIDENT", "5000"),
                ("INCIDENT_RECURSION_LIMIT", "6"),
                ("INCIDENT_DEADLINE_BUFFER_SECONDS", "100"),
            ];
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let budget = defaults(&Environment::of(&lookup)).unwrap().budget;
        assert_eq!(
            (budget.tokens, budget.visits, budget.seconds),
            (Some(5_000), Some(6), Some(200))
        );
        assert_eq!(defaults(&Environment::EMPTY).unwrap(), Defaults::default());
    }

    #[test]
    fn an_invalid_limit_stops_the_program() {
        for (name, value) in [
            (MAX_TOKENS_PER_INCIDENT, "0"),
            (INCIDENT_RECURSION_LIMIT, "many"),
            (INCIDENT_DEADLINE_BUFFER_SECONDS, "300"),
        ] {
            let lookup = |asked: &str| (asked == name).then(|| value.to_owned());
            let refusal = defaults(&Environment::of(&lookup)).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{name} is `{value}`, expected ")), "{refusal}");
        }
    }
}
