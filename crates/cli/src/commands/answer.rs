//! `answer`: answers the open question, with a decision from the options or from a prompt.

use control::Action;
use graph::question::{self, Answer};
use journal::id::SessionId;
use serde_json::{Value, json};
use stack::view::OpenQuestion;

use super::steer;
use crate::config;
use crate::deciding::{self, Meaning, Source};
use crate::editor;
use crate::failure::{self, Exit, Failure};
use crate::output;
use crate::reader::{self, Loaded, Reader};
use crate::render::ending;
use crate::render::text::json_lines;
use crate::resolve::Context;
use crate::resolve::answer::Decision;
use crate::typing::{self, Input};

/// Answers the open question. Without a decision, prompts for one.
///
/// # Errors
/// When no question is open, stdin is not a terminal, nothing listens, or the stack refuses the answer.
pub async fn answer(
    context: &Context,
    session: &str,
    decision: Option<Decision>,
    digest: Option<&str>,
) -> Result<Exit, Failure> {
    if decision.is_none() && (context.json || !typing::is_interactive()) {
        return Err(Failure::usage("no decision given, and this is not a terminal")
            .hint("pass --approve, --reject, --edit FILE or --say TEXT"));
    }
    let reader = Reader::open(context).await?;
    let loaded = reader.load(session).await?;
    let Some(question) = loaded.view(reader::now()).open_question else {
        return Err(Failure::unknown(format!("no question is open in session {}", loaded.id))
            .hint(format!("show its status with: daybook show {}", loaded.id)));
    };
    if let Some(given) = digest {
        check_digest(&question, given, &loaded.id)?;
    }
    let Some(decision) = decision else {
        let asking = Asking { context, reader: &reader, loaded, question, edited: None };
        return asking.decide().await;
    };
    let mut body = match decision {
        Decision::Approve => json!({"decision": "approve"}),
        Decision::Reject(None) => json!({"decision": "reject"}),
        Decision::Reject(Some(reason)) => json!({"decision": "reject", "reason": reason}),
        Decision::Edit(arguments) => json!({"decision": "edit", "arguments": arguments}),
        Decision::Say(text) => json!({"decision": "say", "text": text}),
    };
    body["question_id"] = question.question_id.into();
    body["digest"] = question.digest.as_str().into();
    steer::send(context, loaded.id.as_str(), &Action::Answer(body)).await
}

/// Refuses to answer another question than the one that the person has read.
fn check_digest(question: &OpenQuestion, given: &str, session: &SessionId) -> Result<(), Failure> {
    let hint = format!("read the open question with: daybook show {session}");
    match deciding::names(question, given) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let least = deciding::DIGEST_CHARS;
            let problem = format!("`{given}` is no digest: expected {least} or more hex digits");
            Err(Failure::usage(problem).hint(hint))
        }
        Err(problem) => Err(Failure::unknown(problem).hint(hint)),
    }
}

/// A prompt for a decision on a question.
struct Asking<'a> {
    context: &'a Context,
    reader: &'a Reader,
    loaded: Loaded,
    question: OpenQuestion,
    /// The text last edited, kept when it is invalid.
    edited: Option<String>,
}

