//! From what was typed to what is to be done: the only step that may fail on the environment.

pub mod answer;
pub mod chaos;
pub mod cloud;
pub mod payments;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::investigation;
use agent::model::settings::Unusable;
use graph::agent::Agent;
use journal::id::SessionId;
use journal::item::Hash;
use reqwest::Url;
use serde_json::{Map, Value, json};
use tools::card_transactions::Remote;
use tools::place::{Loopback, Place};
use tools::{aws_diagnostics, card_transactions, network_inventory, pk_sim};
use workflow::env;

use crate::args::{self, Args, Target, TargetName};
use crate::config::{Config, ServersEnvironment, StackEnvironment};
use crate::failure::Failure;
use crate::input;
use crate::new_agent::{self, NewAgent};
use crate::output;
use crate::render::Look;
use cloud::Cloud;

/// What every command needs to know.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where sessions run.
    pub target: Target,
    /// The local endpoint.
    pub endpoint: Url,
    /// The local stack's folder, if it was named.
    pub data: Option<PathBuf>,
    /// Whether output is JSON.
    pub json: bool,
    /// How output is to look.
    pub look: Look,
    /// The bearer token of a stack beyond loopback.
    pub token: Option<String>,
    /// What the stack in the cloud is called.
    pub cloud: Cloud,
    /// This binary.
    pub binary: PathBuf,
    /// The agents that it knows.
    pub agents: Arc<[Agent]>,
}

/// A command, ready to run.
#[derive(Debug)]
pub struct Resolved {
    /// What every command needs to know.
    pub context: Context,
    /// What is to be done.
    pub action: Action,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Run the local stack.
    Dev(args::Dev, StackEnvironment),
    /// Start a session.
    Trigger(Order),
    /// Investigate many payments.
    Investigate(payments::Batch),
    /// List sessions.
    Sessions(args::Sessions),
    /// Show a session.
    Show(args::Show),
    /// Follow a session.
    Tail(String),
    /// Ask for a session's end.
    Cancel(args::steer::Cancel),
    /// Carry a session on.
    Resume(String),
    /// Answer a question: so, or as the person at the terminal says.
    Answer(String, Option<answer::Decision>),
    /// Talk with the assistant.
    Chat(args::steer::Chat),
    /// Write a session out.
    Export(String),
    /// Take a session in.
    Import(PathBuf),
    /// Check a session.
    Verify(Subject, Option<Hash>),
    /// Serve the page at this address.
    Ui(String),
    /// List agents.
    Agents,
    /// Write the crate of an agent.
    NewAgent(NewAgent),
    /// List a server's tools.
    Tools(String, ServersEnvironment),
    /// Run a server.
    Mcp(Serving),
    /// Make data.
    Generate(args::payments::What),
    /// Break or heal a function.
    Chaos(chaos::Order),
    /// Check or run a state machine.
    Workflow(args::WorkflowDeed),
    /// Look for what is wrong with a place to run sessions.
    Doctor(Result<StackEnvironment, Unusable>),
}

/// A server to run.
#[derive(Debug)]
pub struct Serving {
    /// Which server, with what is its own.
    pub server: Served,
    /// Where it is served over HTTP, instead of on stdin and stdout.
    pub http: Option<String>,
}

/// A server of ours, with what it needs to start.
#[derive(Debug)]
pub enum Served {
    /// Diagnostics of a Lambda function.
    AwsDiagnostics(ToolSource),
    /// A described network.
    NetworkInventory(Option<PathBuf>),
    /// Pharmacokinetic simulations.
    PkSim {
        /// Models beside those that ship.
        models: Option<PathBuf>,
        /// Where the simulations are kept.
        state: Option<PathBuf>,
    },
    /// Investigations of card payments.
    CardTransactions {
        /// A file or the address of a service.
        data: String,
        /// Which service that may be.
        remote: Remote,
        /// A model that compares texts.
        embeddings: Option<PathBuf>,
    },
}

/// Where the answers of `aws-diagnostics` come from.
#[derive(Debug, PartialEq)]
pub enum ToolSource {
    /// An incident folder.
    Snapshot(PathBuf),
    /// An account, and the incident folder that is made of its answers.
    Account(Place, Option<PathBuf>),
}

