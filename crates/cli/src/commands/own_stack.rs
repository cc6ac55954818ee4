//! The local stack in this process, for `dev`, `eval` and `--with-stack`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::model::Models;
use agent::tool::Servers;
use anyhow::{Context as _, anyhow};
use extension::server::socket_address;
use files::{GRANTS_FOLDER, Roots};
use graph::profile::Limits;
use journal::sqlite::{Durability, Migrated};
use notify::Settings;
use stack::functions::File;
use stack::stack::{Config, Isolation, Stack, StartError};

use workflow::env;

use super::servers;
use crate::args;
use crate::caps;
use crate::config::{self, StackEnvironment};
use crate::endpoint::listen_address;
use crate::failure::Failure;
use crate::reader::{DEFAULT_FOLDER, unusable_hint};
use crate::resolve::Context;

/// A stack running in this process.
pub struct Running {
    stack: Stack,
    folder: PathBuf,
}

impl Running {
    /// `http://HOST:PORT`.
    pub fn url(&self) -> String {
        self.stack.url()
    }

    /// The folder that holds its journal.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The schema versions of its journal before and after the start, if they differ.
    pub fn migrated(&self) -> Option<Migrated> {
        self.stack.store().migrated()
    }

    /// Waits until the stack was drained. Returns the number of sessions that are still at work then.
    pub async fn drained(&self) -> usize {
        self.stack.load().drained().await
    }

    /// Shuts it down cleanly.
    pub async fn stop(self) {
        self.stack.shutdown().await;
    }
}

/// The configuration of the stack for `dev`.
///
/// # Errors
/// When a setting is invalid, or a file that it names.
pub async fn for_dev(
    context: &Context,
    options: &args::Dev,
    environment: &StackEnvironment,
) -> Result<Config, Failure> {
    let environment = &caps::with_options(environment, &options.load);
    let roots = roots(context, &options.allow, environment)?;
    let mut config = config(context, &options.listen, environment, &roots).await?;
    config.durability = match options.durability {
        args::Durability::Fsync => Durability::Fsync,
        args::Durability::Relaxed => Durability::Relaxed,
    };
    config.encrypt |= options.encrypt;
    config.time_scale = options.time_scale.get();
    config.accepts_loss = options.accept_loss;
    if let Some(file) = &options.notify {
        config.notify = Some(notify(file)?);
    }
    if options.isolate {
        config.isolation = isolation(context, environment, &roots)?;
    }
    if let Some(file) = &options.workflow {
        let text = std::fs::read_to_string(file);
        config.workflow = Some(text.with_context(|| format!("cannot read {}", file.display()))?);
    }
    if let Some(file) = &options.functions {
        config.functions = functions(file)?;
    }
    Ok(config)
}

/// Starts a stack at the endpoint's address for one run.
///
/// # Errors
/// As [`for_dev`].
pub async fn for_a_run(
    context: &Context,
    environment: &StackEnvironment,
) -> Result<Running, Failure> {
    let listen = listen_address(&context.endpoint)
        .ok_or_else(|| Failure::usage("--endpoint has no host and port to listen on"))?;
    let roots = roots(context, &[], environment)?;
    start(config(context, &listen, environment, &roots).await?).await
}

/// Starts a stack without hourly limits for an evaluation, in this folder, on a free port.
///
/// # Errors
/// As [`for_dev`].
pub async fn for_eval(
    context: &Context,
    environment: &StackEnvironment,
    data: &Path,
) -> Result<Running, Failure> {
    let mut context = context.clone();
    context.data = Some(data.to_owned());
    let roots = roots(&context, &[], environment)?;
    let mut config = config(&context, "127.0.0.1:0", environment, &roots).await?;
    config.admission = Limits::off();
    config.notify = None;
    start(config).await
}

