use journal::clock::Stamp;
use journal::error_message::ErrorMessage;
use journal::event::{Event, EventStatus, Writer};
use journal::step::{EffectKind, Ending, Step, StepBody, Usage};
use serde_json::json;

use super::list::List;
use super::session::{JSON_BYTES_MAX, Part, ROWS_MAX, Session};
use super::*;
use crate::conclusion::{Conclusion, Known};
use crate::evidence::Citation;
use crate::testing::{at, claim, effect, event, id, outcome, step};
use crate::waterfall::Waterfall;

const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&";

/// A page with an element a line, for people.
fn lines(page: &str) -> String {
    page.replace("><", ">\n<")
}

fn facts<'a>(id: &'a SessionId, status: Status) -> Facts<'a> {
    Facts {
        id,
        status,
        agent: Some("incident"),
        began: Some(at(0)),
        took_ms: Some(1_234),
        steps: 4,
        tokens: 0,
        usd: 0.0,
        error: None,
        category: None,
        result: None,
        question: None,
        asleep_until: None,
    }
}

fn question<'a>(said: &'a str, arguments: &'a Value, choices: &'a [Decision]) -> Question<'a> {
    let expires_at = at(9_999);
    let (prompt, tool, justification) = (said, Some(said), Some(said));
    Question { prompt, tool, arguments: Some(arguments), justification, choices, expires_at }
}

/// A session whose tool's error ended it.
fn failing(said: &str) -> (Vec<Event>, Vec<Step<Value>>) {
    let error = Some(ErrorMessage::new("ToolError", "AccessDenied", said));
    let end = StepBody::End {
        ending: Ending::Failed,
        error: error.clone(),
        category: Some("payload".to_owned()),
        payload: json!({ "said": said }),
    };
    let mut failed = event(1_234, EventStatus::SessionFailed, Writer::Poller);
    failed.error = error;
    failed.wall = Some(at(-60_000));
    let events = vec![event(0, EventStatus::SessionInitiated, Writer::StateMachine), failed];
    let called = outcome(said, EffectKind::Tools, 100, Usage::default(), json!({ "error": said }));
    let ask = StepBody::Ask {
        effect: effect(said, EffectKind::Ask, 0),
        expires_at: at(9_999),
        payload: json!({ "question": { "prompt": said, "choices": ["approve"] } }),
    };
    let steps =
        vec![step(50, 1, claim(0)), step(400, 2, called), step(500, 3, ask), step(1_200, 4, end)];
    (events, steps)
}

fn drawn(events: &[Event], steps: &[Step<Value>]) -> Waterfall {
    Waterfall::of(events, steps.iter().map(|step| (step, None)), false, at(2_000))
}

/// The page of a session that failed with these words, which everything in it repeats.
fn page_of(said: &str) -> String {
    let (events, steps) = failing(said);
    let waterfall = drawn(&events, &steps);
    let id = id();
    let result = json!({ "said": said });
    let known = Known {
        status: Status::Failed,
        agent: Some("incident"),
        error: Some(said),
        category: Some("payload"),
        result: Some(&result),
        waterfall: &waterfall,
    };
    let mut conclusion = Conclusion::of(&known).unwrap();
    conclusion.points.push(crate::conclusion::Point {
        text: said.to_owned(),
        source: Some(said.to_owned()),
        claim: Some("/evidence/0".to_owned()),
    });
    conclusion.next.push(said.to_owned());
    let cited = Citation { claim: "/evidence/0".to_owned(), seq: 2, pointer: "/error".to_owned() };
    let arguments = json!({ said: said });
    let page = Session {
        facts: Facts {
            agent: Some(said),
            error: Some(said),
            category: Some(said),
            result: Some(&result),
            question: Some(question(said, &arguments, &[Decision::Approve, Decision::Say])),
            ..facts(&id, Status::Failed)
        },
        conclusion: Some(&conclusion),
        citations: &[cited],
        waterfall: &waterfall,
        part: Part::of(1, waterfall.rows.len()),
        records: waterfall.rows.iter().map(|row| json!({ "sk": row.sk, "said": said })).collect(),
        command: "daybook --target aws",
    };
    page.page()
}

#[test]
fn a_failed_session_says_what_where_and_what_to_do_next_and_has_every_record() {
    insta::assert_snapshot!(lines(&page_of("no such bucket")));
}

#[test]
fn a_list_is_a_table_behind_a_form_and_goes_on_with_the_same_filters() {
    let id = id();
    let result = json!({ "reply": "done" });
    let sessions = vec![
        Facts { question: Some(question("Go on?", &result, &[])), ..facts(&id, Status::Waiting) },
        Facts { error: Some("ToolError: x - no"), ..facts(&id, Status::TimedOut) },
        Facts { result: Some(&result), tokens: 1_200, usd: 0.01, ..facts(&id, Status::Succeeded) },
        Facts { asleep_until: Some(at(5_000)), agent: None, ..facts(&id, Status::Waiting) },
    ];
    let query = "status=WAITING,FAILED&agent=incident&text=a+%26+b&since=&after=x&theme=dark";
    let list = List { query, sessions, searched: 1_500, more: Some("2026.5/<x>") };
    insta::assert_snapshot!(lines(&list.page()));
}

#[test]
fn a_list_of_nothing_says_how_to_begin_or_that_nothing_fits() {
    let nothing = |query| List { query, sessions: Vec::new(), searched: 0, more: None }.page();
    assert!(nothing("").contains("daybook trigger --agent checkup"));
    assert!(nothing("text=x").contains("None of these sessions fits."));
}

