//! What came of a session, in the words that somebody reads first: what, where, and what to do next.

use journal::status::Status;
use serde::Serialize;
use serde_json::Value;

use crate::text::clip;
use crate::told::Tone;
use crate::waterfall::{Row, Waterfall};

/// Characters of one sentence.
const SENTENCE_CHARS: usize = 600;

/// Characters of where a point was seen.
const SOURCE_CHARS: usize = 240;

/// Most points, and most things to do.
pub const ITEMS_MAX: usize = 20;

/// What is known of a session when somebody opens it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Where it stands.
    pub status: Status,
    /// Its agent.
    pub agent: Option<&'a str>,
    /// What went wrong.
    pub error: Option<&'a str>,
    /// The error's category.
    pub category: Option<&'a str>,
    /// What the agent brought.
    pub result: Option<&'a Value>,
    /// Its records on one axis.
    pub waterfall: &'a Waterfall,
}

/// What came of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conclusion {
    /// What stands above it.
    pub title: &'static str,
    /// In a sentence: what went wrong, or what was found.
    pub what: String,
    /// The record in which it went wrong.
    pub at: Option<Spot>,
    /// What it rests on.
    pub points: Vec<Point>,
    /// What to do next, the most urgent first.
    pub next: Vec<String>,
    /// Another session to look at.
    pub session: Option<String>,
}

/// A record to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// Its sort key.
    pub sk: String,
    /// Its name.
    pub name: String,
}

/// Something that a conclusion rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// In a sentence.
    pub text: String,
    /// Where it was seen, and what stands there.
    pub source: Option<String>,
    /// Where it stands in the result, a JSON pointer.
    pub claim: Option<String>,
}

impl Conclusion {
    /// What came of a session; `None` while it goes on, or if there is no more to say than its
    /// status and its result do.
    pub fn of(known: &Known<'_>) -> Option<Self> {
        match known.status {
            Status::Initiated | Status::Running | Status::Waiting => None,
            Status::Succeeded => known.result.and_then(found),
            Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected => {
                Some(failed(known))
            }
        }
    }
}

/// What an agent found, in whichever of the shapes that agents bring.
pub(crate) fn found(result: &Value) -> Option<Conclusion> {
    let found = diagnosis(result)
        .or_else(|| investigation(result))
        .or_else(|| report(result))
        .or_else(|| checks(result))
        .map(|found| Conclusion { title: "What was found", ..found });
    found.or_else(|| idle(result))
}

/// A conversation in which nobody said more: what it was to do was not done.
fn idle(result: &Value) -> Option<Conclusion> {
    if result.get("ended")?.as_str()? != "idle" {
        return None;
    }
    let reply = text(result, "reply").filter(|reply| !reply.is_empty());
    let said = reply.map(|reply| Point {
        text: sentence(&format!("its last reply: {reply}")),
        source: None,
        claim: None,
    });
    Some(Conclusion {
        title: "How it ended",
        what: "Nobody answered in time, and so the conversation ended by itself.".to_owned(),
        points: said.into_iter().collect(),
        next: vec!["Begin another one if it is still wanted: `daybook chat`.".to_owned()],
        ..Conclusion::default()
    })
}

fn diagnosis(result: &Value) -> Option<Conclusion> {
    let what = text(result, "root_cause")?;
    let point = |(at, claim): (usize, &Value)| {
        let (tool, field) = (text(claim, "tool")?, text(claim, "field")?);
        let (value, said) = (text(claim, "value")?, text(claim, "interpretation")?);
        let quoted = if value.is_empty() { String::new() } else { format!(" = {value}") };
        let source = Some(clip(&format!("{tool} {field}{quoted}"), SOURCE_CHARS));
        Some(Point { source, ..point(&said, format!("/evidence/{at}")) })
    };
    let next = list(result, "remediation_plan").filter_map(|(_, step)| {
        let (action, details) = (text(step, "action")?, text(step, "details")?);
        let risk = text(step, "risk_level").map(|risk| format!("{risk} risk"));
        let asks = step.get("requires_approval") == Some(&Value::Bool(true));
        let notes = risk.into_iter().chain(asks.then(|| "needs approval".to_owned()));
        Some(sentence(&format!("{action}: {details} ({})", notes.collect::<Vec<_>>().join(", "))))
    });
    Some(Conclusion {
        what: sentence(&what),
        points: list(result, "evidence").filter_map(point).collect(),
        next: next.collect(),
        ..Conclusion::default()
    })
}

