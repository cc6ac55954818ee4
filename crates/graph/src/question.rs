//! Questions to a person, and valid answers.

use journal::clock::Stamp;
use journal::item::Hash;
use journal::principal::Principal;
use journal::step::StepBody;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest;
use crate::effect::ToolCall;
use crate::schema::Schema;

/// The texts that approve, ignoring case and surrounding whitespace. No other text approves.
pub const APPROVING_TEXTS: [&str; 3] = ["yes", "y", "approve"];

pub const REJECTING_TEXTS: [&str; 3] = ["no", "n", "reject"];

/// Stands for the hash of a tool whose server could not be asked for it.
pub const SCHEMA_UNKNOWN: &str = "unknown";

/// A question to a person, or without choices a sleep.
///
/// In JSON `{"prompt", "server"?, "tool"?, "arguments"?, "arguments_schema"?, "tool_schema"?,
/// "justification"?, "choices"}`. Its digest ([`digest::question`]) covers all of that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The text, shown unchanged.
    pub prompt: String,
    /// The server of the tool in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// JSON schema for edited arguments; without one no edit is on offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_schema: Option<Value>,
    /// Hash of the tool as its server offered it when the question was asked, or [`SCHEMA_UNKNOWN`]. An
    /// approval covers this tool only. Questions of earlier versions have none, and cover any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_schema: Option<String>,
    /// Why the call is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The decisions on offer.
    pub choices: Vec<Decision>,
    /// When it expires; `None` for [`QUESTION_OPEN`](crate::next::QUESTION_OPEN) after it is asked.
    #[serde(skip)]
    pub expires_at: Option<Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Approves exactly this call.
    Approve,
    Reject,
    /// Approves with other arguments.
    Edit,
    /// Answers with text.
    Say,
    /// No answer in time. Never a person's choice.
    Expired,
}

/// An answer.
///
/// In JSON `{"question_id", "digest"?, "decision": "approve" | "reject" | "edit" | "say" | "expired",
/// "reason"?, "arguments"?, "text"?}`. An expiry is journaled as `{"decision": "expired"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the ask step.
    #[serde(default)]
    pub question_id: u32,
    /// Digest of the question that the person was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The arguments of [`Decision::Edit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The text of [`Decision::Say`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Number of the ask step.
    pub question_id: u32,
    pub question: Question,
    /// Digest of the journaled question.
    pub digest: Hash,
    pub expires_at: Stamp,
}

/// An answer was rejected. The question stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    #[error("question {given} is not open; the open one is {open}")]
    WrongQuestion { given: u32, open: u32 },
    #[error("the question {shown} was shown, but the open one is {open}; read it again")]
    OtherDigest { shown: String, open: Hash },
    #[error("the question does not offer `{0}`")]
    NotOffered(&'static str),
    #[error(
        "edited arguments of `{tool}` cannot be checked: {problem}; reject the call and say what to change"
    )]
    NoSchema { tool: String, problem: String },
    #[error("the arguments of `{tool}` do not match its schema: {violations}")]
    Arguments { tool: String, violations: String },
    /// The decision lacks something, or comes with something that contradicts it.
    #[error("`{decision}` needs {expected}")]
    Invalid { decision: &'static str, expected: &'static str },
}