impl Action {
    /// Whether it is done in an account, to a stack whose names have to be found. The doctor looks for
    /// them by itself; a trigger whose state machine is named waits for its execution, if for anything.
    pub fn is_about_an_account(&self, context: &Context) -> bool {
        let is_about_sessions = matches!(
            self,
            Self::Sessions(_)
                | Self::Show(_)
                | Self::Tail(_)
                | Self::Cancel(_)
                | Self::Resume(_)
                | Self::Answer(..)
                | Self::Chat(_)
                | Self::Export(_)
                | Self::Ui(_)
                | Self::Verify(Subject::Session(_), _)
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
    /// Whether to follow it to its end.
    pub wait: bool,
    /// What a stack is to be started with if nothing listens.
    pub with_stack: Option<StackEnvironment>,
}

/// What is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A session of the journal.
    Session(String),
    /// An exported session.
    File(PathBuf),
}

/// Resolves a command line.
///
/// # Errors
/// When it makes no sense in this environment, or a file that it names cannot be read.
pub fn resolve(args: Args, config: &Config) -> Result<Resolved, Failure> {
    if let args::Command::Chaos(chaos) = args.command {
        let services = args.global.target.and_then(chaos::services);
        // What the role loses has taken the place of where sessions run, which chaos never needs.
        let global = args::Global { target: None, ..args.global };
        let action = Action::Chaos(chaos::order(chaos.deed, services, config)?);
        return Ok(Resolved { context: context(&global, config)?, action });
    }
    let mut context = context(&args.global, config)?;
    let action = match args.command {
        args::Command::Trigger(trigger) => {
            let stack = trigger.with_stack.then(|| config.stack()).transpose();
            let stack = stack.map_err(Failure::usage)?;
            Action::Trigger(order(trigger, stack, context.target)?)
        }
        args::Command::Dev(dev) => {
            only_local(context.target, "the local stack runs on this machine")?;
            Action::Dev(dev, config.stack().map_err(Failure::usage)?)
        }
        args::Command::Investigate(investigate) => {
            only_local(
                context.target,
                "the payments are read from a file of this machine: for one in an account, \
                 trigger its agent with the URL of a transaction service",
            )?;
            let stack = investigate.with_stack.then(|| config.stack()).transpose();
            let stack = stack.map_err(Failure::usage)?;
            Action::Investigate(payments::batch(investigate, stack)?)
        }
        args::Command::Agents => Action::Agents,
        args::Command::Ui(ui) => {
            context.cloud = of_stage(ui.stage.as_deref(), &context)?;
            Action::Ui(ui.listen)
        }
        args::Command::Doctor => Action::Doctor(config.stack()),
        args::Command::Workflow(workflow) => Action::Workflow(workflow.deed),
        args::Command::New(args::New { what: args::NewWhat::Agent(new) }) => {
            Action::NewAgent(new_agent::resolve(new, &config.agents)?)
        }
        args::Command::Tools(tools) => {
            Action::Tools(tools.server, config.servers().map_err(Failure::usage)?)
        }
        args::Command::Mcp(mcp) => {
            Action::Mcp(Serving { http: mcp.http.clone(), server: served(mcp, &context, config)? })
        }
        args::Command::Generate(generate) => Action::Generate(generate.what),
        args::Command::Verify(args::Verify { file: Some(file), head, .. }) => {
            Action::Verify(Subject::File(file), head.as_deref().map(hash).transpose()?)
        }
        other => {
            if matches!(other, args::Command::Import(_)) {
                only_local(
                    context.target,
                    "an account's journal has no writers but its stack: import into one of this machine's",
                )?;
            }
            action_on_sessions(other, context.target)?
        }
    };
    Ok(Resolved { context, action })
}

fn action_on_sessions(command: args::Command, target: Target) -> Result<Action, Failure> {
    use args::Command as C;
    Ok(match command {
        C::Sessions(sessions) => Action::Sessions(sessions),
        C::Show(show) => Action::Show(show),
        C::Tail(one) => Action::Tail(one.session),
        C::Cancel(cancel) => Action::Cancel(cancel),
        C::Resume(one) => Action::Resume(one.session),
        C::Answer(answer) => Action::Answer(answer.session.clone(), answer::decision(answer)?),
        C::Chat(mut chat) => {
            chat.model = chat.model.map(|model| model_name(model, target));
            Action::Chat(chat)
        }
        C::Export(one) => Action::Export(one.session),
        C::Import(import) => Action::Import(import.file),
        C::Verify(verify) => {
            let head = verify.head.as_deref().map(hash).transpose()?;
            Action::Verify(Subject::Session(verify.session.unwrap_or_default()), head)
        }
        C::Dev(_)
        | C::Trigger(_)
        | C::Investigate(_)
        | C::Agents
        | C::New(_)
        | C::Tools(_)
        | C::Mcp(_)
        | C::Generate(_)
        | C::Chaos(_)
        | C::Doctor
        | C::Ui(_)
        | C::Workflow(_) => unreachable!("these are resolved before"),
    })
}

/// What the stack in the cloud is called, of a stage if one is named.
fn of_stage(stage: Option<&str>, context: &Context) -> Result<Cloud, Failure> {
    match (stage, context.target) {
        (None, _) => Ok(context.cloud.clone()),
        (Some(stage), Target::Aws) => Cloud::of_stage(stage),
        (Some(_), Target::Local) => {
            Err(Failure::usage("a stage is one of an account").hint("add --target aws"))
        }
    }
}

/// Refuses what works on this machine only, with why, and what to do.
fn only_local(target: Target, why: &str) -> Result<(), Failure> {
    match target {
        Target::Local => Ok(()),
        Target::Aws => {
            let problem = "this command works on this machine only (--target local)";
            Err(Failure::unknown(problem).hint(why))
        }
    }
}

fn context(global: &args::Global, config: &Config) -> Result<Context, Failure> {
    let target = match (global.target, config.target.as_deref()) {
        (Some(TargetName::Local), _) => Target::Local,
        (Some(TargetName::Aws), _) => Target::Aws,
        (Some(_), _) => {
            return Err(Failure::usage("--target is local or aws, except for chaos permission"));
        }
        (None, None | Some("local")) => Target::Local,
        (None, Some("aws")) => Target::Aws,
        (None, Some(value)) => {
            let expected = "local or aws";
            let name = env::DAYBOOK_TARGET;
            let value = value.to_owned();
            return Err(Failure::usage(env::Invalid::Malformed { name, value, expected }));
        }
    };
    let text = global.endpoint.as_deref().unwrap_or(args::DEFAULT_ENDPOINT);
    let endpoint = Url::parse(text).ok().filter(|url| url.scheme() == "http" && url.has_host());
    let endpoint = endpoint.ok_or_else(|| {
        Failure::usage(format!("--endpoint is `{text}`, expected http://HOST:PORT"))
            .hint(format!("the default is {}", args::DEFAULT_ENDPOINT))
    })?;
    Ok(Context {
        target,
        endpoint,
        data: global.data.clone(),
        json: global.json,
        look: output::look(),
        token: config.token.clone(),
        cloud: Cloud::of(config)?,
        binary: config.binary.clone(),
        agents: Arc::clone(&config.agents),
    })
}

fn order(
    trigger: args::Trigger,
    with_stack: Option<StackEnvironment>,
    target: Target,
) -> Result<Order, Failure> {
    let mut detail = input::detail(trigger.detail.as_deref())?;
    if let Some(path) = &trigger.input {
        let input = input::read(path, target)?;
        if input.is_incident && !detail.contains_key("agent") {
            detail.insert("agent".to_owned(), json!(local::view::INCIDENT_AGENT));
        }
        // Whoever looks at a saved incident again means to: it is no alarm that rang twice.
        if input.is_incident && !detail.contains_key("dedupe_key") {
            let key = format!("folder/{}", SessionId::fresh());
            detail.insert("dedupe_key".to_owned(), json!(key));
        }
        if input.is_network && !detail.contains_key("agent") {
            detail.insert("agent".to_owned(), json!(agent::network::AGENT));
        }
        detail.insert("input".to_owned(), input.json);
    }
    if let Some(agent) = trigger.agent {
        detail.insert("agent".to_owned(), json!(agent));
    }
    if detail.get("agent").is_some_and(|agent| agent == investigation::AGENT)
        && target == Target::Local
        && let Some(input) = detail.get_mut("input")
    {
        input::find_data(input, trigger.input.as_deref());
    }
    if let Some(model) = trigger.model {
        detail.insert("model".to_owned(), json!(model_name(model, target)));
    }
    Ok(Order { detail, wait: trigger.wait, with_stack })
}

/// The stack may run in another folder: the path of a transcript is made absolute.
fn model_name(model: String, target: Target) -> String {
    let Some(file) = model.strip_prefix("transcript:").filter(|_| target == Target::Local) else {
        return model;
    };
    match Path::new(file).canonicalize() {
        Ok(absolute) => format!("transcript:{}", absolute.display()),
        Err(_) => model,
    }
}

fn hash(text: &str) -> Result<Hash, Failure> {
    let is_hash = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hash {
        let problem = format!("--head is `{text}`, expected 64 hexadecimal digits");
        return Err(Failure::usage(problem));
    }
    Ok(Hash::from_record(&text.to_ascii_lowercase()))
}

/// A server with the options that are its own, and with no other's.
fn served(mcp: args::Mcp, context: &Context, config: &Config) -> Result<Served, Failure> {
    let name = server(&mcp.server)?;
    let given = [
        ("--snapshot", aws_diagnostics::INFO.name, mcp.snapshot.is_some()),
        ("--record", aws_diagnostics::INFO.name, mcp.record.is_some()),
        ("--inventory", network_inventory::INFO.name, mcp.inventory.is_some()),
        ("--models", pk_sim::INFO.name, mcp.models.is_some()),
        ("--state", pk_sim::INFO.name, mcp.state.is_some()),
        ("--allow-remote", card_transactions::INFO.name, mcp.allow_remote),
        ("--embeddings", card_transactions::INFO.name, mcp.embeddings.is_some()),
    ];
    if let Some((option, owner, _)) = given.iter().find(|(_, owner, is)| *is && *owner != name) {
        return Err(Failure::usage(format!("{option} is an option of {owner}, not of {name}")));
    }
    if name == network_inventory::INFO.name {
        return Ok(Served::NetworkInventory(mcp.inventory));
    }
    if name == pk_sim::INFO.name {
        return Ok(Served::PkSim { models: mcp.models, state: mcp.state });
    }
    if name == card_transactions::INFO.name {
        return payments::served(context, mcp.allow_remote, mcp.embeddings);
    }
    tool_source(mcp.snapshot, mcp.record, context.target, config).map(Served::AwsDiagnostics)
}

/// A real account only if somebody says so: what AWS_ENDPOINT_URL names is asked only on this
/// machine, for it may be anything.
fn tool_source(
    snapshot: Option<PathBuf>,
    record: Option<PathBuf>,
    target: Target,
    config: &Config,
) -> Result<ToolSource, Failure> {
    if let Some(folder) = snapshot {
        return Ok(ToolSource::Snapshot(folder));
    }
    let endpoint = config.aws_endpoint_url.as_deref().and_then(Loopback::of);
    let place = match (endpoint, target) {
        (Some(endpoint), _) => Place::Loopback(endpoint),
        (None, Target::Aws) => Place::Aws,
        (None, Target::Local) => {
            return Err(Failure::usage("there is nothing to answer from").hint(
                "name an incident folder with --snapshot DIR, or ask the account of the current \
                 credentials with --target aws",
            ));
        }
    };
    Ok(ToolSource::Account(place, record))
}

fn server(name: &str) -> Result<&'static str, Failure> {
    let known = tools::servers().iter().find(|server| server.name == name);
    known.map(|server| server.name).ok_or_else(|| no_such_server(name, &[]))
}

/// There is no server of this name, neither of ours nor of those that are configured.
pub fn no_such_server(name: &str, configured: &[&str]) -> Failure {
    let ours = tools::servers().iter().map(|server| server.name);
    let names: Vec<_> = ours.chain(configured.iter().copied()).collect();
    Failure::usage(format!("there is no MCP server `{name}` here"))
        .hint(format!("there is {}", names.join(", ")))
}
