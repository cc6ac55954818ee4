//! The conclusion of a thread: its last reply, why it ended, and the calls made.

use graph::conclusion::read::{list, text};
use graph::conclusion::{Action, Cell, Conclusion, Fact, Note, Table, Tone};
use graph::presentation::Presentation;
use serde_json::Value;

pub const PRESENTATION: Presentation = Presentation { title, conclude, ..Presentation::DEFAULT };

/// Longest arguments of a call in the table, in characters.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// The first line of the opening message.
fn title(input: &Value) -> Option<String> {
    text(input, "message")?.lines().next().map(str::to_owned)
}

/// `None` if the result is not a thread. Threads have no verdict.
fn conclude(result: &Value) -> Option<Conclusion> {
    let reply = text(result, "reply")?;
    let mut conclusion = Conclusion { title: "Conversation", ..Conclusion::default() };
    let why = match text(result, "ended") {
        Some("idle") => {
            "No answer in time: the conversation ended.".clone_into(&mut conclusion.summary);
            if !reply.is_empty() {
                let lines = reply.lines().map(str::to_owned).collect();
                let title = "Last reply".to_owned();
                conclusion.notes.push(Note { title, lines, ..Note::default() });
            }
            let again = "Start a new one with `daybook chat`.";
            conclusion.actions.push(Action::new(again));
            Some("no answer in time")
        }
        other => {
            reply.clone_into(&mut conclusion.summary);
            match other {
                Some("asked") => Some("ended by the person"),
                Some("full") => Some("the limit of questions was reached"),
                other => other,
            }
        }
    };
    conclusion.facts.extend(why.map(|why| Fact::new("ended", why)));
    let mut table = Table::new("Calls", &["Tool", "Arguments", "Outcome"]);
    table.rows = list(result, "intermediate_steps").iter().map(row).collect();
    if !table.rows.is_empty() {
        conclusion.tables.push(table);
    }
    Some(conclusion)
}

fn row(step: &Value) -> Vec<Cell> {
    let outcome = match text(step, "error") {
        Some(error) => Cell::from(format!("✗ {error}")).toned(Tone::Bad),
        None => Cell::from("✓"),
    };
    let arguments = step.get("arguments").map(Value::to_string).unwrap_or_default();
    vec![
        text(step, "tool").unwrap_or("?").into(),
        arguments.chars().take(ARGUMENTS_CHARS_MAX).collect::<String>().into(),
        outcome,
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_without_an_answer_in_time_says_so() {
        let idle = |reply| conclude(&json!({"reply": reply, "ended": "idle"})).unwrap();
        let found = idle("three models");
        assert!(found.summary.starts_with("No answer in time"));
        assert_eq!(found.notes[0].lines, ["three models"]);
        assert!(found.actions[0].title.contains("`daybook chat`"));
        assert!(idle("").notes.is_empty());
    }

    #[test]
    fn a_thread_shows_its_last_reply_and_its_calls() {
        let found = conclude(&json!({
            "reply": "done", "ended": "asked",
            "intermediate_steps": [
                {"tool": "load_simulation", "arguments": {"path": "a"}, "result": {}, "error": null},
                {"tool": "set_dose", "arguments": {}, "result": null, "error": "no such dose"},
            ],
        }))
        .unwrap();
        assert_eq!((found.summary.as_str(), &found.verdict), ("done", &None));
        let [_, failed] = &found.tables[0].rows[..] else { panic!("{found:#?}") };
        assert_eq!((failed[2].text.as_str(), failed[2].tone), ("✗ no such dose", Tone::Bad));
        assert_eq!(conclude(&json!({"checks": []})), None);
        assert_eq!(title(&json!({"message": "load a\nthen b"})).as_deref(), Some("load a"));
    }
}
