//! Combines arguments and environment into an action. Only this step can fail on the environment.

pub mod answer;
mod checks;
pub mod cloud;
mod endpoint;
mod serving;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::model::settings::Unusable;
use agent::project::Project;
use clap::ArgMatches;
use control::halt::HaltRequest;
use extension::Extension;
use extension::command::Surroundings;
use extension::input::model_name;
use graph::agent::Agent;
use journal::halt::{Change, Scope};
use journal::principal::Name;
use reqwest::Url;
use serde_json::{Map, Value, json};
use workflow::env;

use crate::args::packs::{Parsed, Typed, of_pack};
use crate::args::{self, Target};
use crate::commands::eval::Plan;
use crate::config::{Config, ServersEnvironment, StackEnvironment};
use crate::failure::Failure;
use crate::input;
use crate::installed;
use crate::new_agent::{self, NewAgent};
use crate::output;
use crate::reader::DEFAULT_FOLDER;
use crate::render::Look;
pub use checks::Checks;
use checks::checks;
use cloud::Cloud;
use serving::serving;
pub use serving::{PackCommand, Serving, no_such_server, server};

/// Settings that every command uses.
#[derive(Clone, Debug)]
pub struct Context {
    pub target: Target,
    pub endpoint: Url,
    /// Whether the user named the endpoint, so that no other journal is read in its place.
    pub is_endpoint_named: bool,
    /// `--data`.
    pub data: Option<PathBuf>,
    pub json: bool,
    pub look: Look,
    /// The bearer token of the local stack, required beyond loopback.
    pub token: Option<String>,
    /// `DAYBOOK_TOKEN_NAME`, unchecked.
    token_name: Option<String>,
    /// The folder of the keys that sign logs of sessions.
    pub keys: Option<PathBuf>,
    /// The resource names of the stack in AWS.
    pub cloud: Cloud,
    /// Whether `AWS_ENDPOINT_URL` leads to an emulator of the account.
    pub is_emulated: bool,
    /// The path of this binary.
    pub binary: PathBuf,
    /// What `daybook.toml` configures.
    pub project: Arc<Project>,
    /// Why it cannot be used.
    pub project_problem: Option<String>,
    pub agents: Arc<[Agent]>,
    pub extensions: Arc<[Extension]>,
    /// The subset that servers and commands of packs receive.
    pub surroundings: Surroundings,
}

impl Context {
    /// The name of the token's holder, for a server that this process starts.
    ///
    /// # Errors
    /// When `DAYBOOK_TOKEN_NAME` is no name.
    pub fn token_name(&self) -> Result<Option<Name>, Failure> {
        let parsed = self.token_name.as_deref().map(str::parse).transpose();
        parsed.map_err(|_| {
            let value = self.token_name.clone().unwrap_or_default();
            let expected = "1 to 2048 visible ASCII characters";
            Failure::usage(env::Invalid::Malformed {
                name: env::DAYBOOK_TOKEN_NAME,
                value,
                expected,
            })
        })
    }
}

/// A command, ready to run.
#[derive(Debug)]
pub struct Resolved {
    pub context: Context,
    pub action: Action,
}

/// A resolved command.
#[derive(Debug)]
pub enum Action {
    Dev(args::Dev, StackEnvironment),
    Trigger(Order),
    Sessions(args::Sessions),
    Show(args::Show),
    Tail(String),
    Open(String),
    Compare(Vec<String>),
    Completions(clap_complete::Shell),
    Man,
    Cancel(args::steer::Cancel),
    Resume(args::steer::Resume),
    Erase(args::steer::Erase),
    Halts(Change, HaltRequest),
    /// The time for sessions at work to end or pause.
    Drain(Duration),
    /// Without a decision, prompts for one.
    Answer {
        session: String,
        digest: Option<String>,
        decision: Option<answer::Decision>,
    },
    Chat(args::steer::Chat),
    Export(String),
    Import(PathBuf),
    Verify(Subject, Checks),
    Backup(PathBuf),
    Restore(args::keep::Restore),
    Prune(args::keep::Prune),
    Hold(args::keep::Hold),
    Release(args::keep::Release),
    Keys(args::KeysAction),
    Witness(args::WitnessServe),
    /// Serves the page on this address.
    Ui(String),
    Agents,
    Check(args::Check, ServersEnvironment),
    NewAgent(NewAgent),
    Tools(String, ServersEnvironment),
    Mcp(Serving),
    OfPack(PackCommand),
    Workflow(args::WorkflowAction),
    Eval(Box<Plan>),
    Doctor(Result<StackEnvironment, Unusable>),
}

