//! The incident agent's host configuration: limits from the environment, deduplication and rate limit of
//! reports, and two log lines.

use ::graph::budget::{Budget, Limit};
use ::graph::profile::{
    Defaults, Environment, InAccount, Observed, Profile, RateLimit, Repeats, Server, Unusable,
};
use ::graph::run::Run;
use journal::step::{Step, StepBody};
use serde_json::{Value, json};

use super::graph::{DEADLINE_SECONDS, SECONDS_MAX, SERVER, TOKENS_MAX};
use super::masks;
use super::message::{self, Incident};

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

/// More patterns to mask: a JSON object of names and regular expressions.
pub const INCIDENT_MASK_PATTERNS: &str = "INCIDENT_MASK_PATTERNS";

/// How long reports about one function attach to the first, in seconds: an alarm with a period of a
/// minute repeats, and several alarms watch one function.
pub const REPEATS_WITHIN_S: u64 = 300;

/// Joins an alarm's name and the time of its change; neither contains it.
const JOINT: char = '@';

pub static PROFILE: Profile = Profile {
    variables: &[
        INCIDENT_MASK_PATTERNS,
        MAX_TOKENS_PER_INCIDENT,
        INCIDENT_RECURSION_LIMIT,
        INCIDENT_DEADLINE_BUFFER_SECONDS,
    ],
    defaults,
    dedupe_key,
    repeats: Some(Repeats { subject, window_s: REPEATS_WITHIN_S }),
    mask,
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
    let patterns = environment.read(
        INCIDENT_MASK_PATTERNS,
        "a JSON object of at most 20 names and regular expressions that match no empty text",
        masks::patterns,
    )?;
    let ceiling = budget.or(Budget {
        tokens: Some(TOKENS_MAX),
        seconds: Some(SECONDS_MAX),
        ..Budget::UNLIMITED
    });
    let options = patterns.map_or(Value::Null, |patterns| json!({ masks::OPTION: patterns }));
    Ok(Defaults { budget, ceiling, options, ..Defaults::default() })
}

/// The folder of a saved incident is no text of the incident: it stays as it is.
fn mask(options: &Value, value: &mut Value) {
    let snapshot = value.get_mut("snapshot").map(Value::take);
    masks::mask(options, value);
    if let (Some(snapshot), Some(members)) = (snapshot, value.as_object_mut()) {
        members.insert("snapshot".to_owned(), snapshot);
    }
}

/// The function of an alarm. Alarms repeat by themselves; an incident that a person or a program reports is a new one.
fn subject(input: &Value) -> Option<String> {
    let (message, _) = message::unwrapped(input);
    text(&message["AlarmName"]).or_else(|| text(&message["detail"]["alarmName"]))?;
    Some(Incident::parse(input).ok()?.lambda_name)
}

/// The incident's id, else its SNS message's id, else the alarm's name and the time of its change.
fn dedupe_key(input: &Value) -> Option<String> {
    let (message, envelope) = message::unwrapped(input);
    let detail = &message["detail"];
    text(&message["incident_id"])
        .or(envelope)
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
            (wrapped(wrapped(json!({"lambda_name": "f"}))), Some("m-1")),
            (
                json!({"Records": [{"messageId": "q-1", "body": json!({"Type": "Notification",
                "MessageId": "m-2", "Message": "{\"lambda_name\": \"f\"}"}).to_string()}]}),
                Some("m-2"),
            ),
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
        let plain = defaults(&Environment::EMPTY).unwrap();
        assert_eq!((plain.budget, plain.options), (Budget::UNLIMITED, Value::Null));
        assert_eq!((plain.ceiling.tokens, plain.ceiling.seconds), (Some(100_000), Some(210)));
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
