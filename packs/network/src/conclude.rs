//! The conclusion of a check: problems, their evidence, and what to do.

use graph::conclusion::read::{list, text};
use graph::conclusion::{
    Action, Cell, Conclusion, Evidence, Fact, Finding, Headings, Note, Place, RecordAt, Table,
    Tone, Verdict,
};
use graph::presentation::{Advice, Presentation};
use serde_json::Value;

use super::report::{LOGGED, NOT_CHECKED};

pub const PRESENTATION: Presentation =
    Presentation { title, conclude, advice: ADVICE, ..Presentation::DEFAULT };

/// Recommended actions, by a text that the finding contains.
const BY_FINDING: &[(&str, &str)] = &[
    ("MTU mismatch", "Set the same MTU at both ends of the link that the log names."),
    (
        "is DOWN",
        "Check both ends of the link: whether an operator shut it down, then optics and cable.",
    ),
    (
        "flaps",
        "Clean or replace optics and cable of the flapping link; take it out of service meanwhile.",
    ),
    ("CRC errors", "Clean or replace optics and cable at both ends of the link."),
    (
        "BGP neighbor",
        "Check that the neighbor's address is reachable and the configuration of both sides, then clear the session.",
    ),
    (
        "LDP session",
        "Check that LDP is enabled at both ends of the link and nothing filters its hellos (port 646).",
    ),
    (
        "has no label",
        "Traffic without a label is dropped: check the LDP session with the next router on the path, and why it allocates no label.",
    ),
    (
        "CONFLICT",
        "Two routers advertise the same segment identifier: give one of them another index.",
    ),
    ("import route target", "Import a route target that another site of the customer exports."),
    (
        "routes limit",
        "Raise the customer's route limit, or find the site that sends more routes than agreed.",
    ),
    (
        "has no neighbor",
        "Compare area, timers, subnet and authentication of both ends: no hello is accepted.",
    ),
    (
        "EXSTART",
        "Compare the MTU at both ends of the link: database descriptions do not get through.",
    ),
    (
        "ROOT BRIDGE mismatch",
        "Find the switch that became the root, and set its priority; protect edge ports with root guard.",
    ),
    (
        "inconsistent",
        "Find out what the blocked port receives: a superior bridge, another VLAN or its own frames.",
    ),
    ("ALLOWED VLANS mismatch", "Allow the same VLANs at both ends of the trunk."),
    ("NATIVE VLAN mismatch", "Set the same native VLAN at both ends of the trunk."),
    (
        " denies ",
        "Check whether the rule is intended; if not, move the permit above it or remove it.",
    ),
    (
        "SERVFAIL",
        "Repair or replace the name server: resolvers do not ask the next one while it answers.",
    ),
    ("CPU is", "Check what keeps the named process busy: its neighbors' updates, a debug, a loop."),
    ("the limit of", "Raise the trigger's `budget` and ask again."),
];

fn title(input: &Value) -> Option<String> {
    text(input, "query").map(str::to_owned)
}

/// `None` if the result is not a report.
fn conclude(result: &Value) -> Option<Conclusion> {
    let (found, limits) = (list(result, "findings"), limitations(result));
    let paragraphs = list(result, "summary").iter().filter_map(Value::as_str);
    let is_below = |paragraph: &&str| {
        found.iter().any(|finding| text(finding, "finding") == Some(*paragraph))
            || !limits.is_empty() && paragraph.starts_with(NOT_CHECKED)
    };
    let summary: Vec<_> = paragraphs.filter(|paragraph| !is_below(paragraph)).collect();
    let objective = text(result, "objective")?;
    let mut facts: Vec<_> =
        text(result, "device_name").map(|device| Fact::new("device", device)).into_iter().collect();
    facts.push(Fact::new("objective", objective));
    let mut notes = Vec::new();
    let verdict = verdict(result, found, !limits.is_empty());
    if !limits.is_empty() {
        notes.push(Note { title: "Not checked".to_owned(), lines: limits, tone: Tone::Warn });
    }
    if let Some(assessed) = text(result, "assessor_notes_for_final_report") {
        let lines = assessed.lines().map(str::to_owned).collect();
        notes.push(Note { title: "Assessment".to_owned(), lines, tone: Tone::Neutral });
    }
    Some(Conclusion {
        title: "Report",
        verdict: Some(verdict),
        summary: summary.join("\n\n"),
        headings: Headings { findings: "Problems", ..Headings::default() },
        facts,
        findings: found.iter().enumerate().map(finding).collect(),
        actions: actions(found),
        tables: steps(result).into_iter().collect(),
        notes,
    })
}

/// Green only if tools answered and there are no limitations.
fn verdict(result: &Value, found: &[Value], is_limited: bool) -> Verdict {
    let is_logged =
        |finding: &Value| text(finding, "finding").is_some_and(|text| text.starts_with(LOGGED));
    let mut calls =
        list(result, "execution_results").iter().flat_map(|step| list(step, "executed_calls"));
    let is_answered = calls.any(|call| text(call, "error").is_none());
    let (word, tone) = match (found, text(result, "verdict")) {
        ([], _) if !is_answered => ("not checked", Tone::Warn),
        ([], Some("fine")) => ("healthy", Tone::Good),
        ([], Some("not_fine")) => ("problems found", Tone::Bad),
        ([], _) if is_limited => ("partly checked", Tone::Warn),
        ([], _) => ("not judged", Tone::Warn),
        (all, _) if all.iter().all(is_logged) => ("problems logged", Tone::Warn),
        _ => ("problems found", Tone::Bad),
    };
    Verdict::new(word, tone)
}

