//! The watchdog's input: EventBridge events.

use journal::id::SessionId;
use serde_json::Value;
use workflow::rule::{EXECUTION_BROKEN, EXECUTION_STATUS_CHANGE};

/// The `detail-type` of a schedule's events.
pub const SCHEDULED: &str = "Scheduled Event";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session's execution ended without success.
    Ended {
        /// The session, from the execution's input: the name of a resuming execution differs.
        session: SessionId,
    },
    /// The schedule: check all open leases.
    Sweep,
    Other,
}

impl Event {
    /// Parses an EventBridge event. An unusable one is [`Event::Other`]: a rule with too broad a pattern
    /// must not fill a dead-letter queue.
    pub fn parse(event: &Value) -> Self {
        match event["detail-type"].as_str() {
            Some(SCHEDULED) => Self::Sweep,
            Some(EXECUTION_STATUS_CHANGE) => {
                Self::of_change(&event["detail"]).unwrap_or(Self::Other)
            }
            _ => Self::Other,
        }
    }

    fn of_change(detail: &Value) -> Option<Self> {
        let status = detail["status"].as_str()?;
        if !EXECUTION_BROKEN.contains(&status) {
            return None;
        }
        let input: Value = serde_json::from_str(detail["input"].as_str()?).ok()?;
        let session = input["session_id"].as_str()?.parse().ok()?;
        Some(Self::Ended { session })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use workflow::rule::EXECUTION_SOURCE;

    use super::*;

    const ID: &str = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";

    #[test]
    fn a_status_change_names_its_session_by_the_input() {
        let change = |status: &str, input: &str| {
            Event::parse(&json!({
                "version": "0", "detail-type": EXECUTION_STATUS_CHANGE, "source": EXECUTION_SOURCE,
                "detail": { "status": status, "name": format!("{ID}-resume-1"), "input": input },
            }))
        };
        let input = json!({ "session_id": ID, "detail": {} }).to_string();
        for status in ["FAILED", "TIMED_OUT", "ABORTED"] {
            assert_eq!(change(status, &input), Event::Ended { session: ID.parse().unwrap() });
        }
        for status in ["RUNNING", "SUCCEEDED"] {
            assert_eq!(change(status, &input), Event::Other);
        }
        // EventBridge omits a large input; the sweep finds the session.
        for input in ["", "{}", "null", r#"{"session_id": 7}"#] {
            assert_eq!(change("FAILED", input), Event::Other);
        }
    }

    #[test]
    fn a_schedule_asks_for_a_sweep() {
        assert_eq!(Event::parse(&json!({ "detail-type": SCHEDULED })), Event::Sweep);
        assert_eq!(Event::parse(&json!({ "detail-type": "Other" })), Event::Other);
        assert_eq!(Event::parse(&json!(null)), Event::Other);
    }
}
