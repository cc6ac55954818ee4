//! Parses a person's answer to a question: a key, a line, or edited arguments.
//!
//! An answer carries the digest of the question that was shown. A line from a terminal was typed after the
//! question appeared. Any other line may have been written before, so it approves nothing unless it names
//! the digest: `y DIGEST`, `e DIGEST JSON`.

use graph::question::{APPROVING_TEXTS, Answer, Decision, Question};
use serde_json::{Value, json};
use stack::view::OpenQuestion;

use crate::render::arguments::is_cut;

/// Characters of a digest that are shown, and the fewest that name it.
pub const DIGEST_CHARS: usize = 12;

/// Keys for the decisions that a question may offer.
const KEYS: [(Decision, u8, &str); 3] = [
    (Decision::Approve, b'y', "y approve"),
    (Decision::Reject, b'n', "n reject"),
    (Decision::Edit, b'e', "e edit"),
];

/// The key that shows the question whole, if it is cut.
const VIEW: (u8, &str) = (b'v', "v view all");

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A person typed it after the question was shown.
    Terminal,
    /// It may be older than the question.
    Pipe,
}

/// A parsed line.
#[derive(Debug, PartialEq)]
pub enum Meaning {
    Answer(Box<Answer>),
    /// Edited arguments follow.
    Edit,
    /// Show the whole question.
    View,
}

/// The keys for the decisions that the question offers, and the key that shows it whole.
pub fn keys(question: &OpenQuestion) -> Vec<u8> {
    let offered = KEYS.iter().filter(|(decision, ..)| question.choices.contains(decision));
    let keys: Vec<u8> = offered.map(|(_, key, _)| *key).collect();
    if is_cut(question) { [&keys[..], &[VIEW.0]].concat() } else { keys }
}

/// What the keys do, for a prompt.
pub fn offers(question: &OpenQuestion) -> Vec<&'static str> {
    let offered = KEYS.iter().filter(|(decision, ..)| question.choices.contains(decision));
    let offers: Vec<&str> = offered.map(|(.., label)| *label).collect();
    if is_cut(question) { [&offers[..], &[VIEW.1]].concat() } else { offers }
}

/// The prompt for a line, with what the question offers and nothing else.
pub fn prompt(question: &OpenQuestion) -> String {
    let mut offers = offers(question);
    if question.choices.contains(&Decision::Say) {
        offers.push("or words");
    } else if question.choices.contains(&Decision::Reject) {
        offers.push("or words to reject");
    }
    format!("{}: ", offers.join(", "))
}

/// The options of `daybook answer` that the question offers.
pub fn options(question: &OpenQuestion) -> String {
    let option = |choice: &Decision| match choice {
        Decision::Approve => Some(format!("--approve --digest {}", short(question))),
        Decision::Reject => Some("--reject".to_owned()),
        Decision::Edit => Some(format!("--edit FILE --digest {}", short(question))),
        Decision::Say => Some("--say TEXT".to_owned()),
        Decision::Expired => None,
    };
    let all: Vec<_> = question.choices.iter().filter_map(option).collect();
    all.join(" | ")
}

/// The shown part of the question's digest.
pub fn short(question: &OpenQuestion) -> &str {
    question.digest.get(..DIGEST_CHARS).unwrap_or(&question.digest)
}

/// Whether a text names the digest of the question.
///
/// # Errors
/// It names another one; the message is for the person.
pub fn names(question: &OpenQuestion, text: &str) -> Result<bool, String> {
    let is_digest = text.len() >= DIGEST_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest && !question.digest.starts_with(&text.to_ascii_lowercase()) {
        return Err(format!(
            "{text} is not the digest of the open question, which is {}; read it again",
            short(question)
        ));
    }
    Ok(is_digest)
}

