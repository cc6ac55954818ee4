//! EventBridge rules: no pattern crashes the matcher or makes it run forever, a rejection has a
//! reason, and repeated decisions are equal. The output of a transformer can be parsed.
//!
//! An input is a pattern, a line break, and an event; the first line is also tried as a template.

use asl::rule::{Origin, Pattern, Transformer};
use serde_json::{Value, json};

/// Checks a pattern and a template with an event.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, event) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(event) = serde_json::from_str::<Value>(event) else { return };
    match Pattern::parse(first) {
        Ok(pattern) => {
            let decided = pattern.matches(&event);
            let written: Value = serde_json::from_str(&event.to_string()).expect("it was JSON");
            assert_eq!(pattern.matches(&written), decided);
        }
        Err(error) => assert!(!error.reason.is_empty()),
    }
    let paths = [("a", "$.a"), ("all", "$"), ("deep", "$.a.b[0]")];
    let transformer = Transformer::new(&paths, first).expect("the paths are ours");
    if let Some(input) = transformer.apply(&event, Origin::default())
        && !first.trim_start().starts_with('"')
    {
        assert!(serde_json::from_str::<Value>(&input).is_ok(), "{input}");
    }
}

/// Each kind of match, and templates with each kind of placeholder.
pub fn seeds() -> Vec<Vec<u8>> {
    let event = json!({
        "source": "s", "detail": {"a": [1, {"b": "x"}], "c": null, "ip": "10.0.0.1", "n": -2.5},
    });
    let patterns = [
        json!({"source": ["s", {"prefix": "a"}, {"suffix": {"equals-ignore-case": "B"}}]}),
        json!({"detail": {"a": {"b": [{"wildcard": "*x\\**"}, {"exists": false}]}, "c": [null]}}),
        json!({"detail": {"ip": [{"cidr": "10.0.0.0/8"}], "n": [{"numeric": [">", -5, "<=", 0]}]}}),
        json!({"$or": [{"source": [{"anything-but": {"prefix": ["a", "b"]}}]}, {"x": [true]}]}),
        json!({"detail": {"c": [{"anything-but": [1, 2]}, {"equals-ignore-case": "NULL"}]}}),
    ];
    let templates = [
        r#"{"a": <a>, "b": "<deep>", "e": <aws.events.event.json>}"#,
        r#""all of it: <all> by <aws.events.rule-name>""#,
    ];
    let firsts = patterns.iter().map(ToString::to_string);
    let firsts = firsts.chain(templates.map(str::to_owned));
    firsts.map(|first| format!("{first}\n{event}").into_bytes()).collect()
}
