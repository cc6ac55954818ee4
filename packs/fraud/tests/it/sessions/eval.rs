//! The cases of `packs/fraud/eval` with the policy: verdicts, results, and what the report says. `daybook eval` runs
//! them with the format's other checks.

use std::path::Path;

use graph::agent::Settings;
use graph::conclusion::Tone;
use graph::definition::Finish;
use graph::testing::{TestSession, World};
use serde_json::{Value, json};

use super::{Desk, agent};

/// What became of a case: the evaluation's value, the agent's word, all texts, and the result.
struct Ran {
    value: &'static str,
    word: String,
    said: String,
    result: Value,
}

fn run(folder: &Path, case: &Value) -> Ran {
    let desk = Desk::of(&std::fs::read_to_string(folder.join("payments.csv")).unwrap());
    let input = desk.input(case["input"]["transaction_id"].as_str().unwrap());
    let mut session = TestSession::start(agent(), input, Settings::default()).unwrap();
    let finish = session.drive(&mut World::new(|call| desk.serve(call)));
    let (is_failed, result) = match finish {
        Finish::Completed(result) => (false, result),
        Finish::Failed { result, .. } => (true, result),
    };
    let conclusion = agent().presentation().conclusion_of(&result).unwrap();
    let verdict = conclusion.verdict.clone().unwrap();
    let value = match verdict.tone {
        _ if is_failed => "failed",
        Tone::Good => "fine",
        Tone::Bad => "not_fine",
        Tone::Warn | Tone::Neutral => "open",
    };
    let said = json!(conclusion).to_string().to_lowercase();
    Ran { value, word: verdict.word, said, result }
}

fn all(one_or_many: &Value) -> Vec<&str> {
    match one_or_many {
        Value::Null => Vec::new(),
        Value::Array(many) => many.iter().map(|text| text.as_str().unwrap()).collect(),
        one => vec![one.as_str().unwrap()],
    }
}

fn disagreements(ran: &Ran, expect: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let accepted = all(&expect["verdict"]);
    if !accepted.contains(&ran.value) {
        found.push(format!("{} instead of {accepted:?}", ran.value));
    }
    let words = all(&expect["word"]);
    if !words.is_empty() && !words.contains(&ran.word.as_str()) {
        found.push(format!("`{}` instead of {words:?}", ran.word));
    }
    let is_said = |text: &&str| ran.said.contains(&text.to_lowercase());
    let missing = all(&expect["says"]).into_iter().filter(|text| !is_said(text));
    found.extend(missing.map(|text| format!("it does not say `{text}`")));
    let said = all(&expect["never_says"]).into_iter().filter(is_said);
    found.extend(said.map(|text| format!("it says `{text}`")));
    for check in expect["result"].as_array().into_iter().flatten() {
        let at = check["at"].as_str().unwrap();
        let there = ran.result.pointer(at).cloned().unwrap_or_default();
        let text = there.to_string();
        let is_equal = check.get("equals").is_none_or(|expected| *expected == there);
        let has_all = all(&check["contains"]).iter().all(|part| text.contains(part));
        if !is_equal || !has_all || all(&check["lacks"]).iter().any(|part| text.contains(part)) {
            found.push(format!("{at} is {text}"));
        }
    }
    found
}

#[test]
fn every_case_of_the_evaluation_agrees_without_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval");
    let mut folders: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    assert!(folders.len() >= 30, "{} cases", folders.len());
    let mut wrong = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap();
        let ran = run(&folder, &case);
        let patterns: Vec<&str> = ran.result["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|finding| finding["pattern"].as_str().unwrap())
            .collect();
        let found = disagreements(&ran, &case["expect"]);
        let mark = if found.is_empty() { "" } else { "  NO" };
        println!("{name}: {} ({}) {} {patterns:?}{mark}", ran.value, ran.word, ran.result["score"]);
        if !found.is_empty() {
            wrong.push(format!(
                "{name}: {}\n    {}\n    {}",
                found.join("; "),
                ran.result["findings"],
                ran.result["recommendations"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} disagree:\n{}", wrong.len(), wrong.join("\n"));
}