impl Question {
    /// A question that is answered with text.
    pub fn open(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            server: None,
            tool: None,
            arguments: None,
            arguments_schema: None,
            tool_schema: None,
            justification: None,
            choices: vec![Decision::Say],
            expires_at: None,
        }
    }

    /// The question of a sleeping session: no person can answer it, and it expires at `until`.
    pub fn asleep(until: Stamp) -> Self {
        let prompt = format!("Asleep until {until}.");
        Self { choices: Vec::new(), expires_at: Some(until), ..Self::open(prompt) }
    }

    pub fn is_sleep(&self) -> bool {
        self.choices.is_empty()
    }

    /// Asks whether a call may be made. An approval allows exactly this call once; an edit allows
    /// the call with the edited arguments. An edit is on offer if the tool's schema is known, from
    /// `arguments_schema` or else from the tool's server.
    pub fn approval(call: &ToolCall, prompt: impl Into<String>) -> Self {
        Self {
            server: call.server.clone(),
            tool: Some(call.tool.clone()),
            arguments: Some(call.arguments.clone()),
            choices: vec![Decision::Approve, Decision::Reject, Decision::Edit, Decision::Say],
            ..Self::open(prompt)
        }
    }

    /// The call that the question is about, if any.
    pub fn call(&self) -> Option<ToolCall> {
        let tool = self.tool.clone()?;
        let arguments = self.arguments.clone().unwrap_or_else(|| serde_json::json!({}));
        Some(ToolCall { id: None, server: self.server.clone(), tool, arguments })
    }

    /// The digest of the call that the answer allows, if any.
    pub fn allowed(&self, answer: &Answer) -> Option<Hash> {
        let call = self.call()?;
        match answer.decision {
            Decision::Approve => Some(digest::call(&call)),
            Decision::Edit => {
                let arguments = answer.arguments.clone()?;
                Some(digest::call(&ToolCall { arguments, ..call }))
            }
            Decision::Reject | Decision::Say | Decision::Expired => None,
        }
    }

    /// The decisions that a person can take. An edit is one only if it can be checked. A question that
    /// offers nothing else can be rejected.
    pub fn offered(&self) -> Vec<Decision> {
        let mut offered = self.choices.clone();
        offered.retain(|choice| *choice != Decision::Edit || self.schema().is_ok());
        if offered.is_empty() && !self.is_sleep() {
            offered.push(Decision::Reject);
        }
        offered
    }

    /// The schema of edited arguments.
    fn schema(&self) -> Result<Schema, AnswerRefused> {
        let problem = match self.arguments_schema.as_ref().map(Schema::compile) {
            Some(Ok(schema)) => return Ok(schema),
            Some(Err(error)) => format!("the tool's schema cannot be used: {error}"),
            None => "the tool's schema is not known".to_owned(),
        };
        Err(AnswerRefused::NoSchema { tool: self.tool.clone().unwrap_or_default(), problem })
    }

    /// Checks a person's answer to this question.
    ///
    /// # Errors
    /// The question does not offer the decision, or the decision lacks what it needs. An edit needs
    /// arguments that match the tool's schema.
    pub fn check(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        self.check_form(answer)?;
        if answer.decision != Decision::Edit {
            return Ok(());
        }
        let violations =
            self.schema()?.violations(answer.arguments.as_ref().unwrap_or(&Value::Null));
        let tool = self.tool.clone().unwrap_or_default();
        violations.map_or(Ok(()), |violations| Err(AnswerRefused::Arguments { tool, violations }))
    }

    /// Checks a journaled answer, which was accepted by the rules of its time: earlier versions accepted
    /// an edit without a schema.
    pub(crate) fn check_recorded(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        if self.arguments_schema.is_none() { self.check_form(answer) } else { self.check(answer) }
    }

    fn check_form(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        let decision = answer.decision.as_str();
        let is_choice =
            self.choices.contains(&answer.decision) || self.offered().contains(&answer.decision);
        if answer.decision == Decision::Expired || !is_choice {
            return Err(AnswerRefused::NotOffered(decision));
        }
        let invalid = |expected| Err(AnswerRefused::Invalid { decision, expected });
        match answer.decision {
            Decision::Edit if self.tool.is_none() => invalid("a question about a call"),
            Decision::Edit if !answer.arguments.as_ref().is_some_and(Value::is_object) => {
                invalid("`arguments`, an object")
            }
            Decision::Say if answer.text.as_deref().is_none_or(|text| text.trim().is_empty()) => {
                invalid("`text`")
            }
            // Other arguments are meant as an edit: approving the original ones would be wrong.
            Decision::Approve
                if answer.arguments.is_some() && answer.arguments != self.arguments =>
            {
                invalid("no other `arguments` than the question's")
            }
            _ => Ok(()),
        }
    }

    /// Interprets a text that means only yes or no as approval or rejection, if the question offers
    /// it. The text stays in the answer.
    #[must_use]
    pub fn settle(&self, answer: Answer) -> Answer {
        let Answer { decision: Decision::Say, text: Some(text), .. } = &answer else {
            return answer;
        };
        match self.yes_or_no(text) {
            Some(decision) => Answer { decision, ..answer },
            None => answer,
        }
    }

    /// The decision that a text expresses by itself, if the question offers it.
    fn yes_or_no(&self, text: &str) -> Option<Decision> {
        let word = text.trim().to_ascii_lowercase();
        let decision = if APPROVING_TEXTS.contains(&word.as_str()) {
            Decision::Approve
        } else if REJECTING_TEXTS.contains(&word.as_str()) {
            Decision::Reject
        } else {
            return None;
        };
        self.choices.contains(&decision).then_some(decision)
    }

    /// Interprets free text: approval if it is one of [`APPROVING_TEXTS`], rejection if it is one
    /// of [`REJECTING_TEXTS`]. Any other text is the answer if the question accepts text, and
    /// otherwise a rejection with the text as its reason.
    pub fn read(&self, question_id: u32, text: &str) -> Answer {
        if let Some(decision) = self.yes_or_no(text) {
            return Answer::new(question_id, decision);
        }
        let words = Some(text.trim().to_owned());
        if self.choices.contains(&Decision::Say) {
            return Answer { text: words, ..Answer::new(question_id, Decision::Say) };
        }
        Answer { reason: words, ..Answer::new(question_id, Decision::Reject) }
    }
}

