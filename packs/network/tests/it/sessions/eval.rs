//! The cases of `packs/network/eval` with the policy: verdicts, and what the report says. `daybook eval` runs them with
//! the format's other checks.

use serde_json::{Value, json};

use super::inventory::Inventory;
use super::{by_rules, completed};

/// The value of the evaluation for the result's verdict.
fn value(result: &Value) -> &'static str {
    match result["verdict"].as_str() {
        Some("fine") => "fine",
        Some("not_fine") => "not_fine",
        _ => "open",
    }
}

#[test]
fn every_case_of_the_evaluation_agrees_without_a_model() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("eval");
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.retain(|path| path.is_dir());
    entries.sort();
    assert!(entries.len() >= 30, "{} cases", entries.len());
    let mut wrong = Vec::new();
    for path in entries {
        let text = std::fs::read_to_string(path.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let inventory = Inventory::at(&path.join("network.json"));
        let query = case["input"]["query"].as_str().unwrap();
        let result = completed(by_rules(query, |call| inventory.call(call)));
        let said = json!([result["summary"], result["judgements"], result["findings"]]).to_string();
        let said = said.to_lowercase();
        let list = |name: &str| case["expect"][name].as_array().cloned().unwrap_or_default();
        let is_said = |text: &Value| said.contains(&text.as_str().unwrap().to_lowercase());
        let expected = &case["expect"]["verdict"];
        let is_accepted = expected == value(&result)
            || expected.as_array().is_some_and(|all| all.contains(&json!(value(&result))));
        if !is_accepted
            || !list("says").iter().all(is_said)
            || list("never_says").iter().any(is_said)
        {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!(
                "{name}: {} not {expected}: {}\n{:#}",
                value(&result),
                result["summary"],
                result["judgements"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} disagree:\n{}", wrong.len(), wrong.join("\n"));
}