/// Starts a stack.
///
/// # Errors
/// When it cannot listen, or its folder or workflow is unusable.
pub async fn start(config: Config) -> Result<Running, Failure> {
    let folder = config.data.clone();
    let stack = Stack::start(config).await.map_err(|error| {
        let hint = match &error {
            StartError::InUse(_) => Some(
                "use that stack with --endpoint URL, or start this one in another folder with --data DIR",
            ),
            StartError::Listen { .. } => {
                Some("choose another port, with --listen for dev or --endpoint for trigger")
            }
            StartError::Token(_) => Some("set DAYBOOK_TOKEN, or listen on 127.0.0.1"),
            StartError::Journal(error) => Some(unusable_hint(error)),
            StartError::Missing(_) => Some(
                "put the file back, or restore a backup: daybook restore FILE --replace; or go on without it: daybook dev --accept-loss",
            ),
            StartError::EncryptedIsolation => Some("start it without --isolate"),
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
    roots: &Roots,
) -> Result<Config, Failure> {
    Ok(Config {
        listen: socket_address(listen, args::DEFAULT_LISTEN).await?,
        data: data_folder(context),
        accepts_loss: false,
        durability: Durability::Fsync,
        encrypt: environment.encrypt,
        time_scale: 1,
        clock: None,
        keys: context.keys.clone(),
        witnesses: environment.witnesses.clone(),
        token: context.token.clone(),
        token_name: context.token_name()?,
        ttl_days: environment.ttl_days,
        workflow: None,
        functions: File::default(),
        agents: Arc::clone(&context.agents),
        isolation: Isolation::None,
        servers: servers(context, environment, roots).await?,
        timeouts: environment.servers.timeouts,
        models: Models::new(environment.models.clone()).with_roots(roots.clone()),
        defaults: environment.defaults.clone(),
        admission: environment.admission.clone(),
        notify: environment.notify.as_deref().map(notify).transpose()?,
        load: caps::checked(&environment.load, &context.agents)?,
    })
}

fn data_folder(context: &Context) -> PathBuf {
    context.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER))
}

/// The paths that triggers may name: what is below the working directory and the allowed folders, the
/// transcripts that the environment names, and what the command line grants.
fn roots(
    context: &Context,
    allowed: &[PathBuf],
    environment: &StackEnvironment,
) -> Result<Roots, Failure> {
    for path in allowed.iter().chain(&environment.allowed) {
        if let Err(error) = path.canonicalize() {
            let problem = format!("cannot allow {}: {error}", path.display());
            return Err(Failure::usage(problem)
                .hint("--allow and DAYBOOK_ALLOWED_PATHS name existing folders or files"));
        }
    }
    let allowed = allowed.iter().chain(&environment.allowed).cloned();
    let roots = Roots::new(allowed.chain(config::working_folder()));
    let grants = std::path::absolute(data_folder(context).join(GRANTS_FOLDER))?;
    Ok(roots.and(environment.defaults.transcripts()).with_grants(&grants))
}

/// The bundled servers, which this binary serves, and those of the configuration file.
async fn servers(
    context: &Context,
    environment: &StackEnvironment,
    roots: &Roots,
) -> Result<Servers, Failure> {
    let folder = data_folder(context);
    let bundled = Servers::bundled(&context.binary, &context.agents).with_state_folder(&folder);
    let bundled = bundled.with_roots(roots);
    Ok(bundled.with(servers::configured(context, &environment.servers).await?))
}

/// Reads a file of functions, which run in its folder.
///
/// # Errors
/// When the file cannot be read or is invalid.
pub(super) fn functions(file: &Path) -> Result<File, Failure> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    File::parse(&text, folder, config::variable).map_err(|error| {
        Failure::from(anyhow!("{}: {error}", file.display())).hint(
            "its format is {\"functions\": {NAME: {\"command\", \"args\", \"env\", \"timeout_s\"} or {\"url\", \"timeout_s\"}}}",
        )
    })
}

/// Reads a notify file, and the secrets that it names from the environment.
///
/// # Errors
/// When the file cannot be read or is invalid, or a secret is missing.
fn notify(file: &Path) -> Result<Settings, Failure> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Settings::parse(&text, config::variable).map_err(|error| {
        Failure::usage(format!("{}: {error}", file.display())).hint("docs/notify.md has an example")
    })
}

/// Runs each session in a process of the binary `agent` in the folder of this binary, else of this binary, which has the
/// same program if it was built for an account.
fn isolation(
    context: &Context,
    environment: &StackEnvironment,
    roots: &Roots,
) -> Result<Isolation, Failure> {
    let beside = context.binary.with_file_name("agent");
    let (program, arguments) = match as_agent() {
        _ if beside.is_file() => (beside, Vec::new()),
        Some(argument) => (context.binary.clone(), vec![argument.to_owned()]),
        None => {
            return Err(Failure::unknown(format!("no binary at {}", beside.display()))
                .hint("build it with: cargo build -p agent --features container --profile local"));
        }
    };
    let mut environment = environment.handed_on.clone();
    let allowed = roots.variable().context("a path that triggers may name cannot be handed on")?;
    let grants = roots.grants().unwrap_or(Path::new(""));
    environment.extend([
        (env::DAYBOOK_ALLOWED_PATHS.to_owned(), allowed.to_string_lossy().into_owned()),
        (env::DAYBOOK_GRANTS_FOLDER.to_owned(), grants.to_string_lossy().into_owned()),
    ]);
    Ok(Isolation::Processes { program: Some(program), arguments, environment })
}

/// The argument that makes this binary an agent's program, if it has that program.
fn as_agent() -> Option<&'static str> {
    #[cfg(feature = "live")]
    return Some(agent::container::COMMAND);
    #[cfg(not(feature = "live"))]
    None
}