impl Action {
    /// Whether it needs the resource names of a stack in AWS. The doctor looks them up by itself, and a
    /// trigger with a known state machine only waits for its execution.
    pub fn is_about_an_account(&self, context: &Context) -> bool {
        let is_about_sessions = matches!(
            self,
            Self::Sessions(_)
                | Self::Show(_)
                | Self::Tail(_)
                | Self::Compare(_)
                | Self::Cancel(_)
                | Self::Resume(_)
                | Self::Erase(_)
                | Self::Answer { .. }
                | Self::Chat(_)
                | Self::Export(_)
                | Self::Ui(_)
                | Self::Halts(..)
                | Self::Verify(Subject::Session(_) | Subject::All, _)
        );
        let is_unnamed_trigger =
            matches!(self, Self::Trigger(_)) && context.cloud.state_machine_arn.is_none();
        (is_about_sessions || is_unnamed_trigger) && context.target == Target::Aws
    }
}

/// A session to start.
#[derive(Clone, Debug)]
pub struct Order {
    /// The event's detail.
    pub detail: Map<String, Value>,
    /// The files and folders that the command line names, which the stack may read.
    pub files: Vec<PathBuf>,
    /// Whether to follow it until it ends.
    pub wait: bool,
    /// Settings for the stack to start if none is listening.
    pub with_stack: Option<StackEnvironment>,
}

/// What to verify.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A session in the journal.
    Session(String),
    /// An exported session.
    File(PathBuf),
    /// Every session of the journal.
    All,
}

/// Resolves a command line.
///
/// # Errors
/// When it is invalid in this environment, or a file that it names cannot be read.
pub fn resolve(args: Parsed, config: &Config) -> Result<Resolved, Failure> {
    let mut context = context(&args.global, config)?;
    let command = match args.command {
        Typed::Own(command) => *command,
        Typed::OfPack(name, options) => {
            let command = of_pack(&config.extensions, &name);
            let starts_sessions = command.is_some_and(|command| command.starts_sessions());
            let environment = config.stack(&[]);
            let action = PackCommand { name, options, starts_sessions, environment };
            return Ok(Resolved { context, action: Action::OfPack(action) });
        }
    };
    let action = match command {
        args::Command::Trigger(trigger) => {
            let stack = trigger.with_stack.then(|| config.stack(&[])).transpose();
            let stack = stack.map_err(Failure::usage)?;
            Action::Trigger(order(trigger, stack, &context)?)
        }
        args::Command::Dev(dev) => {
            only_local(context.target, "the local stack runs on this machine; drop --target aws")?;
            let environment = dev_environment(&dev.of_packs, config)?;
            Action::Dev(dev, environment)
        }
        args::Command::Eval(options) => {
            only_local(context.target, "an evaluation starts its own stack; drop --target aws")?;
            let environment = config.stack(&[]).map_err(Failure::usage)?;
            Action::Eval(Box::new(Plan { options, environment }))
        }
        args::Command::Agents => Action::Agents,
        args::Command::Check(check) => {
            Action::Check(check, config.servers().map_err(Failure::usage)?)
        }
        args::Command::Completions(completions) => Action::Completions(completions.shell),
        args::Command::Man => Action::Man,
        args::Command::Ui(ui) => {
            context.cloud = of_stage(ui.stage.as_deref(), &context)?;
            Action::Ui(ui.listen)
        }
        args::Command::Keys(keys) => Action::Keys(keys.action),
        args::Command::Witness(args::Witness { action: args::WitnessAction::Serve(serve) }) => {
            Action::Witness(serve)
        }
        args::Command::Doctor => Action::Doctor(config.stack(&[])),
        args::Command::Workflow(workflow) => Action::Workflow(workflow.action),
        args::Command::New(args::New { what: args::NewWhat::Agent(new) }) => {
            Action::NewAgent(new_agent::resolve(new, &config.agents, &config.binary)?)
        }
        args::Command::Tools(tools) => {
            Action::Tools(tools.server, config.servers().map_err(Failure::usage)?)
        }
        args::Command::Mcp(mcp) => Action::Mcp(serving(mcp, &context)?),
        args::Command::Verify(mut verify) => {
            let subject = match (verify.file.take(), verify.session.take()) {
                (Some(file), _) => Subject::File(file),
                (None, Some(session)) => Subject::Session(session),
                (None, None) => Subject::All,
            };
            Action::Verify(subject, checks(verify)?)
        }
        other => action_on_journal(other, context.target)?,
    };
    Ok(Resolved { context, action })
}

