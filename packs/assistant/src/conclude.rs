//! The conclusion of a thread: its last reply, why it ended, and the calls made.

use graph::conclusion::read::{list, text};
use graph::conclusion::{Action, Cell, Conclusion, Fact, Note, Table, Tone, Verdict};
use graph::presentation::Presentation;
use serde_json::Value;

pub const PRESENTATION: Presentation = Presentation { title, conclude, ..Presentation::DEFAULT };

/// Longest arguments of a call in the table, in characters.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// The first line of the opening message.
fn title(input: &Value) -> Option<String> {
    text(input, "message")?.lines().next().map(str::to_owned)
}

/// `None` if the result is not a thread. The verdict is about the last request of the thread, and about those
/// before it that were not carried out.
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
    conclusion.verdict = Some(match (text(result, "ended"), text(result, "last_turn")) {
        (Some("idle"), _) => Verdict::new("not answered", Tone::Warn),
        (_, Some("done")) => Verdict::new("done", Tone::Good),
        (_, Some("failed")) => Verdict::new("failed", Tone::Bad),
        _ => Verdict::new("not done", Tone::Warn),
    });
    conclusion.facts.extend(why.map(|why| Fact::new("ended", why)));
    conclusion.facts.extend(series(result));
    let mut table = Table::new("Calls", &["Tool", "Arguments", "Outcome"]);
    table.rows = list(result, "intermediate_steps").iter().map(row).collect();
    if !table.rows.is_empty() {
        conclusion.tables.push(table);
    }
    Some(conclusion)
}

/// Most points of the last time series that was read, as facts with a bar.
const POINTS_MAX: usize = 25;

/// The concentrations that were read last, as bars.
fn series(result: &Value) -> Vec<Fact> {
    let steps = list(result, "intermediate_steps").iter().rev();
    let Some(series) = steps.filter_map(|step| step.pointer("/result/series")).next() else {
        return Vec::new();
    };
    let numbers =
        |name: &str| -> Vec<f64> { list(series, name).iter().filter_map(Value::as_f64).collect() };
    let (times, values) = (numbers("times"), numbers("concentrations"));
    let top = values.iter().copied().fold(0.0, f64::max);
    if values.len() < 3 || times.len() != values.len() || top <= 0.0 {
        return Vec::new();
    }
    let every = values.len().div_ceil(POINTS_MAX);
    let points = times.iter().zip(&values).step_by(every);
    let fact = |(time, value): (&f64, &f64)| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let share = (value / top * 1_000.0).clamp(0.0, 1_000.0) as u16;
        Fact {
            share_permille: Some(share),
            ..Fact::new(&format!("{time:.1} h"), format!("{value:.3} mg/L"))
        }
    };
    points.map(fact).collect()
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
        assert_eq!(found.verdict, Some(Verdict::new("not answered", Tone::Warn)));
    }

    #[test]
    fn only_a_request_that_was_done_is_green() {
        for (last_turn, tone) in [
            (json!("done"), Tone::Good),
            (json!("failed"), Tone::Bad),
            (json!("open"), Tone::Warn),
            (Value::Null, Tone::Warn),
        ] {
            let found = conclude(&json!({"reply": "x", "ended": "asked", "last_turn": last_turn}));
            assert_eq!(found.unwrap().verdict.unwrap().tone, tone, "{last_turn}");
        }
    }

    #[test]
    fn a_time_series_is_drawn_as_bars() {
        let series = json!({"times": [0.0, 1.0, 2.0], "concentrations": [0.0, 8.0, 4.0]});
        let found = conclude(&json!({
            "reply": "plot",
            "intermediate_steps": [{"tool": "get_results", "result": {"series": series}}],
        }));
        let shares: Vec<_> =
            found.unwrap().facts.iter().filter_map(|fact| fact.share_permille).collect();
        assert_eq!(shares, [0, 1_000, 500]);
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
        let verdict = Verdict::new("not done", Tone::Warn);
        assert_eq!((found.summary.as_str(), &found.verdict), ("done", &Some(verdict)));
        let [_, failed] = &found.tables[0].rows[..] else { panic!("{found:#?}") };
        assert_eq!((failed[2].text.as_str(), failed[2].tone), ("✗ no such dose", Tone::Bad));
        assert_eq!(conclude(&json!({"checks": []})), None);
        assert_eq!(title(&json!({"message": "load a\nthen b"})).as_deref(), Some("load a"));
    }
}
