//! `eval`: runs an agent on a folder of cases, on a stack of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::Action;
use extension::input::model_name;
use futures_util::stream::{self, StreamExt as _};
use graph::effect::CATALOGUE;
use journal::id::SessionId;
use journal::step::StepBody;
use serde_json::{Map, Value, json};
use stack::view::Session;
use tokio::time::Instant;

use super::cloud::Clients;
use super::{grant, own_stack, steer};
use crate::args;
use crate::config::StackEnvironment;
use crate::eval::baseline::Baseline;
use crate::eval::case::Case;
use crate::eval::judge::{self, Run};
use crate::failure::{Exit, Failure};
use crate::feed::{Feed, Item};
use crate::input;
use crate::output;
use crate::reader::{self, Reader};
use crate::render::text::clean;
use crate::resolve::Context;

/// The default folder of the journals.
const DEFAULT_FOLDER: &str = ".daybook/eval";

/// Runs at a time. More would lengthen the measured latency.
const RUNS_AT_A_TIME: usize = 2;

/// Longest wait for new records in one read of the journal.
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// Longest time without a new record before a run counts as not ended.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// The value of `--model` that selects each case's own recording.
const TRANSCRIPT: &str = "transcript";

/// The model that is no model.
const POLICY: &str = "policy";

/// An evaluation to run.
#[derive(Debug)]
pub struct Plan {
    pub options: args::Eval,
    pub environment: StackEnvironment,
}

/// One run to make.
struct Planned<'a> {
    case: &'a Case,
    model: &'a str,
    detail: Map<String, Value>,
}

/// Runs every case and prints the table.
///
/// # Errors
/// When a case is invalid, the stack does not start, or a run does not end.
pub async fn eval(context: &Context, plan: Plan) -> Result<Exit, Failure> {
    let Plan { options, environment } = plan;
    let before = options.baseline.as_deref().map(read_baseline).transpose()?;
    if let Some(before) = before.as_ref().filter(|before| before.agent != options.agent) {
        let problem = format!("the baseline is of agent `{}`", before.agent);
        return Err(Failure::usage(problem).hint("pass the baseline of this agent"));
    }
    known(context, &options.agent)?;
    let cases = chosen(Case::all(&options.folder)?, &options.case)?;
    let models =
        if options.model.is_empty() { vec![POLICY.to_owned()] } else { options.model.clone() };
    let planned = planned(context, &options, &cases, &models)?;
    let folder = context.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER));
    let running = own_stack::for_eval(context, &environment, &folder).await?;
    let evaluated = evaluated(context, &running, planned, &options.agent).await;
    running.stop().await;
    let now = evaluated?;
    if let Some(file) = &options.save {
        let text = format!("{:#}\n", serde_json::to_value(&now)?);
        std::fs::write(file, text).map_err(|error| {
            Failure::unknown(format!("cannot write {}: {error}", file.display()))
        })?;
    }
    conclude(context, &now, before.as_ref(), &options.case)
}

fn known(context: &Context, name: &str) -> Result<(), Failure> {
    if context.agents.iter().any(|agent| agent.name() == name) {
        return Ok(());
    }
    let names: Vec<&str> = context.agents.iter().map(|agent| agent.name()).collect();
    Err(Failure::usage(format!("no agent is named `{name}`"))
        .hint(format!("the agents are: {}", names.join(", "))))
}

fn chosen(cases: Vec<Case>, names: &[String]) -> Result<Vec<Case>, Failure> {
    if let Some(name) = names.iter().find(|name| !cases.iter().any(|case| case.name == **name)) {
        return Err(Failure::usage(format!("no case is named `{name}`")));
    }
    let is_chosen = |case: &Case| names.is_empty() || names.contains(&case.name);
    Ok(cases.into_iter().filter(is_chosen).collect())
}

fn read_baseline(file: &Path) -> Result<Baseline, Failure> {
    let named = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read the baseline {}: {error}", file.display()))
            .hint("write one with --save FILE")
    };
    let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}

/// All runs: each case, with each model, as often as asked.
fn planned<'a>(
    context: &Context,
    options: &args::Eval,
    cases: &'a [Case],
    models: &'a [String],
) -> Result<Vec<Planned<'a>>, Failure> {
    let mut planned = Vec::new();
    let mut skipped = 0;
    for model in models {
        for case in cases {
            let Some(name) = model_of(case, model) else {
                skipped += 1;
                continue;
            };
            for _ in 0..options.repeat.get() {
                let mut detail = case.detail(&context.extensions)?;
                detail.insert("agent".to_owned(), json!(options.agent));
                detail.insert("model".to_owned(), json!(name));
                let key = format!("eval/{}", SessionId::fresh());
                detail.insert("dedupe_key".to_owned(), json!(key));
                planned.push(Planned { case, model, detail });
            }
        }
    }
    if skipped > 0 {
        output::say(&format!(
            "{skipped} cases have no transcript and are not run with `{TRANSCRIPT}`"
        ));
    }
    if planned.is_empty() {
        return Err(Failure::usage("there is nothing to run"));
    }
    Ok(planned)
}

