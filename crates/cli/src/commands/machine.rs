//! `workflow`: validates a state machine, runs it once, or tests it with mocked tasks, without a stack.

mod mocks;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use asl::definition::{Definition, DefinitionError, Workflow};
use asl::error_name;
use asl::execution::{Execution, Next, Outcome, Start, TaskRequest};
use asl::history::{Event, Failure as Cause};
use asl::time::Timestamp;
use comfy_table::{Table, presets};
use extension::input;
use serde_json::{Value, json};
use stack::executions::call_function;
use stack::functions::Functions;

use super::own_stack;
use crate::args::WorkflowAction;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::render::text::clean;
use crate::resolve::Context;

/// Fixed start time of a run, in milliseconds since 1970, so that runs are reproducible.
const BEGIN: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Longest payload text in the table, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Validates or runs a state machine.
///
/// # Errors
/// The file or the input cannot be read.
pub(super) async fn machine(context: &Context, action: &WorkflowAction) -> Result<Exit, Failure> {
    match action {
        WorkflowAction::Check { file } => check(context, file),
        WorkflowAction::Run { file, input, functions } => {
            let functions = functions.as_deref().map(own_stack::functions).transpose()?;
            let functions = Functions::default().with_file(functions.unwrap_or_default());
            run(context, file, input.as_deref(), &functions).await
        }
        WorkflowAction::Test { file, definition } => test(context, file, definition.as_deref()),
    }
}

fn definition(file: &Path) -> Result<Result<Definition, Vec<DefinitionError>>, Failure> {
    let text = input::text(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Definition::check(&text, Workflow::Standard))
}

fn check(context: &Context, file: &Path) -> Result<Exit, Failure> {
    match definition(file)? {
        Ok(_) => Ok(Exit::Succeeded),
        Err(errors) => refused(context, &errors),
    }
}

/// Runs the test cases of a file.
fn test(context: &Context, file: &Path, machine: Option<&Path>) -> Result<Exit, Failure> {
    let config = mocks::Config::parse(&input::json(file)?)
        .map_err(|problem| anyhow::anyhow!("invalid test file {}: {problem}", file.display()))?;
    let mut exit = Exit::Succeeded;
    for case in config.cases() {
        let machine = match (machine, case.definition) {
            (Some(machine), _) => machine.to_owned(),
            (None, Some(named)) => file.parent().unwrap_or(Path::new("")).join(named),
            (None, None) => {
                let (machine, file) = (case.machine, file.display());
                return Err(anyhow::anyhow!(
                    "the machine {machine} in {file} names no Definition\n\
                     hint: pass --definition FILE, or add \"Definition\": FILE to the machine"
                )
                .into());
            }
        };
        let problems = match definition(&machine)? {
            Ok(definition) => case.problems(definition),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        };
        if !problems.is_empty() {
            exit = Exit::Failed;
        }
        if context.json {
            output::json(&json!({
                "machine": case.machine, "case": case.name,
                "passed": problems.is_empty(), "problems": problems,
            }))?;
            continue;
        }
        let word = if problems.is_empty() { "ok" } else { "failed" };
        output::line(&clean(&format!("{word} {}/{}", case.machine, case.name)))?;
        for problem in &problems {
            output::line(&clean(&format!("  {problem}")))?;
        }
    }
    Ok(exit)
}

fn refused(context: &Context, errors: &[DefinitionError]) -> Result<Exit, Failure> {
    for error in errors {
        let (code, message) = (error.problem.code(), error.problem.to_string());
        if context.json {
            let location = error.location.as_deref();
            output::json(&json!({"code": code, "message": message, "location": location}))?;
        } else {
            output::line(&clean(&error.to_string()))?;
        }
    }
    Ok(Exit::Failed)
}

async fn run(
    context: &Context,
    file: &Path,
    input: Option<&Path>,
    functions: &Functions,
) -> Result<Exit, Failure> {
    let definition = match definition(file)? {
        Ok(definition) => definition,
        Err(errors) => return refused(context, &errors),
    };
    let input = input.map(input::json).transpose()?.unwrap_or_else(|| json!({}));
    let (history, outcome) = history(definition, &input, functions).await?;
    if context.json {
        for event in &history {
            output::json(event)?;
        }
    } else {
        output::lines(table(&history))?;
    }
    Ok(match outcome {
        Outcome::Succeeded(_) => Exit::Succeeded,
        _ => Exit::Failed,
    })
}

/// Runs to the end. Waits are skipped, and calls take no time on the clock.
async fn history(
    definition: Definition,
    input: &Value,
    functions: &Functions,
) -> Result<(Vec<Event>, Outcome), Failure> {
    let start = start(input);
    let mut execution = Execution::new(Arc::new(definition), start)?;
    let (mut history, mut now) = (Vec::new(), BEGIN);
    loop {
        let events = match execution.next(now) {
            Next::Record(events) => events,
            Next::WaitUntil(at) => {
                now = at;
                continue;
            }
            Next::RunTasks { requests, .. } => {
                let request = requests.into_iter().next();
                let request = request
                    .ok_or_else(|| Failure::unknown("the state machine requested no task"))?;
                let id = request.event_id;
                let event = match call(functions, request).await {
                    Ok(output) => execution.task_succeeded(id, &output, now)?,
                    Err(failure) => execution.task_failed(id, failure, now)?,
                };
                vec![event]
            }
            Next::Done(outcome) => return Ok((history, outcome)),
        };
        for event in &events {
            execution.apply(event)?;
        }
        history.extend(events);
    }
}

/// The start of a run.
fn start(input: &Value) -> Start {
    let name = "once".to_owned();
    Start {
        execution_arn: format!("arn:aws:states:us-east-1:000000000000:execution:machine:{name}"),
        execution_name: name,
        role_arn: "arn:aws:iam::000000000000:role/machine".to_owned(),
        state_machine_arn: "arn:aws:states:us-east-1:000000000000:stateMachine:machine".to_owned(),
        state_machine_name: "machine".to_owned(),
        input: input.to_string(),
        started_at: BEGIN,
        token_seed: "once".to_owned(),
    }
}

async fn call(functions: &Functions, request: TaskRequest) -> Result<Value, Cause> {
    if request.token.is_some() {
        let cause =
            "`daybook workflow run` cannot answer task tokens; use `daybook dev --workflow`";
        return Err(Cause::new(error_name::TASK_FAILED, Some(cause.to_owned())));
    }
    call_function(functions, &request.resource, request.arguments).await
}

fn table(history: &[Event]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    table.set_header(["ID", "AFTER", "SECONDS", "EVENT", "WHAT"]);
    for event in history {
        let millis = event.timestamp.as_millis() - BEGIN.as_millis();
        table.add_row([
            event.id.to_string(),
            event.previous_event_id.to_string(),
            format!("{}.{:03}", millis / 1_000, millis % 1_000),
            event.kind.type_name(),
            what(event),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// An event's main details on one line, truncated.
fn what(event: &Event) -> String {
    let json = serde_json::to_value(event).unwrap_or_default();
    let members = json.as_object().into_iter().flatten();
    let details = members.filter(|(name, _)| name.ends_with("Details")).map(|(_, value)| value);
    let mut words = Vec::new();
    for details in details {
        let shown = ["name", "index", "length", "input", "output", "parameters", "error", "cause"];
        for value in shown.iter().filter_map(|name| details.get(name)) {
            words.push(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    let text = clean(&words.join(" "));
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
