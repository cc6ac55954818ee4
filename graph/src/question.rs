//! What a person is asked, and what counts as an answer.

use journal::clock::Stamp;
use journal::step::StepBody;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest;
use crate::effect::ToolCall;
use crate::schema::Schema;

/// The texts that approve, case and surrounding blanks apart. Nothing else does.
pub const APPROVING_TEXTS: [&str; 3] = ["yes", "y", "approve"];

/// The texts that reject.
pub const REJECTING_TEXTS: [&str; 3] = ["no", "n", "reject"];

/// A question to a person; without choices one that only time answers.
///
/// In JSON `{"prompt", "server"?, "tool"?, "arguments"?, "arguments_schema"?, "justification"?,
/// "choices"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The text, shown as it is.
    pub prompt: String,
    /// The server of the tool that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The JSON schema that other arguments must meet; any object will do if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_schema: Option<Value>,
    /// Why the call is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The decisions that a person may take.
    pub choices: Vec<Decision>,
    /// When it expires; `None` for [`QUESTION_OPEN`](crate::next::QUESTION_OPEN) after it is asked.
    #[serde(skip)]
    pub expires_at: Option<Stamp>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Yes, exactly this.
    Approve,
    /// No.
    Reject,
    /// Yes, with other arguments.
    Edit,
    /// Something in words.
    Say,
    /// Nobody answered in time. Never a person's choice.
    Expired,
}

