//! Who is admitted: what makes two triggers the same, and how many sessions an agent may begin in an
//! hour. The invoker holds sessions against this before anything is paid for.

use std::time::Duration;

use serde_json::Value;

use crate::env::{self, Invalid, Lookup};
use crate::trigger::{DEDUPE_KEY_BYTES_MAX, Trigger};

/// Sessions of the incident agent that may begin in a [`WINDOW`], unless something else is set.
///
/// Source: the incident specification, section 7, `MAX_INCIDENTS_PER_HOUR`.
pub const INCIDENTS_PER_HOUR: u32 = 20;

/// Most that can be set: each admission may look at all of its agent's slots.
pub const PER_HOUR_MAX: u32 = 1_000;

/// How long a session counts against its agent's limit.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// What an alarm's parts are joined with; a name and a time never hold it.
const JOINT: char = '@';

const INCIDENT: &str = "incident";

/// How many sessions may begin in a [`WINDOW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Those of the incident agent; of all others any number.
    pub incidents_per_hour: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { incidents_per_hour: INCIDENTS_PER_HOUR }
    }
}

impl Limits {
    /// Reads [`env::MAX_INCIDENTS_PER_HOUR`].
    ///
    /// # Errors
    /// When it is set to no whole number from 1 to [`PER_HOUR_MAX`].
    pub fn read(lookup: &impl Lookup) -> Result<Self, Invalid> {
        let (name, expected) = (env::MAX_INCIDENTS_PER_HOUR, "a whole number from 1 to 1000");
        let incidents_per_hour = env::parsed(lookup, name, INCIDENTS_PER_HOUR, expected)?;
        if !(1..=PER_HOUR_MAX).contains(&incidents_per_hour) {
            return Err(Invalid::Malformed {
                name,
                value: incidents_per_hour.to_string(),
                expected,
            });
        }
        Ok(Self { incidents_per_hour })
    }

    /// How many of this agent's sessions may begin in a window; `None` is any number.
    pub fn per_hour(&self, agent: &str) -> Option<u32> {
        (agent == INCIDENT).then_some(self.incidents_per_hour)
    }
}

/// What makes a trigger the same as another of its agent: its own key, or the incident's id, else the
/// id of the message that brought it, else the alarm's name and the time of its change.
///
/// An id too long to be a key is none: the agent will refuse it, or nobody sends it twice.
pub fn dedupe_key(trigger: &Trigger) -> Option<String> {
    let derived = || (trigger.agent == INCIDENT).then(|| of_incident(&trigger.input)).flatten();
    let fits = |key: &String| !key.is_empty() && key.len() <= DEDUPE_KEY_BYTES_MAX;
    trigger.dedupe_key.clone().or_else(derived).filter(fits)
}

fn of_incident(input: &Value) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(agent: &str, input: Value) -> Option<String> {
        let detail = json!({ "agent": agent, "input": input });
        dedupe_key(&Trigger::parse(&detail).unwrap())
    }

    #[test]
    fn an_incident_is_told_by_its_id_else_its_message_else_its_alarm() {
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
            (json!({"incident_id": ""}), None),
            (json!({"incident_id": "x".repeat(300)}), None),
            (json!({"incident_id": 7}), None),
        ] {
            assert_eq!(key("incident", input.clone()).as_deref(), expected, "{input}");
        }
        assert_eq!(key("checkup", json!({"incident_id": "i-1"})), None);
    }

    #[test]
    fn a_key_that_is_given_stands_over_one_that_is_found() {
        let detail = json!({"agent": "incident", "input": {"incident_id": "i"}, "dedupe_key": "k"});
        assert_eq!(dedupe_key(&Trigger::parse(&detail).unwrap()).as_deref(), Some("k"));
    }

    #[test]
    fn only_incidents_are_limited_and_a_limit_is_a_whole_number_from_one() {
        assert_eq!(Limits::default().per_hour("incident"), Some(20));
        assert_eq!(Limits::default().per_hour("checkup"), None);
        let set = |value: &str| Limits::read(&|_: &str| Some(value.to_owned()));
        assert_eq!(set("7").unwrap().incidents_per_hour, 7);
        for wrong in ["0", "1001", "-1", "many"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
    }
}
