//! The event bus's rule: which events start a session, and what the state machine receives.

/// The rule's name.
pub const NAME: &str = "daybook-trigger";

/// The `source` of a trigger event.
pub const SOURCE: &str = "manual-trigger";

/// The `detail-type` of a trigger event.
pub const DETAIL_TYPE: &str = "execute-agent";

/// The rule's event pattern.
pub const PATTERN: &str = r#"{"source":["manual-trigger"],"detail-type":["execute-agent"]}"#;

/// The input transformer's paths, by name.
pub const INPUT_PATHS: &[(&str, &str)] =
    &[("session_id", "$.id"), ("time", "$.time"), ("detail", "$.detail")];

/// The input transformer's template: the same text locally and in the cloud.
pub const INPUT_TEMPLATE: &str =
    r#"{"session_id": <session_id>, "time": <time>, "detail": <detail>}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_names_the_source_and_the_detail_type() {
        let pattern: serde_json::Value = serde_json::from_str(PATTERN).unwrap();
        assert_eq!(pattern["source"][0], SOURCE);
        assert_eq!(pattern["detail-type"][0], DETAIL_TYPE);
        for (name, _) in INPUT_PATHS {
            assert!(INPUT_TEMPLATE.contains(&format!("<{name}>")), "{name}");
        }
    }
}