fn limitations(result: &Value) -> Vec<String> {
    let text = text(result, "tool_limitations_report").unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn finding((at, found): (usize, &Value)) -> Finding {
    let tool = text(found, "function").unwrap_or("unknown tool");
    let step = found.get("step_index").and_then(Value::as_u64).map_or(0, |index| index + 1);
    let words = text(found, "finding").unwrap_or("unknown finding");
    Finding {
        text: words.to_owned(),
        tone: if words.starts_with(LOGGED) { Tone::Warn } else { Tone::Bad },
        evidence: Some(Evidence {
            source: format!("step {step}, {tool}"),
            quote: None,
            record: Some(RecordAt { tool: Some(tool.to_owned()), place: Place::Whole }),
        }),
        claim: Some(format!("/findings/{at}")),
        ..Finding::default()
    }
}

/// Recommended actions without duplicates, in table order.
fn actions(found: &[Value]) -> Vec<Action> {
    let action = |(words, advice): &(&str, &str)| {
        let has_words =
            |finding: &Value| text(finding, "finding").is_some_and(|t| t.contains(*words));
        let evidence: Vec<_> = (0..found.len()).filter(|at| has_words(&found[*at])).collect();
        (!evidence.is_empty()).then(|| Action { evidence, ..Action::new(*advice) })
    };
    let mut actions: Vec<_> = BY_FINDING.iter().filter_map(action).collect();
    if !actions.is_empty() {
        actions.push(Action::new("Then run the same check again; it should find no problems."));
    }
    actions
}

/// The first sentence of each step, and a row for each of its calls.
fn steps(result: &Value) -> Option<Table> {
    let mut table = Table::new("Steps", &["Step", "Call"]);
    for step in list(result, "execution_results") {
        let number = step.get("step_index").and_then(Value::as_u64).map_or(0, |index| index + 1);
        let words = text(step, "natural_language_instruction").unwrap_or_default();
        let first = words.split_inclusive(['.', ':']).next().unwrap_or(words);
        let mut name = format!("{number}. {}", first.trim_end_matches(':'));
        let calls = list(step, "executed_calls");
        if calls.is_empty() {
            table.rows.push(vec![std::mem::take(&mut name).into(), "no call".into()]);
        }
        for made in calls {
            table.rows.push(vec![std::mem::take(&mut name).into(), call(made)]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn call(made: &Value) -> Cell {
    let arguments = made.get("params").and_then(Value::as_object).into_iter().flatten();
    let arguments = arguments.map(|(name, value)| match value {
        Value::String(text) => format!(" {name}={text}"),
        other => format!(" {name}={other}"),
    });
    let function = text(made, "function").unwrap_or("unknown tool");
    let line = format!("{function}{}", arguments.collect::<String>());
    match text(made, "error") {
        None => Cell::from(format!("✓ {line}")),
        Some(error) => Cell::from(format!("✗ {line}: {error}")).toned(Tone::Warn),
    }
}

const ADVICE: Advice =
    &[(super::graph::CATEGORY_INPUT, &["Correct the input; the result lists the known devices."])];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(findings: Value, limitations: &str, error: Value) -> Conclusion {
        let verdict = if limitations.is_empty() { "fine" } else { "unknown" };
        conclude(&json!({
            "verdict": verdict, "device_name": "pe1", "objective": "troubleshoot vpn on pe1",
            "summary": ["pe1: one problem found.", "VRF A: import route target 1:9 matches no route", "Not checked: x", "More."],
            "findings": findings, "tool_limitations_report": limitations,
            "execution_results": [
                {"step_index": 0, "natural_language_instruction": "Check the VRF: all of it.",
                    "executed_calls": [{"function": "get_vpn_info", "params": {"vrf": "A", "depth": 2}, "result": {}, "error": error}]},
                {"step_index": 1, "natural_language_instruction": "Look again.", "executed_calls": []},
            ],
            "assessor_notes_for_final_report": "Objective met.",
        }))
        .unwrap()
    }

    #[test]
    fn a_report_starts_with_the_problems() {
        let found = report(
            json!([{"step_index": 0, "function": "get_vpn_info",
                "finding": "VRF A: import route target 1:9 matches no route"}]),
            "no tool is about logs\n",
            Value::Null,
        );
        insta::assert_json_snapshot!(found);
    }

    #[test]
    fn only_a_complete_check_without_problems_is_green() {
        let verdict = |findings, limitations, error| {
            let Verdict { word, tone } = report(findings, limitations, error).verdict.unwrap();
            (word, tone)
        };
        let logged = json!([{"finding": "logged: %OSPF down"}]);
        let (none, ok) = (json!([]), Value::Null);
        for (found, expected) in [
            (verdict(none.clone(), "", ok.clone()), ("healthy", Tone::Good)),
            (verdict(none.clone(), "x", ok.clone()), ("partly checked", Tone::Warn)),
            (verdict(none, "", json!("no answer")), ("not checked", Tone::Warn)),
            (verdict(logged, "", ok.clone()), ("problems logged", Tone::Warn)),
            (verdict(json!([{"finding": "x is DOWN"}]), "", ok), ("problems found", Tone::Bad)),
        ] {
            assert_eq!(found, (expected.0.to_owned(), expected.1));
        }
        assert_eq!(conclude(&json!({"summary": ["no objective"]})), None);
    }

    #[test]
    fn an_action_is_listed_once_with_all_its_findings() {
        let down = |name: &str| json!({ "finding": format!("interface {name} is DOWN") });
        let actions = actions(&[down("a"), down("b"), json!({"finding": "else"})]);
        let evidence: Vec<_> = actions.iter().map(|action| action.evidence.clone()).collect();
        assert_eq!(evidence, [vec![0, 1], vec![]]);
    }
}