fn investigation(result: &Value) -> Option<Conclusion> {
    let score = result.get("score")?.as_f64()?;
    let severity = text(result, "severity")?.to_lowercase();
    // `name: statement`, the likeliest first.
    let stated = list(result, "hypotheses").find_map(|(_, hypothesis)| hypothesis.as_str());
    let stated =
        stated.map_or("no hypothesis", |text| text.split_once(": ").map_or(text, |(_, said)| said));
    // The score is in thousandths, and whole hundredths of it are not rounded up.
    let share = (score * 1_000.0).round() / 10.0;
    let share = share.floor();
    let next = list(result, "recommendations").filter_map(|(_, advised)| {
        let (action, reason) = (text(advised, "action")?, text(advised, "reason")?);
        let priority = text(advised, "priority").map(|p| format!(" ({p})")).unwrap_or_default();
        Some(sentence(&format!("{}{priority}: {reason}", action.replace('_', " "))))
    });
    let points = list(result, "findings").filter_map(|(at, finding)| {
        Some(point(&text(finding, "explanation")?, format!("/findings/{at}")))
    });
    Some(Conclusion {
        what: sentence(&format!("{share:.0} % likely a fraud, severity {severity}: {stated}")),
        points: points.collect(),
        next: next.collect(),
        ..Conclusion::default()
    })
}

fn report(result: &Value) -> Option<Conclusion> {
    let mut lines = list(result, "summary").filter_map(|(_, line)| line.as_str());
    let what = sentence(lines.next()?);
    let found: Vec<_> = list(result, "findings")
        .filter_map(|(at, finding)| {
            Some(point(&text(finding, "finding")?, format!("/findings/{at}")))
        })
        .collect();
    let said = lines.map(|line| Point { text: sentence(line), source: None, claim: None });
    let points = if found.is_empty() { said.take(ITEMS_MAX).collect() } else { found };
    let mut next = crate::advice::about(points.iter().map(|point: &Point| point.text.as_str()));
    if !next.is_empty() {
        next.push("Then ask the same question again: nothing may be left.".to_owned());
    }
    Some(Conclusion { what, points, next, ..Conclusion::default() })
}

fn checks(result: &Value) -> Option<Conclusion> {
    let checks: Vec<_> = list(result, "checks").map(|(_, check)| check).collect();
    let bad: Vec<_> =
        checks.iter().filter(|check| check.get("ok") == Some(&Value::Bool(false))).collect();
    let what = match (checks.len(), bad.len()) {
        (0, _) => return None,
        (all, 0) => format!("All {all} checks of this deployment passed."),
        (all, bad) => format!("{bad} of {all} checks of this deployment failed."),
    };
    let points = bad.iter().filter_map(|check| {
        let detail = text(check, "detail").unwrap_or_default();
        let said = format!("{}: {detail}", text(check, "name")?);
        Some(Point { text: sentence(&said), source: None, claim: None })
    });
    let points: Vec<_> = points.take(ITEMS_MAX).collect();
    let next = if points.is_empty() {
        Vec::new()
    } else {
        vec!["Mend what the failed checks name, then run `daybook trigger` again.".to_owned()]
    };
    Some(Conclusion { what, points, next, ..Conclusion::default() })
}

fn failed(known: &Known<'_>) -> Conclusion {
    let error = known.error.unwrap_or("The session ended without a result, and nobody said why.");
    let next = match known.status {
        Status::Cancelled => {
            vec!["Somebody asked for the end. Trigger it again if it is still wanted.".to_owned()]
        }
        _ => crate::advice::next(known.error.unwrap_or_default(), known.category, known.agent),
    };
    let session = crate::advice::holder(error).map(str::to_owned);
    Conclusion {
        title: "What went wrong",
        what: sentence(error),
        at: spot(known.waterfall, known.status),
        points: Vec::new(),
        next,
        session,
    }
}