/// The model of a trigger; `None` for a case without the recording that was asked for.
fn model_of(case: &Case, model: &str) -> Option<String> {
    if model != TRANSCRIPT {
        return Some(model_name(model.to_owned()));
    }
    case.transcript().map(|file| format!("{TRANSCRIPT}:{}", file.display()))
}

async fn evaluated(
    context: &Context,
    stack: &own_stack::Running,
    planned: Vec<Planned<'_>>,
    agent: &str,
) -> Result<Baseline, Failure> {
    let endpoint = stack.url().parse().map_err(Failure::unknown)?;
    let mut context = context.clone();
    context.endpoint = endpoint;
    context.is_endpoint_named = true;
    context.data = Some(stack.folder().to_owned());
    let context = &context;
    let runner = Runner {
        context,
        clients: Clients::new(context).await,
        reader: Reader::open_in(context, stack.folder())?,
    };
    let runner = &runner;
    let mut now = Baseline { agent: agent.to_owned(), ..Baseline::default() };
    let mut runs = stream::iter(&planned)
        .map(|planned| async move { (planned, runner.run(planned).await) })
        .buffered(RUNS_AT_A_TIME);
    let mut table = Table::new(context, &planned);
    while let Some((planned, run)) = runs.next().await {
        let run = run?;
        let found = judge::disagreements(planned.case, &run);
        let is_false_clear = judge::is_false_clear(planned.case, &run);
        now.add(planned.model, &planned.case.name, found.is_empty(), is_false_clear);
        table.row(planned, &run, &found, is_false_clear)?;
    }
    table.totals(&now)?;
    Ok(now)
}

fn conclude(
    context: &Context,
    now: &Baseline,
    before: Option<&Baseline>,
    chosen: &[String],
) -> Result<Exit, Failure> {
    let Some(before) = before else {
        return Ok(if now.agrees() { Exit::Succeeded } else { Exit::Failed });
    };
    let (regressions, new) = (now.regressions(before, chosen), now.new_cases(before));
    if context.json {
        output::json(&json!({"type": "comparison", "regressions": regressions, "new": new}))?;
    } else {
        output::lines(regressions.iter().map(|what| format!("regression: {what}")))?;
        output::lines(new.iter().map(|what| format!("new: {what}")))?;
        if regressions.is_empty() {
            output::line("no regression against the baseline")?;
        }
    }
    Ok(if regressions.is_empty() { Exit::Succeeded } else { Exit::Failed })
}

/// Makes runs on one stack.
struct Runner<'a> {
    context: &'a Context,
    clients: Clients,
    reader: Reader,
}

impl Runner<'_> {
    async fn run(&self, planned: &Planned<'_>) -> Result<Run, Failure> {
        let context = self.context;
        let files = input::named(&planned.detail, &context.agents, &context.extensions);
        grant(context.data.as_deref().unwrap_or(Path::new(".")), &files);
        let id = self.clients.trigger(&planned.detail).await?;
        self.follow(planned.case, id).await
    }

    /// Follows a session to its end, and answers its questions as the case does.
    async fn follow(&self, case: &Case, id: SessionId) -> Result<Run, Failure> {
        let agents = Arc::clone(&self.context.agents);
        let mut feed = Feed::new(self.reader.store.clone(), id.clone(), agents);
        let (mut calls, mut answered) = (Vec::new(), Vec::new());
        let mut news_at = Instant::now();
        loop {
            let items = feed.next(READ_TIMEOUT).await?;
            if items.is_empty() {
                if news_at.elapsed() > SILENCE_MAX {
                    let seconds = SILENCE_MAX.as_secs();
                    let problem = format!("session {id} has written no record for {seconds} s");
                    return Err(Failure::unknown(problem));
                }
                continue;
            }
            news_at = Instant::now();
            calls.extend(items.into_iter().filter_map(made));
            let session = feed.view(reader::now());
            if session.status.is_terminal() {
                return Ok(Run::of(&session, calls, false));
            }
            if !self.answer(case, &session, &mut answered).await? {
                return Ok(Run::of(&session, calls, true));
            }
        }
    }

    /// Answers the open question, if there is a new one; `false` if the case has no answer left.
    async fn answer(
        &self,
        case: &Case,
        session: &Session,
        answered: &mut Vec<(u32, bool)>,
    ) -> Result<bool, Failure> {
        let Some(question) = &session.open_question else { return Ok(true) };
        if answered.iter().any(|(id, _)| *id == question.question_id) {
            return Ok(true);
        }
        let used = answered.iter().filter(|(_, is_of_case)| *is_of_case).count();
        let Some((answer, is_of_case)) = case.answer(question.tool.is_some(), used) else {
            return Ok(false);
        };
        answered.push((question.question_id, is_of_case));
        let mut body = Value::Object(answer);
        body["question_id"] = question.question_id.into();
        body["digest"] = question.digest.as_str().into();
        let action = Action::Answer(body);
        Box::pin(steer::apply(self.context, &self.reader, &session.session_id, &action)).await?;
        Ok(true)
    }
}