/// Parses a line. For a question about a call: `y [DIGEST]`, `n [REASON]`, `e [DIGEST] [JSON]` or `v`;
/// any other text is an answer in words.
///
/// # Errors
/// When the arguments are invalid, or the line may be older than the question; the message is for the
/// person.
pub fn meaning(question: &OpenQuestion, line: &str, source: Source) -> Result<Meaning, String> {
    let line = line.trim();
    let offers = |decision| question.choices.contains(&decision);
    let (key, rest) = line.split_once([' ', ':', ',']).unwrap_or((line, ""));
    let rest = rest.trim();
    if offers(Decision::Edit) && matches!(key, "e" | "edit") {
        let (digest, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_named = names(question, digest)?;
        require(question, source, is_named)?;
        let arguments = if is_named { arguments.trim() } else { rest };
        return if arguments.is_empty() { Ok(Meaning::Edit) } else { edited(question, arguments) };
    }
    if matches!(line, "v" | "view") && is_cut(question) {
        return Ok(Meaning::View);
    }
    if offers(Decision::Reject) && matches!(key, "n" | "no") && !rest.is_empty() {
        let reason = Some(rest.to_owned());
        return Ok(answer(question, Answer { reason, ..Answer::new(0, Decision::Reject) }));
    }
    let approves = APPROVING_TEXTS.contains(&key.to_ascii_lowercase().as_str());
    if offers(Decision::Approve) && approves && names(question, rest)? {
        return Ok(answer(question, Answer::new(0, Decision::Approve)));
    }
    let offered =
        Question { choices: question.choices.clone(), ..Question::open(&question.prompt) };
    let read = offered.read(0, line);
    require(question, source, read.decision != Decision::Approve)?;
    Ok(answer(question, read))
}

/// Refuses an approval that may be older than the question.
fn require(question: &OpenQuestion, source: Source, is_safe: bool) -> Result<(), String> {
    if is_safe || source == Source::Terminal {
        return Ok(());
    }
    let digest = short(question);
    Err(format!(
        "input is not a terminal, so an approval must name the question that it approves: \
         y {digest}, or e {digest} and the arguments"
    ))
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
    let edit = Answer { arguments: Some(all), ..Answer::new(0, Decision::Edit) };
    Ok(answer(question, edit))
}

fn answer(question: &OpenQuestion, answer: Answer) -> Meaning {
    Meaning::Answer(Box::new(to(question, answer)))
}

/// An answer to this question as it was shown.
pub fn to(question: &OpenQuestion, answer: Answer) -> Answer {
    let digest = Some(question.digest.clone());
    Answer { question_id: question.question_id, digest, ..answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "3f2a9c1b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";

    fn question(choices: Vec<Decision>) -> OpenQuestion {
        OpenQuestion {
            question_id: 7,
            digest: DIGEST.to_owned(),
            prompt: "Run?".to_owned(),
            server: None,
            tool: Some("set".to_owned()),
            tool_schema: None,
            arguments: Some(json!({ "id": "s", "value": 250 })),
            arguments_text: None,
            justification: None,
            choices,
            expires_at: journal::clock::Stamp::default(),
            origins: None,
            origins_computed: false,
        }
    }

    fn about_a_call() -> OpenQuestion {
        question(vec![Decision::Approve, Decision::Reject, Decision::Edit, Decision::Say])
    }

    #[test]
    fn keys_decide_and_other_text_is_words() {
        let about_call = about_a_call();
        let answer = |line: &str| match meaning(&about_call, line, Source::Terminal) {
            Ok(Meaning::Answer(answer)) => json!(answer),
            other => json!(format!("{other:?}")),
        };
        let edit = json!({ "decision": "edit", "arguments": { "id": "s", "value": 80 } });
        for (line, mut expected) in [
            ("y", json!({ "decision": "approve" })),
            (" yes ", json!({ "decision": "approve" })),
            ("y 3f2a9c1b5d6e", json!({ "decision": "approve" })),
            ("n", json!({ "decision": "reject" })),
            ("n too much", json!({ "decision": "reject", "reason": "too much" })),
            ("no, too much", json!({ "decision": "reject", "reason": "too much" })),
            ("yes please", json!({ "decision": "say", "text": "yes please" })),
            ("next week", json!({ "decision": "say", "text": "next week" })),
            (r#"e {"value": 80}"#, edit.clone()),
            (r#"e 3F2A9C1B5D6E {"value": 80}"#, edit),
        ] {
            expected["question_id"] = json!(7);
            expected["digest"] = json!(DIGEST);
            assert_eq!(answer(line), expected, "{line}");
        }
        assert_eq!(answer("e"), json!("Ok(Edit)"));
        let long = json!({ "text": "x".repeat(5_000) });
        let cut = OpenQuestion { arguments: Some(long), ..about_a_call() };
        assert_eq!(meaning(&cut, "v", Source::Terminal), Ok(Meaning::View));
        assert!(prompt(&cut).contains("v view all"));
        let refused = |line| meaning(&about_call, line, Source::Terminal).unwrap_err();
        assert!(refused("e 80").contains("JSON object"));
        assert!(refused("e {").contains("invalid arguments"));
        assert!(refused("y aaaaaaaaaaaa").contains("not the digest"));
        let words = question(vec![Decision::Say]);
        let said = meaning(&words, "e", Source::Terminal);
        assert!(matches!(said, Ok(Meaning::Answer(answer)) if answer.decision == Decision::Say));
    }

    #[test]
    fn a_line_from_a_pipe_approves_only_what_it_names() {
        let about_call = about_a_call();
        let decided = |line: &str| match meaning(&about_call, line, Source::Pipe) {
            Ok(Meaning::Answer(answer)) => Some(answer.decision),
            Ok(_) => None,
            Err(refusal) => {
                assert!(refusal.contains("3f2a9c1b5d6e"), "{line}: {refusal}");
                None
            }
        };
        for line in
            ["y", "yes", "approve", "Y", "y 3f2a", "e", r#"e {"value": 80}"#, "y aaaaaaaaaaaa"]
        {
            let decision = decided(line);
            assert!(matches!(decision, None | Some(Decision::Say)), "{line}: {decision:?}");
        }
        assert_eq!(decided("y 3f2a9c1b5d6e"), Some(Decision::Approve));
        assert_eq!(decided(r#"e 3f2a9c1b5d6e {"value": 80}"#), Some(Decision::Edit));
        assert_eq!(decided("no, too much"), Some(Decision::Reject));
    }

    #[test]
    fn a_prompt_lists_what_the_question_offers() {
        use Decision::{Approve, Edit, Reject, Say};
        for (choices, expected) in [
            (vec![Approve, Reject, Edit, Say], "y approve, n reject, e edit, or words: "),
            (vec![Approve, Reject], "y approve, n reject, or words to reject: "),
            (vec![Approve, Reject, Say], "y approve, n reject, or words: "),
            (vec![Say], "or words: "),
        ] {
            assert_eq!(prompt(&question(choices.clone())), expected, "{choices:?}");
        }
        let options = options(&question(vec![Approve, Reject]));
        assert_eq!(options, "--approve --digest 3f2a9c1b5d6e | --reject");
    }
}