impl OpenQuestion {
    /// What a person's answer says, settled and checked: the answer that is journaled.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn take(&self, answer: Answer) -> Result<Answer, AnswerRefused> {
        let answer = self.question.settle(answer);
        self.check(&answer)?;
        Ok(answer)
    }

    /// Whether a person's answer is one to this question.
    ///
    /// # Errors
    /// It answers another question, the person was shown something else, or see [`Question::check`].
    pub fn check(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        if answer.question_id != self.question_id {
            return Err(AnswerRefused::WrongQuestion {
                given: answer.question_id,
                open: self.question_id,
            });
        }
        if let Some(shown) = answer.digest.as_deref().filter(|shown| *shown != self.digest.as_str())
        {
            return Err(AnswerRefused::OtherDigest {
                shown: clip(shown),
                open: self.digest.clone(),
            });
        }
        self.question.check(answer)
    }
}

impl Answer {
    pub fn new(question_id: u32, decision: Decision) -> Self {
        Self { question_id, digest: None, decision, reason: None, arguments: None, text: None }
    }

    /// The journaled answer of a question that expired.
    pub fn expired(question_id: u32) -> Self {
        Self::new(question_id, Decision::Expired)
    }

    /// The step that closes the question with this answer, without saying whose answer it is.
    pub fn body(&self) -> StepBody<Value> {
        let (question, payload) = (self.question_id, crate::next::json_of(self));
        StepBody::Answer { question, principal: None, payload }
    }

    /// The step that closes the question with this answer of `principal`.
    pub fn body_by(&self, principal: Principal) -> StepBody<Value> {
        let (question, payload) = (self.question_id, crate::next::json_of(self));
        StepBody::Answer { question, principal: Some(principal), payload }
    }
}

