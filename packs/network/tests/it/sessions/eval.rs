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

/// How many cases of a folder there are, and those that disagree: the value, the expected one, and why.
fn disagreements(name: &str) -> (usize, Vec<(String, Value, String)>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.retain(|path| path.is_dir());
    entries.sort();
    let mut wrong = Vec::new();
    for path in &entries {
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
            let why = format!(
                "{name}: {} not {expected}: {}\n{:#}",
                value(&result),
                result["summary"],
                result["judgements"]
            );
            wrong.push((value(&result).to_owned(), expected.clone(), why));
        }
    }
    (entries.len(), wrong)
}

#[test]
fn every_case_of_the_evaluation_agrees_without_a_model() {
    let (all, wrong) = disagreements("eval");
    assert!(all >= 30, "{all} cases");
    let why: Vec<String> = wrong.into_iter().map(|(_, _, why)| why).collect();
    assert!(why.is_empty(), "{} disagree:\n{}", why.len(), why.join("\n"));
}

#[test]
fn an_unseen_case_that_disagrees_is_open() {
    let (all, wrong) = disagreements("unseen/dev");
    let why: Vec<&str> = wrong.iter().map(|(_, _, why)| why.as_str()).collect();
    assert!(wrong.len() * 10 <= all * 3, "{} disagree:\n{}", why.len(), why.join("\n"));
    for (value, _, why) in &wrong {
        assert_eq!(value, "open", "{why}");
    }
}