/// The hint for what the table of an account does by itself.
const IN_ACCOUNT: &str = "an account's journal is a DynamoDB table with point-in-time recovery: restore it with AWS's own tools, see DEPLOYMENT.md";

const NO_IMPORT: &str =
    "only the stack writes to an account's journal; import into a local one with --target local";

/// Why an account's sessions are not pruned or held here.
const EXPIRES_THERE: &str = "an account's table expires its records by itself";

fn action_on_journal(command: args::Command, target: Target) -> Result<Action, Failure> {
    use args::Command as C;
    Ok(match command {
        C::Sessions(sessions) => Action::Sessions(sessions),
        C::Show(show) => Action::Show(show),
        C::Tail(one) => Action::Tail(one.session),
        C::Open(one) => Action::Open(one.session),
        C::Compare(compare) => Action::Compare(compare.sessions),
        C::Cancel(cancel) => Action::Cancel(cancel),
        C::Resume(resume) => Action::Resume(resume),
        C::Erase(erase) => Action::Erase(erase),
        C::Answer(answer) => Action::Answer {
            session: answer.session.clone(),
            digest: answer.digest.clone(),
            decision: answer::decision(answer)?,
        },
        C::Chat(mut chat) => {
            chat.model = chat.model.map(|model| model_for(model, target));
            Action::Chat(chat)
        }
        C::Export(one) => Action::Export(one.session),
        C::Import(import) => {
            only_local(target, NO_IMPORT)?;
            Action::Import(import.file)
        }
        C::Backup(backup) => {
            only_local(target, IN_ACCOUNT)?;
            Action::Backup(backup.file)
        }
        C::Restore(restore) => {
            only_local(target, IN_ACCOUNT)?;
            Action::Restore(restore)
        }
        C::Halt(halt) => Action::Halts(Change::Halt, halting(halt.agent, halt.reason)),
        C::Unhalt(unhalt) => Action::Halts(Change::Unhalt, halting(unhalt.agent, unhalt.reason)),
        C::Prune(prune) => {
            only_local(target, EXPIRES_THERE)?;
            Action::Prune(prune)
        }
        C::Hold(held) => {
            only_local(target, EXPIRES_THERE)?;
            Action::Hold(held)
        }
        C::Release(held) => {
            only_local(target, EXPIRES_THERE)?;
            Action::Release(held)
        }
        C::Drain(drain) => {
            only_local(target, "the functions and agents of an account have no stack to stop")?;
            Action::Drain(Duration::from_secs(drain.within.into()))
        }
        C::Dev(_)
        | C::Trigger(_)
        | C::Agents
        | C::Completions(_)
        | C::Man
        | C::New(_)
        | C::Check(_)
        | C::Tools(_)
        | C::Mcp(_)
        | C::Doctor
        | C::Eval(_)
        | C::Keys(_)
        | C::Ui(_)
        | C::Verify(_)
        | C::Witness(_)
        | C::Workflow(_) => unreachable!("resolved by the caller"),
    })
}

fn halting(agent: Option<String>, reason: String) -> HaltRequest {
    HaltRequest { scope: agent.map_or(Scope::All, Scope::Agent), reason }
}

/// The stack in AWS: that of `--stage`, or else that of the environment.
fn of_stage(stage: Option<&str>, context: &Context) -> Result<Cloud, Failure> {
    match (stage, context.target) {
        (None, _) => Ok(context.cloud.clone()),
        (Some(stage), Target::Aws) => Cloud::of_stage(stage),
        (Some(_), Target::Local) => Err(Failure::usage("--stage requires --target aws")
            .hint("add --target aws, or drop --stage")),
    }
}

