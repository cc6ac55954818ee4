//! What a person means at a question: by a key, in a line, with other arguments.

use graph::question::{Answer, Decision, Question};
use local::view::OpenQuestion;
use serde_json::{Value, json};

/// What decides with one key, where it is offered.
const KEYS: [(Decision, u8); 3] =
    [(Decision::Approve, b'y'), (Decision::Reject, b'n'), (Decision::Edit, b'e')];

/// What a person does at a question.
#[derive(Debug, PartialEq)]
pub enum Deed {
    /// Answer it so.
    Answer(Box<Answer>),
    /// Say other arguments next.
    Edit,
}

/// The keys that decide a question by themselves.
pub fn keys(question: &OpenQuestion) -> Vec<u8> {
    let offered = KEYS.iter().filter(|(decision, _)| question.choices.contains(decision));
    offered.map(|(_, key)| *key).collect()
}

/// What a line means at a question: at one about a call `y`, `n` with or without a reason, `e` with or
/// without the arguments; anything else is words.
///
/// # Errors
/// When the arguments are none, in words for the person.
pub fn deed(question: &OpenQuestion, line: &str) -> Result<Deed, String> {
    let line = line.trim();
    let id = question.question_id;
    let offers = |decision| question.choices.contains(&decision);
    let (key, rest) = line.split_once([' ', ':', ',']).unwrap_or((line, ""));
    if offers(Decision::Edit) && matches!(key, "e" | "edit") {
        return if rest.trim().is_empty() { Ok(Deed::Edit) } else { edited(question, rest) };
    }
    if offers(Decision::Reject) && matches!(key, "n" | "no") && !rest.trim().is_empty() {
        let reason = Some(rest.trim().to_owned());
        let answer = Answer { reason, ..Answer::new(id, Decision::Reject) };
        return Ok(Deed::Answer(Box::new(answer)));
    }
    let offered =
        Question { choices: question.choices.clone(), ..Question::open(&question.prompt) };
    Ok(Deed::Answer(Box::new(offered.read(id, line))))
}

/// Approval with other arguments, as JSON text. What it does not say stays as it was.
///
/// # Errors
/// As [`deed`].
pub fn edited(question: &OpenQuestion, text: &str) -> Result<Deed, String> {
    let arguments: Value = serde_json::from_str(text.trim())
        .map_err(|error| format!("these are no arguments: {error}"))?;
    let fields = arguments.as_object().ok_or("these are no arguments: expected a JSON object")?;
    let mut all = question.arguments.clone().unwrap_or_else(|| json!({}));
    if let Some(known) = all.as_object_mut() {
        known.extend(fields.clone());
    }
    let answer = Answer::new(question.question_id, Decision::Edit);
    Ok(Deed::Answer(Box::new(Answer { arguments: Some(all), ..answer })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(choices: Vec<Decision>) -> OpenQuestion {
        OpenQuestion {
            question_id: 7,
            prompt: "Run?".to_owned(),
            tool: Some("set".to_owned()),
            arguments: Some(json!({ "id": "s", "value": 250 })),
            justification: None,
            choices,
            expires_at: journal::clock::Stamp::default(),
        }
    }

    #[test]
    fn keys_decide_and_all_else_is_words() {
        let all = vec![Decision::Approve, Decision::Reject, Decision::Edit, Decision::Say];
        let about_call = question(all);
        let answer = |line: &str| match deed(&about_call, line) {
            Ok(Deed::Answer(answer)) => json!(answer),
            other => json!(format!("{other:?}")),
        };
        for (line, expected) in [
            ("y", json!({ "question_id": 7, "decision": "approve" })),
            (" yes ", json!({ "question_id": 7, "decision": "approve" })),
            ("n", json!({ "question_id": 7, "decision": "reject" })),
            ("n too much", json!({ "question_id": 7, "decision": "reject", "reason": "too much" })),
            (
                "no, too much",
                json!({ "question_id": 7, "decision": "reject", "reason": "too much" }),
            ),
            ("yes please", json!({ "question_id": 7, "decision": "say", "text": "yes please" })),
            ("next week", json!({ "question_id": 7, "decision": "say", "text": "next week" })),
            (
                r#"e {"value": 80}"#,
                json!({ "question_id": 7, "decision": "edit", "arguments": { "id": "s", "value": 80 } }),
            ),
            ("e", json!("Ok(Edit)")),
        ] {
            assert_eq!(answer(line), expected, "{line}");
        }
        assert!(deed(&about_call, "e 80").unwrap_err().contains("JSON object"));
        assert!(deed(&about_call, "e {").unwrap_err().contains("no arguments"));
        let words = question(vec![Decision::Say]);
        assert!(
            matches!(deed(&words, "e"), Ok(Deed::Answer(answer)) if answer.decision == Decision::Say)
        );
    }
}
