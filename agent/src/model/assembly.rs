//! Assembles a reply from the pieces of a stream.

use std::collections::BTreeMap;

use graph::effect::{Author, Chat, Reply, ToolCall};
use graph::outcome::Failure;
use journal::step::Usage;
use serde_json::{Value, json};

use super::{Attempt, INVALID, REPLY_BYTES_MAX, REPLY_CALLS_MAX, guessed};

/// A partial reply and its usage.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) reply: Assembly,
    pub(super) usage: Option<Usage>,
}

impl Heard {
    /// The attempt's result, once the stream ended or failed. `transient` is the category of a stream that
    /// ends too early.
    pub(super) fn attempt(
        self,
        listened: Result<(), Failure>,
        chat: &Chat,
        model: &str,
        transient: &str,
    ) -> Attempt {
        let ended = self.reply.has_ended();
        let failure = match listened {
            // A failure after the model finished loses at most the usage.
            Err(failure) if !ended || failure.category == INVALID => failure,
            Ok(()) if !ended => {
                Failure::unknown(transient, "the stream ended before the model was done")
            }
            _ => {
                let reply = self.reply.reply(model);
                let usage = self.usage.unwrap_or_else(|| guessed(chat, &reply));
                return Attempt { brought: Ok(reply), usage, in_words: false };
            }
        };
        let usage = self.usage.unwrap_or_default();
        Attempt { usage, ..Attempt::failed(failure) }
    }
}

#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    /// By the server's index.
    calls: BTreeMap<i64, Partial>,
    bytes: usize,
    ended: bool,
}

#[derive(Debug, Default)]
struct Partial {
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Appends to the text.
    ///
    /// # Errors
    /// When the reply becomes too large.
    pub(super) fn text(&mut self, piece: &str) -> Result<(), Failure> {
        self.grow(piece.len())?;
        self.text.push_str(piece);
        Ok(())
    }

    /// Appends to the call at an index: pieces of its id, name and arguments, each possibly empty.
    ///
    /// # Errors
    /// When the reply becomes too large or has too many calls.
    pub(super) fn call(
        &mut self,
        place: i64,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), Failure> {
        self.grow(id.len() + name.len() + arguments.len())?;
        if !self.calls.contains_key(&place) && self.calls.len() == REPLY_CALLS_MAX {
            let message = format!("the reply has more than {REPLY_CALLS_MAX} tool calls");
            return Err(Failure::unknown(INVALID, message));
        }
        let partial = self.calls.entry(place).or_default();
        // Some servers repeat id and name with every piece.
        if partial.id.is_empty() {
            partial.id.push_str(id);
        }
        if partial.name.is_empty() {
            partial.name.push_str(name);
        }
        partial.arguments.push_str(arguments);
        Ok(())
    }

    /// The index after the last, for servers that send none.
    pub(super) fn next_place(&self) -> i64 {
        self.calls.keys().next_back().map_or(0, |last| last.saturating_add(1))
    }

    /// Notes that the model finished.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn reply(self, model: &str) -> Reply {
        let call = |partial: Partial| ToolCall {
            id: Some(partial.id).filter(|id| !id.is_empty()),
            server: None,
            tool: partial.name,
            arguments: arguments(&partial.arguments),
        };
        Reply {
            text: Some(self.text).filter(|text| !text.is_empty()),
            calls: self.calls.into_values().map(call).collect(),
            by: Author::Model(model.to_owned()),
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > REPLY_BYTES_MAX {
            let message = format!("the reply is larger than {REPLY_BYTES_MAX} bytes");
            return Err(Failure::unknown(INVALID, message));
        }
        Ok(())
    }
}

/// Arguments that are not JSON stay a text: they fail every tool's schema, and the model gets that
/// error.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_assembled_by_index() {
        let mut reply = Assembly::default();
        reply.text("Let me ").unwrap();
        reply.call(1, "b", "second", "").unwrap();
        reply.call(0, "a", "first", "{\"x\":").unwrap();
        reply.text("look.").unwrap();
        reply.call(0, "a", "first", " 1}").unwrap();
        assert_eq!(reply.next_place(), 2);
        let reply = reply.reply("m");
        assert_eq!(reply.text.as_deref(), Some("Let me look."));
        let calls: Vec<_> =
            reply.calls.iter().map(|call| (call.tool.as_str(), call.arguments.clone())).collect();
        assert_eq!(calls, [("first", json!({"x": 1})), ("second", json!({}))]);
    }

    #[test]
    fn arguments_that_are_not_json_stay_a_text() {
        let mut reply = Assembly::default();
        reply.call(0, "", "t", "{\"x\": ").unwrap();
        let reply = reply.reply("m");
        assert_eq!((&reply.calls[0].arguments, &reply.calls[0].id), (&json!("{\"x\": "), &None));
    }

    #[test]
    fn a_reply_has_bounds() {
        let mut reply = Assembly::default();
        let refusal = reply.text(&"x".repeat(REPLY_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(refusal.category, INVALID);
        let mut reply = Assembly::default();
        for place in 0..64 {
            reply.call(place, "", "t", "").unwrap();
        }
        reply.call(7, "", "", "{}").unwrap();
        assert_eq!(reply.call(64, "", "t", "").unwrap_err().category, INVALID);
    }
}
