//! `answer`: what a person decides about the open question, said at once or asked for at the terminal.

use std::io::{self, IsTerminal as _};

use graph::question::{self, Answer, Question};
use journal::step::StepBody;
use local::view::OpenQuestion;
use serde_json::{Value, json};

use super::steer::{self, Deed};
use crate::config;
use crate::deciding;
use crate::editor;
use crate::failure::{Exit, Failure};
use crate::ledger::{self, Ledger, Loaded};
use crate::output;
use crate::render::ending;
use crate::render::text::json_lines;
use crate::resolve::Context;
use crate::resolve::answer::Decision;
use crate::typing::Input;

/// Answers the open question, so or as the person at the terminal says.
///
/// # Errors
/// When none is open, nobody is there to decide, nothing listens, or the stack refuses the answer.
pub async fn answer(
    context: &Context,
    session: &str,
    decision: Option<Decision>,
) -> Result<Exit, Failure> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if decision.is_none() && (context.json || !is_terminal) {
        return Err(Failure::usage("what the answer is was not said, and nobody can be asked")
            .hint("say it with --approve, --reject, --edit FILE or --say TEXT"));
    }
    let ledger = Ledger::open(context).await?;
    let loaded = ledger.load(session).await?;
    let Some(question) = loaded.view(ledger::now()).open_question else {
        return Err(Failure::unknown(format!("no question is open in session {}", loaded.id))
            .hint(format!("daybook show {} tells where it stands", loaded.id)));
    };
    let Some(decision) = decision else {
        let asking = Asking { context, ledger: &ledger, loaded, question, edited: None };
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
    steer::send(context, loaded.id.as_str(), Deed::Answer, &body).await
}

/// A question, and somebody at the terminal who is to decide it.
struct Asking<'a> {
    context: &'a Context,
    ledger: &'a Ledger,
    loaded: Loaded,
    question: OpenQuestion,
    /// What was typed in the editor last, which a mistake must not lose.
    edited: Option<String>,
}

impl Asking<'_> {
    async fn decide(mut self) -> Result<Exit, Failure> {
        let session = self.loaded.view(ledger::now());
        output::lines(ending::heading(self.context.look, &session))?;
        output::line("")?;
        output::lines(ending::question(self.context.look, &self.question))?;
        let mut input = Input::of_stdin();
        loop {
            let answer = match self.said(&mut input).await? {
                Said::Nothing => continue,
                Said::Leave => return Ok(self.left()),
                Said::Answer(answer) => answer,
            };
            if let Err(refusal) = self.check(&answer) {
                output::error(&refusal.to_string());
                continue;
            }
            let id = self.loaded.id.as_str();
            match steer::send(self.context, id, Deed::Answer, &json!(answer)).await {
                Ok(exit) => return Ok(exit),
                Err(refusal) if self.is_open().await? => refusal.report(),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// What the person decides by one key or one line.
    async fn said(&mut self, input: &mut Input) -> Result<Said, Failure> {
        let keys = deciding::keys(&self.question);
        let has_words = self.question.choices.contains(&question::Decision::Say);
        let mut offers: Vec<&str> = keys.iter().filter_map(|key| offer(*key)).collect();
        offers.extend(has_words.then_some("w words"));
        input.ask(&format!("{}, q leave: ", offers.join(", ")));
        let more: &[u8] = if has_words { b"wq" } else { b"q" };
        let Some(line) = input.line(&[&keys[..], more].concat()).await? else {
            return Ok(Said::Leave);
        };
        let line = line.trim();
        let id = self.question.question_id;
        match line {
            "" => Ok(Said::Nothing),
            "q" => Ok(Said::Leave),
            "w" if has_words => Ok(match asked(input, "your words: ").await? {
                None => Said::Nothing,
                Some(text) => {
                    let text = Some(text);
                    Said::answer(Answer { text, ..Answer::new(id, question::Decision::Say) })
                }
            }),
            "n" if keys.contains(&b'n') => {
                let reason = asked(input, "why (Enter for no reason): ").await?;
                Ok(Said::answer(Answer { reason, ..Answer::new(id, question::Decision::Reject) }))
            }
            "e" if keys.contains(&b'e') => self.edit(input).await,
            line => Ok(told(deciding::deed(&self.question, line))),
        }
    }

    /// Other arguments: in the person's editor, or on a line.
    async fn edit(&mut self, input: &mut Input) -> Result<Said, Failure> {
        let arguments = self.question.arguments.clone().unwrap_or_else(|| json!({}));
        let Some(command) = config::editor() else {
            output::say(&format!("now: {arguments}"));
            let line = asked(input, "what is other, as JSON: ").await?;
            return Ok(match line {
                None => Said::Nothing,
                Some(line) => told(deciding::edited(&self.question, &line)),
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
            output::say("nothing was changed; y approves it as it is");
            return Ok(Said::Nothing);
        }
        let arguments = serde_json::from_str::<Value>(&text);
        self.edited = Some(text);
        Ok(match arguments {
            Ok(arguments @ Value::Object(_)) => {
                let (id, arguments) = (self.question.question_id, Some(arguments));
                Said::answer(Answer { arguments, ..Answer::new(id, question::Decision::Edit) })
            }
            Ok(_) => told(Err("these are no arguments: expected a JSON object".to_owned())),
            Err(error) => told(Err(format!("these are no arguments: {error}"))),
        })
    }

    /// Whether the question takes this answer. The stack judges again; here the person can still mend it.
    fn check(&self, answer: &Answer) -> Result<(), question::AnswerRefused> {
        let Some(StepBody::Ask { payload, expires_at, .. }) =
            self.loaded.steps.last().map(|step| &step.body)
        else {
            return Ok(());
        };
        let Ok(question) = serde_json::from_value::<Question>(payload["question"].clone()) else {
            return Ok(());
        };
        let (question_id, expires_at) = (self.question.question_id, *expires_at);
        let settled = question.settle(answer.clone());
        question::OpenQuestion { question_id, question, expires_at }.check(&settled)
    }

    async fn is_open(&self) -> Result<bool, Failure> {
        let loaded = self.ledger.load(self.loaded.id.as_str()).await?;
        let open = loaded.view(ledger::now()).open_question;
        Ok(open.is_some_and(|open| open.question_id == self.question.question_id))
    }

    fn left(&self) -> Exit {
        let id = &self.loaded.id;
        output::hint(&format!("the question stays open; come back with: daybook answer {id}"));
        Exit::Unknown
    }
}

/// What a person said at a question.
enum Said {
    Answer(Box<Answer>),
    Nothing,
    Leave,
}

impl Said {
    fn answer(answer: Answer) -> Self {
        Self::Answer(Box::new(answer))
    }
}

/// What a line came to; a mistake is said and decides nothing.
fn told(deed: Result<deciding::Deed, String>) -> Said {
    match deed {
        Ok(deciding::Deed::Answer(answer)) => Said::Answer(answer),
        Ok(deciding::Deed::Edit) => Said::Nothing,
        Err(problem) => {
            output::error(&problem);
            Said::Nothing
        }
    }
}

/// What a key is offered as.
fn offer(key: u8) -> Option<&'static str> {
    match key {
        b'y' => Some("y approve"),
        b'n' => Some("n reject"),
        b'e' => Some("e edit"),
        _ => None,
    }
}

/// A line in answer to a question of ours; `None` if it is empty or there is none.
async fn asked(input: &mut Input, words: &str) -> Result<Option<String>, Failure> {
    input.ask(words);
    let line = input.line(&[]).await?;
    Ok(line.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
}