/// The tool call whose outcome this record is.
fn made(item: Item) -> Option<(String, Value)> {
    let Item::Step(step, Some(call)) = item else { return None };
    let is_outcome = matches!(step.body, StepBody::Outcome { .. });
    (is_outcome && call.tool != CATALOGUE).then(|| (call.tool.clone(), call.arguments))
}

/// The table, or its rows as JSON.
struct Table {
    is_json: bool,
    /// Widths of the columns of case and model.
    widths: [usize; 2],
    runs: Vec<(String, Run)>,
}

impl Table {
    fn new(context: &Context, planned: &[Planned<'_>]) -> Self {
        let width = |names: &mut dyn Iterator<Item = &str>| names.map(str::len).max().unwrap_or(0);
        let cases = width(&mut planned.iter().map(|planned| planned.case.name.as_str()));
        let models = width(&mut planned.iter().map(|planned| planned.model));
        Self { is_json: context.json, widths: [cases.max(4), models.max(5)], runs: Vec::new() }
    }

    fn row(
        &mut self,
        planned: &Planned<'_>,
        run: &Run,
        found: &[String],
        is_false_clear: bool,
    ) -> Result<(), Failure> {
        let (case, model) = (&planned.case.name, planned.model);
        if self.is_json {
            output::json(&json!({
                "type": "run", "case": case, "model": model, "session_id": run.session,
                "agrees": found.is_empty(), "disagreements": found, "false_clear": is_false_clear,
                "verdict": run.verdict, "word": run.word, "calls": run.calls.len(),
                "tokens": run.tokens, "usd": run.usd, "elapsed_ms": run.elapsed_ms,
            }))?;
        } else {
            let [wide, narrow] = self.widths;
            if self.runs.is_empty() {
                output::line(&format!(
                    "{:<wide$}  {:<narrow$}  AGREES  {:<8}  {:>5}  {:>7}  {:>8}  {:>7}  SESSION",
                    "CASE", "MODEL", "VERDICT", "CALLS", "TOKENS", "USD", "TOOK"
                ))?;
            }
            let agrees = if found.is_empty() { "yes" } else { "NO" };
            output::line(&clean(&format!(
                "{case:<wide$}  {model:<narrow$}  {agrees:<6}  {:<8}  {:>5}  {:>7}  {:>8.4}  {:>5.1} s  {}",
                run.verdict.as_str(),
                run.calls.len(),
                run.tokens,
                run.usd,
                seconds(run.elapsed_ms),
                run.session,
            )))?;
            let clear = is_false_clear.then(|| "FALSE ALL-CLEAR".to_owned());
            output::lines(clear.iter().chain(found).map(|what| clean(&format!("    {what}"))))?;
        }
        self.runs.push((model.to_owned(), run.clone()));
        Ok(())
    }

    fn totals(&self, now: &Baseline) -> Result<(), Failure> {
        for (model, cases) in &now.models {
            let of_model = || self.runs.iter().filter(|(of, _)| of == model).map(|(_, run)| run);
            let runs: u32 = cases.values().map(|tally| tally.runs).sum();
            let agreed: u32 = cases.values().map(|tally| tally.agreed).sum();
            let clears: u32 = cases.values().map(|tally| tally.false_clears).sum();
            let tokens: u64 = of_model().map(|run| run.tokens).sum();
            let usd: f64 = of_model().map(|run| run.usd).sum();
            let mut took: Vec<u64> = of_model().map(|run| run.elapsed_ms).collect();
            took.sort_unstable();
            let median = took.get(took.len() / 2).copied().unwrap_or(0);
            if self.is_json {
                output::json(&json!({
                    "type": "total", "model": model, "cases": cases.len(), "runs": runs,
                    "agreed": agreed, "false_clears": clears, "tokens": tokens, "usd": usd,
                    "median_ms": median,
                }))?;
            } else {
                output::line(&clean(&format!(
                    "{model}: {agreed} of {runs} runs of {} cases agree, {clears} false all-clears, \
                     {tokens} tokens, ${usd:.4}, median {:.1} s",
                    cases.len(),
                    seconds(median)
                )))?;
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a session's duration is small")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