/// An answer.
///
/// In JSON `{"question_id", "decision": "approve" | "reject" | "edit" | "say" | "expired",
/// "reason"?, "arguments"?, "text"?}`; whoever lets a question expire journals
/// `{"decision": "expired"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the ask step.
    #[serde(default)]
    pub question_id: u32,
    /// The decision.
    pub decision: Decision,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The other arguments of [`Decision::Edit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The words of [`Decision::Say`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// The number of the ask step.
    pub question_id: u32,
    /// The question.
    pub question: Question,
    /// When it expires.
    pub expires_at: Stamp,
}

/// Why an answer is none. The question stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    /// It answers another question.
    #[error("question {given} is not open, {open} is")]
    WrongQuestion {
        /// The question it answers.
        given: u32,
        /// The question that is open.
        open: u32,
    },
    /// The question does not offer this decision.
    #[error("the question does not offer `{0}`")]
    NotOffered(&'static str),
    /// The other arguments miss the tool's schema.
    #[error("the arguments of `{tool}` break its schema: {violations}")]
    Arguments {
        /// The tool.
        tool: String,
        /// Where, and which rule.
        violations: String,
    },
    /// The decision needs something more, or comes with something that contradicts it.
    #[error("`{decision}` needs {expected}")]
    Invalid {
        /// The decision.
        decision: &'static str,
        /// What it needs.
        expected: &'static str,
    },
}

impl Question {
    /// A question in words, answered in words.
    pub fn open(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            server: None,
            tool: None,
            arguments: None,
            arguments_schema: None,
            justification: None,
            choices: vec![Decision::Say],
            expires_at: None,
        }
    }

    /// What stands open while a session sleeps: nobody can answer it, and it expires when it is time.
    pub fn asleep(until: Stamp) -> Self {
        let prompt = format!("Asleep until {until}.");
        Self { choices: Vec::new(), expires_at: Some(until), ..Self::open(prompt) }
    }

    /// Whether only time answers it.
    pub fn is_sleep(&self) -> bool {
        self.choices.is_empty()
    }

    /// Whether a call may be made. An approval is one of exactly this call, an edit one of the call
    /// with the other arguments; it holds for one call.
    pub fn approval(call: &ToolCall, prompt: impl Into<String>) -> Self {
        Self {
            server: call.server.clone(),
            tool: Some(call.tool.clone()),
            arguments: Some(call.arguments.clone()),
            choices: vec![Decision::Approve, Decision::Reject, Decision::Edit, Decision::Say],
            ..Self::open(prompt)
        }
    }

    /// The call that the question is about, if it is about one.
    pub fn call(&self) -> Option<ToolCall> {
        let tool = self.tool.clone()?;
        let arguments = self.arguments.clone().unwrap_or_else(|| serde_json::json!({}));
        Some(ToolCall { id: None, server: self.server.clone(), tool, arguments })
    }

    /// The digest of the call that the answer allows, if it allows one.
    pub fn allowed(&self, answer: &Answer) -> Option<journal::item::Hash> {
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

    /// Whether a person's answer is one to this question.
    ///
    /// # Errors
    /// When the question does not offer the decision, or the decision lacks what it needs.
    pub fn check(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        let decision = answer.decision.as_str();
        if answer.decision == Decision::Expired || !self.choices.contains(&answer.decision) {
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
            // Whoever sends other arguments means them: approving the old ones would be wrong.
            Decision::Approve
                if answer.arguments.is_some() && answer.arguments != self.arguments =>
            {
                invalid("no other `arguments` than the question's")
            }
            Decision::Edit => {
                self.check_arguments(answer.arguments.as_ref().unwrap_or(&Value::Null))
            }
            _ => Ok(()),
        }
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), AnswerRefused> {
        let Some(schema) = &self.arguments_schema else { return Ok(()) };
        let violations = match Schema::compile(schema) {
            Ok(schema) => schema.violations(arguments),
            Err(error) => Some(format!("the schema cannot be used: {error}")),
        };
        let tool = self.tool.clone().unwrap_or_default();
        violations.map_or(Ok(()), |violations| Err(AnswerRefused::Arguments { tool, violations }))
    }

    /// What an answer says: words that mean nothing but yes or no are that, where the question
    /// offers it. The words stay in the answer.
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

    /// The decision that a text makes by itself, if the question offers it.
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

    /// What free text means as an answer: approval if it is one of [`APPROVING_TEXTS`] and nothing
    /// more, rejection if one of [`REJECTING_TEXTS`]; else words where the question takes words, and
    /// a rejection with the text as its reason where it does not.
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
    /// Whether a person's answer is one to this question.
    ///
    /// # Errors
    /// When it answers another question, or as [`Question::check`] says.
    pub fn check(&self, answer: &Answer) -> Result<(), AnswerRefused> {
        if answer.question_id != self.question_id {
            return Err(AnswerRefused::WrongQuestion {
                given: answer.question_id,
                open: self.question_id,
            });
        }
        self.question.check(answer)
    }
}

impl Answer {
    /// A decision without more.
    pub fn new(question_id: u32, decision: Decision) -> Self {
        Self { question_id, decision, reason: None, arguments: None, text: None }
    }

    /// What is journaled when nobody answered in time.
    pub fn expired(question_id: u32) -> Self {
        Self::new(question_id, Decision::Expired)
    }

    /// The step that closes the question with this answer.
    pub fn body(&self) -> StepBody<Value> {
        StepBody::Answer { question: self.question_id, payload: crate::next::json_of(self) }
    }
}

impl Decision {
    /// The decision's name.
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
    fn free_text_approves_only_if_it_is_one_of_a_closed_list() {
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
    fn words_that_mean_only_yes_or_no_are_that_and_stay_in_the_answer() {
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
    fn other_arguments_are_held_against_the_tool_s_schema() {
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
            assert!(refusal.starts_with("the arguments of `run` break its schema: "), "{refusal}");
            assert!(refusal.contains(place), "{refusal}");
        }
        let broken =
            Question { arguments_schema: Some(json!({"$ref": "http://127.0.0.1:9/"})), ..question };
        let edit = Answer { arguments: Some(json!({})), ..Answer::new(4, Decision::Edit) };
        assert!(broken.check(&edit).unwrap_err().to_string().contains("cannot be used"));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_its_reason() {
        let open =
            OpenQuestion { question_id: 4, question: question(), expires_at: Stamp::default() };
        let edit = |arguments| Answer { arguments, ..Answer::new(4, Decision::Edit) };
        let check = |answer: &Answer| open.check(answer).map_err(|error| error.to_string());
        for (answer, refused) in [
            (Answer::new(4, Decision::Approve), None),
            (edit(Some(json!({"id": 2}))), None),
            (Answer::new(3, Decision::Approve), Some("question 3 is not open, 4 is")),
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
    fn questions_and_answers_are_golden() {
        let text = r#"{"prompt":"Run?","server":"pk","tool":"run","arguments":{"id":1},"choices":["approve","reject","edit","say"]}"#;
        assert_eq!(json!(question()).to_string(), text);
        assert_eq!(serde_json::from_str::<Question>(text).unwrap(), question());
        let answer = r#"{"question_id":4,"decision":"reject","reason":"no"}"#;
        assert_eq!(json!(serde_json::from_str::<Answer>(answer).unwrap()).to_string(), answer);
    }
}
