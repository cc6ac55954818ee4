//! Answers in vendors' formats, written before the rules that read them. `vendors.json` has them with their sources:
//! the command references of Cisco IOS, IOS XE and NX-OS, Junos and Arista EOS, and the models of NAPALM, Genie and
//! NTC templates.

use serde::Deserialize;
use serde_json::Value;

use super::foreign::asked;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    from: String,
    query: String,
    tool: String,
    answer: Value,
    /// The judgement of the question.
    expected: String,
}

#[test]
fn answers_of_vendors_are_judged_as_the_trade_does() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("vendors.json")).unwrap();
    assert!(cases.len() >= 40, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let result = asked(&case.query, &case.tool, &case.answer);
        let question = &result["judgements"][0]["verdict"];
        let is_right = match case.expected.as_str() {
            "not_fine" => result["verdict"] == "not_fine",
            // The plan may ask for more than this server answers.
            "fine" => question == "fine" && result["verdict"] != "not_fine",
            "unknown" => question != "fine" && result["verdict"] == "unknown",
            other => panic!("{other}"),
        };
        if !is_right {
            let judged = result["judgements"].as_array().unwrap();
            let why: Vec<&Value> = judged.iter().map(|judged| &judged["reason"]).take(2).collect();
            let found = &result["findings"];
            let (from, expected) = (case.from, case.expected);
            wrong.push(format!("{from}: {expected}, not {question}: {why:?} {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
