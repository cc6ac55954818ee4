//! Parses a person's answer to a question: a key, a line, or edited arguments.

use graph::question::{Answer, Decision, Question};
use serde_json::{Value, json};
use stack::view::OpenQuestion;

/// Keys for the decisions that a question may offer.
const KEYS: [(Decision, u8); 3] =
    [(Decision::Approve, b'y'), (Decision::Reject, b'n'), (Decision::Edit, b'e')];

/// A parsed line.
#[derive(Debug, PartialEq)]
pub enum Meaning {
    Answer(Box<Answer>),
    /// Edited arguments follow.
    Edit,
}

/// The keys for the decisions that the question offers.
pub fn keys(question: &OpenQuestion) -> Vec<u8> {
    let offered = KEYS.iter().filter(|(decision, _)| question.choices.contains(decision));
    offered.map(|(_, key)| *key).collect()
}

/// Parses a line. For a question about a call: `y`, `n [REASON]` or `e [JSON]`; any other text is an
/// answer in words.
///
/// # Errors
/// When the arguments are invalid; the message is for the person.
pub fn meaning(question: &OpenQuestion, line: &str) -> Result<Meaning, String> {
    let line = line.trim();
    let id = question.question_id;
    let offers = |decision| question.choices.contains(&decision);
    let (key, rest) = line.split_once([' ', ':', ',']).unwrap_or((line, ""));
    if offers(Decision::Edit) && matches!(key, "e" | "edit") {
        return if rest.trim().is_empty() { Ok(Meaning::Edit) } else { edited(question, rest) };
    }
    if offers(Decision::Reject) && matches!(key, "n" | "no") && !rest.trim().is_empty() {
        let reason = Some(rest.trim().to_owned());
        let answer = Answer { reason, ..Answer::new(id, Decision::Reject) };
        return Ok(Meaning::Answer(Box::new(answer)));
    }
    let offered =
        Question { choices: question.choices.clone(), ..Question::open(&question.prompt) };
    Ok(Meaning::Answer(Box::new(offered.read(id, line))))
}

/// Approval with edited arguments, as JSON text. Fields that it leaves out keep their values.
///
/// # Errors
/// As [`meaning`].
pub fn edited(question: &OpenQuestion, text: &str) -> Result<Meaning, String> {
    let arguments: Value =
        serde_json::from_str(text.trim()).map_err(|error| format!("invalid arguments: {error}"))?;
    let fields = arguments.as_object().ok_or("invalid arguments: expected a JSON object")?;
    let mut all = question.arguments.clone().unwrap_or_else(|| json!({}));
    if let Some(known) = all.as_object_mut() {
        known.extend(fields.clone());
    }
    let answer = Answer::new(question.question_id, Decision::Edit);
    Ok(Meaning::Answer(Box::new(Answer { arguments: Some(all), ..answer })))
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
    fn keys_decide_and_other_text_is_words() {
        let all = vec![Decision::Approve, Decision::Reject, Decision::Edit, Decision::Say];
        let about_call = question(all);
        let answer = |line: &str| match meaning(&about_call, line) {
            Ok(Meaning::Answer(answer)) => json!(answer),
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
        assert!(meaning(&about_call, "e 80").unwrap_err().contains("JSON object"));
        assert!(meaning(&about_call, "e {").unwrap_err().contains("invalid arguments"));
        let words = question(vec![Decision::Say]);
        assert!(
            matches!(meaning(&words, "e"), Ok(Meaning::Answer(answer)) if answer.decision == Decision::Say)
        );
    }
}