#[test]
fn what_others_wrote_is_text_wherever_it_stands() {
    let id = id();
    let arguments = json!({ MARKUP: MARKUP });
    let session = Facts {
        agent: Some(MARKUP),
        question: Some(question(MARKUP, &arguments, &[])),
        ..facts(&id, Status::Waiting)
    };
    let told = Facts { error: Some(MARKUP), ..facts(&id, Status::Failed) };
    let brought = json!({ "root_cause": MARKUP });
    let found = Facts { result: Some(&brought), ..facts(&id, Status::Succeeded) };
    let query = format!("text={0}&status={0}&agent={0}&since={0}", MARKUP.replace('&', "%26"));
    let sessions = vec![session, told, found];
    let list = List { query: &query, sessions, searched: 3, more: Some(MARKUP) };
    let pages = [list.page(), page_of(MARKUP), refusal(MARKUP), token_form(Some(MARKUP))];
    for (page, times) in pages.iter().zip([9, 20, 1, 1]) {
        for tag in ["<script", "<img"] {
            assert!(!page.contains(tag), "{tag} in {page}");
        }
        let shown = page.matches("&lt;script&gt;alert(1)&lt;/script&gt;").count();
        assert!(shown >= times, "it is shown {shown} times only\n{}", lines(page));
    }
    // Nothing on a page needs what its policy forbids.
    for page in &pages {
        for forbidden in [" style=", "<style", "javascript:", " on"] {
            let own = page.replace("onerror=alert", "").replace("ends on", "");
            let tags = own.split('<').filter_map(|rest| rest.split_once('>'));
            assert!(tags.clone().all(|(tag, _)| !tag.contains(forbidden)), "{forbidden}");
        }
    }
}

/// A session of 10,000 records of which each is as large as one on a page may be.
#[test]
fn a_session_of_ten_thousand_records_comes_in_pages_of_bounded_size() {
    const RECORDS: u32 = 10_000;
    /// A quote of a payload takes six bytes on the page; what stands around a record fits in a kilobyte.
    const PAGE_BYTES_MAX: usize = ROWS_MAX * (6 * JSON_BYTES_MAX + 1_000);
    let steps: Vec<_> = (1..=RECORDS)
        .map(|n| {
            step(i64::from(n), n, outcome("do", EffectKind::Tools, 0, Usage::default(), json!({})))
        })
        .collect();
    let waterfall = drawn(&[], &steps);
    let id = id();
    let rows = waterfall.rows.len();
    let page = |number| {
        let part = Part::of(number, rows);
        // As large as one may stand on the page, and one byte larger.
        let records = part.range().map(|row| json!("\"".repeat(JSON_BYTES_MAX / 2 - 1 + row % 2)));
        Session {
            facts: facts(&id, Status::Succeeded),
            conclusion: None,
            citations: &[],
            waterfall: &waterfall,
            part,
            records: records.collect(),
            command: "daybook",
        }
        .page()
    };
    for (number, is_last) in [(1, false), (2, false), (100, true)] {
        let page = page(number);
        assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
        assert_eq!(page.matches("all of it as JSON").count(), ROWS_MAX / 2);
        assert_eq!(page.contains(">Next<"), !is_last);
    }
    let parts = (1..=100).map(|number| Part::of(number, rows).range());
    assert_eq!(parts.flatten().collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
    // What is none of its numbers is the nearest one.
    for (asked, first) in [(0, 0), (101, 9_900), (usize::MAX, 9_900)] {
        assert_eq!(Part::of(asked, 10_000).range().start, first);
    }
    assert_eq!(Part::of(1, 0).range(), 0..0);
}

#[test]
fn a_link_to_a_record_leads_to_the_page_that_has_it() {
    let steps: Vec<_> = (1..=450)
        .map(|n| {
            step(i64::from(n), n, outcome("do", EffectKind::Tools, 0, Usage::default(), json!({})))
        })
        .collect();
    let waterfall = drawn(&[], &steps);
    let point = crate::conclusion::Point {
        text: "x".to_owned(),
        source: None,
        claim: Some("/a".to_owned()),
    };
    let conclusion =
        Conclusion { what: "x".to_owned(), points: vec![point], ..Conclusion::default() };
    let id = id();
    let page = Session {
        facts: facts(&id, Status::Succeeded),
        conclusion: Some(&conclusion),
        citations: &[Citation { claim: "/a".to_owned(), seq: 401, pointer: String::new() }],
        waterfall: &waterfall,
        part: Part::of(1, 450),
        records: vec![json!(null); ROWS_MAX],
        command: "daybook",
    };
    let to = format!("/plain/sessions/{}?part=5#record-401", id.as_str());
    assert!(page.page().contains(&format!("href=\"{to}\"")));
    let there = Session { part: Part::of(5, 450), records: vec![json!(null); 50], ..page };
    assert!(there.page().contains("id=\"record-401\""));
}

#[test]
fn a_moment_is_told_to_the_second_and_exactly() {
    let at = Stamp::parse("2026-11-22T08:00:01.5Z").unwrap();
    let expected =
        "<p><time datetime=\"2026-11-22T08:00:01.500000000Z\">2026-11-22 08:00:01 UTC</time></p>";
    assert!(el("p", &[], [when(at)]).into_page().contains(expected));
}
