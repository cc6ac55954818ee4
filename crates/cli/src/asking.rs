//! Asks a person about the open question of a session that is being followed.

use control::Action;
use graph::question::Answer;
use journal::id::SessionId;
use serde_json::json;
use stack::view::OpenQuestion;

use crate::commands::steer;
use crate::deciding::{self, Meaning, Source};
use crate::failure::{self, Failure};
use crate::feed::Feed;
use crate::output;
use crate::reader::Reader;
use crate::render::ending;
use crate::resolve::Context;
use crate::typing::Input;

/// Interval between checks that the question is still open.
const CHECK_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// A question that is on the screen.
pub struct Asking<'a> {
    pub context: &'a Context,
    pub reader: &'a Reader,
    pub session: &'a SessionId,
    pub feed: &'a Feed,
    pub question: &'a OpenQuestion,
    /// The prompt of a question that takes words only.
    pub words: &'a str,
}

/// How asking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Answered,
    /// The question was closed by another answer.
    Elsewhere,
    /// The input has ended, and the question is open.
    InputEnded,
}

impl Asking<'_> {
    /// Prompts until the question is answered. Input from before it was shown is discarded.
    ///
    /// # Errors
    /// When the input or the journal cannot be read.
    pub async fn ask(&self, input: &mut Input) -> Result<Asked, Failure> {
        input.forget().await?;
        let source = if input.is_terminal() { Source::Terminal } else { Source::Pipe };
        let keys = deciding::keys(self.question);
        let mut editing = false;
        loop {
            if editing {
                input.ask("changed arguments, as JSON: ");
            } else if keys.is_empty() {
                input.ask(self.words);
            } else {
                input.ask(&deciding::prompt(self.question));
            }
            let Some(line) = self.line(input, if editing { &[] } else { &keys }).await? else {
                let is_open = self.feed.is_asking().await?;
                return Ok(if is_open { Asked::InputEnded } else { Asked::Elsewhere });
            };
            if line.trim().is_empty() {
                continue;
            }
            let meaning = if std::mem::take(&mut editing) {
                deciding::edited(self.question, &line)
            } else {
                deciding::meaning(self.question, &line, source)
            };
            match meaning {
                Ok(Meaning::Edit) => editing = true,
                // In JSON the question was whole.
                Ok(Meaning::View) if self.context.json => {}
                Ok(Meaning::View) => {
                    output::lines(ending::question(self.context.look, self.question, true))?;
                }
                Ok(Meaning::Answer(answer)) => {
                    if let Some(asked) = self.send(&answer).await? {
                        return Ok(asked);
                    }
                }
                Err(problem) => output::error(&problem),
            }
        }
    }

    /// Sends an answer; `None` if it was refused and the question is still open.
    async fn send(&self, answer: &Answer) -> Result<Option<Asked>, Failure> {
        let action = Action::Answer(json!(answer));
        let sent = steer::apply(self.context, self.reader, self.session, &action);
        match Box::pin(sent).await {
            Ok(_) => Ok(Some(Asked::Answered)),
            Err(refusal) => {
                failure::report(&refusal);
                Ok((!self.feed.is_asking().await?).then_some(Asked::Elsewhere))
            }
        }
    }

    /// The person's next line; `None` at the end of input, or when the question was answered elsewhere.
    async fn line(&self, input: &mut Input, keys: &[u8]) -> Result<Option<String>, Failure> {
        let mut typing = std::pin::pin!(input.line(keys));
        loop {
            tokio::select! {
                line = &mut typing => return Ok(line?),
                // The read stays pending, and `is_asking` consumes no records.
                () = tokio::time::sleep(CHECK_EVERY) => {
                    if !self.feed.is_asking().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