impl Asking<'_> {
    async fn decide(mut self) -> Result<Exit, Failure> {
        let session = self.loaded.view(reader::now());
        output::lines(ending::heading(self.context.look, &session))?;
        output::line("")?;
        output::lines(ending::question(self.context.look, &self.question, false))?;
        let mut input = Input::of_stdin();
        input.forget().await?;
        loop {
            let answer = match self.said(&mut input).await? {
                Said::Nothing => continue,
                Said::Leave => return Ok(self.left()),
                Said::Answer(answer) => answer,
            };
            let id = self.loaded.id.as_str();
            match steer::send(self.context, id, &Action::Answer(json!(answer))).await {
                Ok(exit) => return Ok(exit),
                Err(refusal) if self.is_open().await? => failure::report(&refusal),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Reads one key or one line.
    async fn said(&mut self, input: &mut Input) -> Result<Said, Failure> {
        let keys = deciding::keys(&self.question);
        let has_words = self.question.choices.contains(&question::Decision::Say);
        let mut offers = deciding::offers(&self.question);
        offers.extend(has_words.then_some("w words"));
        input.ask(&format!("{}, q leave: ", offers.join(", ")));
        let more: &[u8] = if has_words { b"wq" } else { b"q" };
        let Some(line) = input.line(&[&keys[..], more].concat()).await? else {
            return Ok(Said::Leave);
        };
        let line = line.trim();
        match line {
            "" => Ok(Said::Nothing),
            "q" => Ok(Said::Leave),
            "w" if has_words => Ok(match asked(input, "your answer: ").await? {
                None => Said::Nothing,
                Some(text) => {
                    let text = Some(text);
                    self.answer(Answer { text, ..Answer::new(0, question::Decision::Say) })
                }
            }),
            "n" if keys.contains(&b'n') => {
                let reason = asked(input, "reason (Enter for none): ").await?;
                Ok(self.answer(Answer { reason, ..Answer::new(0, question::Decision::Reject) }))
            }
            "e" if keys.contains(&b'e') => self.edit(input).await,
            line => match deciding::meaning(&self.question, line, Source::Terminal) {
                Ok(Meaning::View) => {
                    output::lines(ending::question(self.context.look, &self.question, true))?;
                    Ok(Said::Nothing)
                }
                Ok(Meaning::Edit) => self.edit(input).await,
                meaning => Ok(report(meaning)),
            },
        }
    }

    /// Reads edited arguments from the editor, or from a line without one.
    async fn edit(&mut self, input: &mut Input) -> Result<Said, Failure> {
        let arguments = self.question.arguments.clone().unwrap_or_else(|| json!({}));
        let Some(command) = config::editor() else {
            output::say(&format!("current arguments: {arguments}"));
            let line = asked(input, "changed arguments, as JSON: ").await?;
            return Ok(match line {
                None => Said::Nothing,
                Some(line) => report(deciding::edited(&self.question, &line)),
            });
        };
        let before = json_lines(&arguments).join("\n") + "\n";
        let text = self.edited.clone().unwrap_or_else(|| before.clone());
        let text = match editor::edit(&command, &text) {
            Ok(text) => text,
            Err(error) => {
                output::error(&format!("{error:#}"));
                return Ok(Said::Nothing);
            }
        };
        if text == before {
            output::say("the arguments are unchanged; y approves them");
            return Ok(Said::Nothing);
        }
        let arguments = serde_json::from_str::<Value>(&text);
        self.edited = Some(text);
        Ok(match arguments {
            Ok(arguments @ Value::Object(_)) => {
                let arguments = Some(arguments);
                self.answer(Answer { arguments, ..Answer::new(0, question::Decision::Edit) })
            }
            Ok(_) => report(Err("invalid arguments: expected a JSON object".to_owned())),
            Err(error) => report(Err(format!("invalid arguments: {error}"))),
        })
    }

    fn answer(&self, answer: Answer) -> Said {
        Said::Answer(Box::new(deciding::to(&self.question, answer)))
    }

    async fn is_open(&self) -> Result<bool, Failure> {
        let loaded = self.reader.load(self.loaded.id.as_str()).await?;
        let open = loaded.view(reader::now()).open_question;
        Ok(open.is_some_and(|open| open.question_id == self.question.question_id))
    }

    fn left(&self) -> Exit {
        let id = &self.loaded.id;
        output::hint(&format!(
            "the question stays open; answer it later with: daybook answer {id}"
        ));
        Exit::Unknown
    }
}

/// Input at the prompt.
enum Said {
    Answer(Box<Answer>),
    Nothing,
    Leave,
}

/// Converts a parsed line; reports an error, which decides nothing.
fn report(meaning: Result<Meaning, String>) -> Said {
    match meaning {
        Ok(Meaning::Answer(answer)) => Said::Answer(answer),
        Ok(Meaning::Edit | Meaning::View) => Said::Nothing,
        Err(problem) => {
            output::error(&problem);
            Said::Nothing
        }
    }
}

/// Prompts for a line; `None` if it is empty, or at the end of input.
async fn asked(input: &mut Input, words: &str) -> Result<Option<String>, Failure> {
    input.ask(words);
    let line = input.line(&[]).await?;
    Ok(line.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
}