/// Refuses `--target aws` for a local command; `why` is the hint.
fn only_local(target: Target, why: &str) -> Result<(), Failure> {
    match target {
        Target::Local => Ok(()),
        Target::Aws => Err(Failure::only_local(why)),
    }
}

fn context(global: &args::Global, config: &Config) -> Result<Context, Failure> {
    let target = match (global.target.as_deref(), config.target.as_deref()) {
        (Some("aws"), _) => Target::Aws,
        // `local`, or a value of a pack's own `--target`, which hides the global one.
        (Some(_), _) => Target::Local,
        (None, None | Some("local")) => Target::Local,
        (None, Some("aws")) => Target::Aws,
        (None, Some(value)) => {
            let expected = "local or aws";
            let name = env::DAYBOOK_TARGET;
            let value = value.to_owned();
            return Err(Failure::usage(env::Invalid::Malformed { name, value, expected }));
        }
    };
    let named = endpoint::named(global, config, target)?;
    let is_endpoint_named = named.is_some();
    let default = || Url::parse(args::DEFAULT_ENDPOINT).map_err(Failure::usage);
    let endpoint = named.map_or_else(default, Ok)?;
    let look = output::look();
    let default = || PathBuf::from(DEFAULT_FOLDER);
    let surroundings = Surroundings {
        is_in_account: target == Target::Aws,
        data: global.data.clone(),
        stack_folder: global.data.clone().unwrap_or_else(default),
        json: global.json,
        colour: look.colour,
        roots: config.roots(),
        aws_endpoint_url: config.aws_endpoint_url.clone(),
    };
    Ok(Context {
        target,
        endpoint,
        is_endpoint_named,
        data: global.data.clone(),
        json: global.json,
        look,
        token: config.token.clone(),
        token_name: config.token_name.clone(),
        is_emulated: config.aws_endpoint_url.is_some(),
        keys: config.keys.clone(),
        cloud: Cloud::of(config)?,
        binary: config.binary.clone(),
        project: Arc::clone(&config.project),
        project_problem: config.project_problem.clone(),
        agents: Arc::clone(&config.agents),
        extensions: Arc::clone(&config.extensions),
        surroundings,
    })
}

fn order(
    trigger: args::Trigger,
    with_stack: Option<StackEnvironment>,
    context: &Context,
) -> Result<Order, Failure> {
    let mut detail = input::detail(trigger.detail.as_deref())?;
    let bundled =
        trigger.input.as_deref().and_then(|path| installed::bundled(&context.binary, path));
    if let Some(path) = &bundled {
        output::say(&format!("input: {}", path.display()));
    }
    let input = bundled.or(trigger.input);
    if let Some(path) = &input {
        for (field, value) in input::read(path, context.target, &context.extensions)? {
            // `--detail` takes precedence over the fields that a folder implies, but not over its input.
            if field == "input" || !detail.contains_key(&field) {
                detail.insert(field, value);
            }
        }
    }
    if let Some(agent) = trigger.agent {
        detail.insert("agent".to_owned(), json!(agent));
    }
    if context.target == Target::Local {
        input::make_absolute(&mut detail, input.as_deref(), &context.extensions);
    }
    if let Some(model) = trigger.model {
        detail.insert("model".to_owned(), json!(model_for(model, context.target)));
    }
    let files = input::named(&detail, &context.agents, &context.extensions);
    Ok(Order { detail, files, wait: trigger.wait, with_stack })
}

/// Makes a model's name valid for this target's stack.
fn model_for(model: String, target: Target) -> String {
    if target == Target::Local { model_name(model) } else { model }
}

/// The environment of a stack, including the variables that pack options set.
fn dev_environment(options: &ArgMatches, config: &Config) -> Result<StackEnvironment, Failure> {
    let environment = config.stack(&[]).map_err(Failure::usage)?;
    let mut set = Vec::new();
    let mut hint = "";
    for dev in config.extensions.iter().filter_map(|extension| extension.dev.as_ref()) {
        let variables = (dev.variables)(options)?;
        if !variables.is_empty() {
            hint = dev.hint;
        }
        set.extend(variables);
    }
    if set.is_empty() {
        return Ok(environment);
    }
    config.stack(&set).map_err(|error| Failure::from(error).hint(hint))
}