/// Where it went wrong: the last effect that brought an error, else the first record that tells of
/// one; of an end the last effect or question before it, if there was one. What ran out of time did not
/// go wrong where an error was got over.
fn spot(waterfall: &Waterfall, status: Status) -> Option<Spot> {
    let is_bad = |row: &&Row| row.tone == Tone::Bad;
    let newest_first = || waterfall.rows.iter().rev();
    let failed = newest_first().filter(|row| row.kind == "outcome").find(is_bad);
    let told = || waterfall.rows.iter().find(is_bad);
    let row = match status {
        Status::TimedOut => waterfall.rows.iter().find(|row| row.kind == "end"),
        _ => failed.or_else(told),
    }?;
    let (row, after) = match row.kind {
        "end" => match newest_first().find(|row| matches!(row.kind, "outcome" | "ask"))? {
            last if last.kind == "ask" => (last, "while it waited at "),
            last => (last, "after "),
        },
        _ => (row, ""),
    };
    let name = match row.seq {
        Some(seq) => format!("{after}step {seq}, {}", row.name),
        None => row.name.clone(),
    };
    Some(Spot { sk: row.sk.clone(), name })
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.get(name).and_then(Value::as_array).into_iter().flatten().take(ITEMS_MAX).enumerate()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn point(text: &str, claim: String) -> Point {
    Point { text: sentence(text), source: None, claim: Some(claim) }
}

fn sentence(text: &str) -> String {
    clip(text, SENTENCE_CHARS)
}

#[cfg(test)]
mod tests {
    use journal::error_message::ErrorMessage;
    use journal::event::{EventStatus, Writer};
    use journal::step::{EffectKind, Ending, Step, StepBody, Usage};
    use serde_json::json;

    use super::*;
    use crate::testing::{at, claim, effect, end, event, outcome, step};

    fn of(status: Status, error: Option<&str>, category: Option<&str>, result: &Value) -> String {
        let failure =
            json!({"failure": {"kind": "refused", "category": "mcp_connection", "message": "no"}});
        let steps = [
            step(10, 1, claim(0)),
            step(20, 2, outcome("look", EffectKind::Tools, 12, Usage::default(), failure)),
        ];
        let mut refused = event(30, EventStatus::SessionFailed, Writer::Poller);
        refused.error = Some(ErrorMessage::new("McpConnection", "s", "no"));
        let with_calls = steps.iter().map(|step| (step, None));
        let waterfall = Waterfall::of(&[refused], with_calls, false, at(40));
        let agent = Some("incident");
        let known =
            Known { status, agent, error, category, result: Some(result), waterfall: &waterfall };
        let Some(conclusion) = Conclusion::of(&known) else { return "nothing".to_owned() };
        let mut lines = vec![conclusion.what];
        lines.extend(conclusion.at.map(|spot| format!("at {} ({})", spot.name, spot.sk)));
        let points = conclusion.points.into_iter();
        lines.extend(points.map(|p| {
            format!(
                "- {} [{}] {}",
                p.text,
                p.claim.unwrap_or_default(),
                p.source.unwrap_or_default()
            )
            .trim_end()
            .to_owned()
        }));
        lines.extend(conclusion.next.into_iter().map(|next| format!("> {next}")));
        lines.join("\n")
    }

    #[test]
    fn a_failure_says_what_where_and_what_next() {
        let error = "McpConnection: aws-diagnostics - the server ended";
        let told = of(Status::Failed, Some(error), Some("mcp_connection"), &Value::Null);
        insta::assert_snapshot!(told, @r"
        McpConnection: aws-diagnostics - the server ended
        at step 2, look (STEP#00000002)
        > Try the tool server by itself: `daybook tools aws-diagnostics` says why it does not start or answer.
        > Its command or address stands in the file that DAYBOOK_MCP_SERVERS names, else it is the one that ships.
        > Then trigger the session again: this one has its verdict, and a verdict is final.
        ");
        let told =
            of(Status::Cancelled, Some("Cancelled: CancelRequested - no"), None, &Value::Null);
        assert!(
            told.ends_with("> Somebody asked for the end. Trigger it again if it is still wanted.")
        );
        assert!(
            of(Status::Failed, None, None, &Value::Null).starts_with("The session ended without")
        );
        assert_eq!(of(Status::Running, None, None, &json!({"root_cause": "x"})), "nothing");
    }

    #[test]
    fn a_diagnosis_leads_with_its_cause_and_ends_with_its_plan() {
        let result = json!({
            "root_cause": "The permission is gone.",
            "evidence": [
                {"tool": "iam", "field": "a.b", "value": "[]", "interpretation": "nothing allows it"},
                {"tool": "logs", "field": "error", "value": "", "interpretation": "there are no logs"},
            ],
            "remediation_plan": [{"action": "Put it back", "details": "add s3:GetObject",
                "risk_level": "low", "requires_approval": true}],
        });
        insta::assert_snapshot!(of(Status::Succeeded, None, None, &result), @r"
        The permission is gone.
        - nothing allows it [/evidence/0] iam a.b = []
        - there are no logs [/evidence/1] logs error
        > Put it back: add s3:GetObject (low risk, needs approval)
        ");
    }

    #[test]
    fn other_results_lead_with_what_their_agents_found() {
        let fraud = json!({
            "score": 0.817, "severity": "HIGH",
            "hypotheses": ["account_takeover: The card was copied."],
            "findings": [{"pattern": "travel", "explanation": "1859 km/h"}],
            "recommendations": [{"action": "ask_cardholder", "priority": "immediate", "reason": "likely"}],
        });
        let network = json!({
            "device_name": "pe1", "summary": ["pe1: one thing is out of order.", "VRF ACME"],
            "findings": [{"function": "get_vpn_info", "finding": "VRF ACME: import route target 65000:999 matches no route"}],
        });
        let checkup = json!({"checks": [{"name": "journal", "ok": true}, {"name": "tools", "ok": false, "detail": "no answer"}]});
        let told =
            [fraud, network, checkup].map(|result| of(Status::Succeeded, None, None, &result));
        insta::assert_snapshot!(told.join("\n\n"), @r"
        81 % likely a fraud, severity high: The card was copied.
        - 1859 km/h [/findings/0]
        > ask cardholder (immediate): likely

        pe1: one thing is out of order.
        - VRF ACME: import route target 65000:999 matches no route [/findings/0]
        > Import a route target that another site of the customer exports; the record has both lists.
        > Then ask the same question again: nothing may be left.

        1 of 2 checks of this deployment failed.
        - tools: no answer []
        > Mend what the failed checks name, then run `daybook trigger` again.
        ");
        assert_eq!(of(Status::Succeeded, None, None, &json!({"reply": "hello"})), "nothing");
    }

    #[test]
    fn a_conversation_that_nobody_went_on_with_says_so() {
        let told =
            |reply| of(Status::Succeeded, None, None, &json!({"reply": reply, "ended": "idle"}));
        insta::assert_snapshot!(told("three models"), @r"
        Nobody answered in time, and so the conversation ended by itself.
        - its last reply: three models []
        > Begin another one if it is still wanted: `daybook chat`.
        ");
        assert!(!told("").contains("reply"));
    }

    #[test]
    fn what_ran_out_of_time_went_wrong_where_it_waited() {
        let refused = json!({"error": "no"});
        let ask = StepBody::Ask {
            effect: effect("confirm", EffectKind::Ask, 0),
            expires_at: at(9_999),
            payload: json!({"question": {"prompt": "Go?", "choices": ["approve"]}}),
        };
        let looked = outcome("look", EffectKind::Tools, 12, Usage::default(), refused);
        let mut steps = vec![step(10, 1, claim(0)), step(20, 2, looked), step(30, 3, ask)];
        let place = |steps: &[Step<Value>]| {
            let waterfall =
                Waterfall::of(&[], steps.iter().map(|step| (step, None)), false, at(90));
            spot(&waterfall, Status::TimedOut).map(|spot| spot.name)
        };
        steps.push(step(40, 4, end(Ending::TimedOut)));
        assert_eq!(place(&steps).unwrap(), "while it waited at step 3, confirm");
        steps.remove(2);
        assert_eq!(place(&steps).unwrap(), "after step 2, look");
        steps.remove(1);
        assert_eq!(place(&steps), None);
    }
}