/// A digest as given, at most as long as a real one.
fn clip(given: &str) -> String {
    given.chars().take(Hash::genesis().as_str().len()).collect()
}

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Edit => "edit",
            Self::Say => "say",
            Self::Expired => "expired",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question() -> Question {
        Question::approval(&ToolCall::new("pk", "run", json!({"id": 1})), "Run?")
    }

    #[test]
    fn free_text_approves_only_if_it_is_in_a_closed_list() {
        for (text, decision) in [
            ("yes", Decision::Approve),
            (" Y\n", Decision::Approve),
            ("approve", Decision::Approve),
            ("no", Decision::Reject),
            ("yes please", Decision::Say),
            ("yes, but with 3", Decision::Say),
            ("ok", Decision::Say),
            ("", Decision::Say),
        ] {
            assert_eq!(question().read(1, text).decision, decision, "{text}");
        }
        let yes_or_no =
            Question { choices: vec![Decision::Approve, Decision::Reject], ..question() };
        assert_eq!(yes_or_no.read(1, "why?").decision, Decision::Reject);
        assert_eq!(Question::open("?").read(1, "yes").decision, Decision::Say);
    }

    #[test]
    fn yes_or_no_as_text_decides_and_is_kept_in_the_answer() {
        let say =
            |text: &str| Answer { text: Some(text.to_owned()), ..Answer::new(4, Decision::Say) };
        for (text, decision) in
            [("Yes ", Decision::Approve), ("no", Decision::Reject), ("yes please", Decision::Say)]
        {
            let expected = Answer { decision, ..say(text) };
            assert_eq!(question().settle(say(text)), expected);
            assert_eq!(Question::open("?").settle(say(text)), say(text));
        }
    }

    #[test]
    fn edited_arguments_are_validated_with_the_tools_schema() {
        let schema = json!({"type": "object", "required": ["id"], "additionalProperties": false,
            "properties": {"id": {"type": "integer"}}});
        let question = Question { arguments_schema: Some(schema), ..question() };
        let check = |arguments| {
            let edit = Answer { arguments: Some(arguments), ..Answer::new(4, Decision::Edit) };
            question.check(&edit).map_err(|error| error.to_string())
        };
        assert_eq!(check(json!({"id": 2})), Ok(()));
        for (arguments, place) in
            [(json!({"id": "x"}), "/id"), (json!({}), "id"), (json!({"id": 2, "of": 1}), "of")]
        {
            let refusal = check(arguments).unwrap_err();
            assert!(
                refusal.starts_with("the arguments of `run` do not match its schema: "),
                "{refusal}"
            );
            assert!(refusal.contains(place), "{refusal}");
        }
        let broken =
            Question { arguments_schema: Some(json!({"$ref": "http://127.0.0.1:9/"})), ..question };
        let edit = Answer { arguments: Some(json!({})), ..Answer::new(4, Decision::Edit) };
        assert!(broken.check(&edit).unwrap_err().to_string().contains("cannot be used"));
        assert!(!broken.offered().contains(&Decision::Edit));
    }

    #[test]
    fn an_edit_without_a_schema_is_not_offered_and_refused() {
        let unknown = question();
        assert_eq!(unknown.offered(), [Decision::Approve, Decision::Reject, Decision::Say]);
        let edit = Answer { arguments: Some(json!({})), ..Answer::new(4, Decision::Edit) };
        let refusal = unknown.check(&edit).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "edited arguments of `run` cannot be checked: the tool's schema is not known; \
             reject the call and say what to change"
        );
        assert_eq!(unknown.check_recorded(&edit), Ok(()), "earlier versions accepted it");
    }

    #[test]
    fn an_answer_to_what_was_shown_covers_nothing_else() {
        let digest = |question: &Question| digest::question(4, &json!(question));
        let question = question();
        let open = OpenQuestion {
            question_id: 4,
            digest: digest(&question),
            question: question.clone(),
            expires_at: Stamp::default(),
        };
        let answer = |digest: &str| Answer {
            digest: Some(digest.to_owned()),
            ..Answer::new(4, Decision::Approve)
        };
        assert_eq!(open.check(&answer(open.digest.as_str())), Ok(()));
        let hidden = json!({"id": 1, "also": "wipe"});
        for other in [
            Question { arguments: Some(hidden), ..question.clone() },
            Question { server: Some("other".to_owned()), ..question.clone() },
            Question { prompt: "Walk?".to_owned(), ..question.clone() },
            Question { tool_schema: Some("ab".to_owned()), ..question },
        ] {
            let refused = open.check(&answer(digest(&other).as_str())).unwrap_err();
            assert!(matches!(refused, AnswerRefused::OtherDigest { .. }), "{refused}");
        }
        // An answer that was sent twice is none to the next question about the same call.
        let next = OpenQuestion {
            question_id: 6,
            digest: digest::question(6, &json!(open.question)),
            ..open.clone()
        };
        let twice = Answer { question_id: 6, ..answer(open.digest.as_str()) };
        let refused = next.check(&twice).unwrap_err();
        assert!(matches!(refused, AnswerRefused::OtherDigest { .. }), "{refused}");
        let refused = open.check(&answer(&"x".repeat(1_000))).unwrap_err().to_string();
        assert!(refused.len() < 250 && refused.ends_with("read it again"), "{refused}");
    }

    #[test]
    fn an_invalid_answer_is_rejected_with_the_reason() {
        let schema = Some(json!({"type": "object"}));
        let question = Question { arguments_schema: schema, ..question() };
        let digest = digest::question(4, &json!(question));
        let open = OpenQuestion { question_id: 4, question, digest, expires_at: Stamp::default() };
        let edit = |arguments| Answer { arguments, ..Answer::new(4, Decision::Edit) };
        let check = |answer: &Answer| open.check(answer).map_err(|error| error.to_string());
        for (answer, refused) in [
            (Answer::new(4, Decision::Approve), None),
            (edit(Some(json!({"id": 2}))), None),
            (Answer::new(3, Decision::Approve), Some("question 3 is not open; the open one is 4")),
            (Answer::expired(4), Some("the question does not offer `expired`")),
            (edit(Some(json!(2))), Some("`edit` needs `arguments`, an object")),
            (edit(None), Some("`edit` needs `arguments`, an object")),
            (Answer::new(4, Decision::Say), Some("`say` needs `text`")),
            (
                Answer { arguments: Some(json!({})), ..Answer::new(4, Decision::Approve) },
                Some("`approve` needs no other `arguments` than the question's"),
            ),
        ] {
            assert_eq!(check(&answer).err().as_deref(), refused, "{answer:?}");
        }
    }

    #[test]
    fn questions_and_answers_match_the_golden_file() {
        let text = r#"{"prompt":"Run?","server":"pk","tool":"run","arguments":{"id":1},"choices":["approve","reject","edit","say"]}"#;
        assert_eq!(json!(question()).to_string(), text);
        assert_eq!(serde_json::from_str::<Question>(text).unwrap(), question());
        let answer = r#"{"question_id":4,"decision":"reject","reason":"no"}"#;
        assert_eq!(json!(serde_json::from_str::<Answer>(answer).unwrap()).to_string(), answer);
    }
}
