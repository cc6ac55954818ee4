//! The local stack in this process, for `dev` and for the length of a run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::model::Models;
use agent::network;
use agent::tool::Servers;
use anyhow::{Context as _, anyhow};
use journal::sqlite::Durability;
use local::functions::File;
use local::stack::{Config, Isolation, Stack, StartError};
use workflow::env;

use super::servers;
use crate::args;
use crate::config::{self, StackEnvironment};
use crate::endpoint::listen_address;
use crate::failure::Failure;
use crate::ledger::{DEFAULT_FOLDER, unusable_hint};
use crate::resolve::Context;

/// Where simulations are kept, in the stack's folder.
const SIMULATIONS: &str = "pk-sim";

/// A stack that runs in this process.
pub struct Running {
    stack: Stack,
    folder: PathBuf,
}

impl Running {
    /// Its address, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        self.stack.url()
    }

    /// The folder that holds its journal.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops it cleanly.
    pub async fn stop(self) {
        self.stack.shutdown().await;
    }
}

/// Starts the stack that `dev` asks for.
///
/// # Errors
/// When it cannot listen, or its folder or its workflow cannot be used.
pub async fn for_dev(
    context: &Context,
    options: &args::Dev,
    environment: &StackEnvironment,
) -> Result<Running, Failure> {
    let mut config = config(context, &options.listen, environment).await?;
    config.durability = match options.durability {
        args::Durability::Fsync => Durability::Fsync,
        args::Durability::Relaxed => Durability::Relaxed,
    };
    config.time_scale = options.time_scale.get();
    let mut environment = environment.clone();
    if let Some(folder) = &options.plans {
        let plans = network::plans(folder).map_err(|error| {
            Failure::from(error).hint("--plans names a folder of plans; see agents/plans")
        })?;
        config.defaults.network.plans = plans;
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let folder = folder.to_string_lossy().into_owned();
        environment.handed_on.retain(|(name, _)| name != env::NETWORK_PLANS);
        environment.handed_on.push((env::NETWORK_PLANS.to_owned(), folder));
    }
    if options.isolate {
        config.isolation = isolation(context, &environment)?;
    }
    if let Some(file) = &options.workflow {
        let text = std::fs::read_to_string(file);
        config.workflow = Some(text.with_context(|| format!("cannot read {}", file.display()))?);
    }
    if let Some(file) = &options.functions {
        config.functions = functions(file)?;
    }
    start(config).await
}

/// Starts a stack at the endpoint's address for the length of a run.
///
/// # Errors
/// As [`for_dev`].
pub async fn for_a_run(
    context: &Context,
    environment: &StackEnvironment,
) -> Result<Running, Failure> {
    let listen = listen_address(&context.endpoint)
        .ok_or_else(|| Failure::usage("--endpoint names no host and port to listen on"))?;
    start(config(context, &listen, environment).await?).await
}

async fn start(config: Config) -> Result<Running, Failure> {
    let folder = config.data.clone();
    let stack = Stack::start(config).await.map_err(|error| {
        let hint = match &error {
            StartError::InUse(_) => Some(
                "reach that stack with --endpoint URL, or give this one a folder with --data DIR",
            ),
            StartError::Listen { .. } => {
                Some("choose another port: dev takes --listen, trigger --endpoint")
            }
            StartError::Token(_) => Some("set DAYBOOK_TOKEN, or listen on 127.0.0.1"),
            StartError::Journal(error) => Some(unusable_hint(error)),
            _ => None,
        };
        let failure: Failure = error.into();
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let folder = folder.canonicalize().unwrap_or(folder);
    Ok(Running { stack, folder })
}

async fn config(
    context: &Context,
    listen: &str,
    environment: &StackEnvironment,
) -> Result<Config, Failure> {
    Ok(Config {
        listen: address(listen, args::DEFAULT_LISTEN).await?,
        data: context.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER)),
        durability: Durability::Fsync,
        time_scale: 1,
        token: context.token.clone(),
        ttl_days: environment.ttl_days,
        workflow: None,
        functions: File::default(),
        agents: Arc::clone(&context.agents),
        isolation: Isolation::None,
        servers: servers(context, environment).await?,
        timeouts: environment.servers.timeouts,
        models: Models::new(environment.models.clone()),
        defaults: environment.defaults.clone(),
        admission: environment.admission,
    })
}

/// The address that a `HOST:PORT` names.
///
/// # Errors
/// When it names none.
pub async fn address(listen: &str, default: &str) -> Result<SocketAddr, Failure> {
    let looked_up = tokio::net::lookup_host(listen).await.ok().and_then(|mut found| found.next());
    looked_up.ok_or_else(|| {
        Failure::usage(format!("cannot listen on `{listen}`, expected HOST:PORT"))
            .hint(format!("such as {default}"))
    })
}

/// The servers that ship, which are this binary itself, and those of the file.
async fn servers(context: &Context, environment: &StackEnvironment) -> Result<Servers, Failure> {
    let folder = context.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER));
    let simulations = Servers::simulations(context.binary.clone(), Some(folder.join(SIMULATIONS)));
    let bundled = Servers::bundled(context.binary.clone()).with(simulations);
    Ok(bundled.with(servers::configured(context, &environment.servers).await?))
}

/// The functions that a file names, which run in its folder.
///
/// # Errors
/// The file cannot be read, or is none.
pub(super) fn functions(file: &Path) -> Result<File, Failure> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    File::parse(&text, folder, config::variable).map_err(|error| {
        Failure::from(anyhow!("{}: {error}", file.display())).hint(
            "its form is {\"functions\": {NAME: {\"command\", \"args\", \"env\", \"timeout_s\"} or {\"url\", \"timeout_s\"}}}",
        )
    })
}

/// Each session in a process of the binary `agent`, which stands beside this one.
fn isolation(context: &Context, environment: &StackEnvironment) -> Result<Isolation, Failure> {
    let program = context.binary.with_file_name("agent");
    if !program.is_file() {
        return Err(Failure::unknown(format!("there is no binary at {}", program.display()))
            .hint("build it with: cargo build -p agent --features container"));
    }
    let environment = environment.handed_on.clone();
    Ok(Isolation::Processes { program: Some(program), environment })
}
