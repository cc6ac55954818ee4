//! Where a stack's agents run: in its process, or each in a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::host::Host;
use agent::progress::Broadcast;
use aws_config::SdkConfig;
use guard::Secret;
use journal::clock::Clock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use workflow::env;

use super::{Config, Isolation, StartError, listen};
use crate::dynamodb;
use crate::endpoint::{Aws, Guard, of_agents, random};
use crate::host::{Agents, Isolated, Settings};
use crate::names;
use crate::recover::Exits;
use crate::store::Database;

/// The loopback port of isolated agents, with a token of this run.
pub(super) struct Inside {
    listener: TcpListener,
    address: SocketAddr,
    token: Secret,
}

impl Inside {
    pub(super) async fn listen(config: &Config) -> Result<Option<Self>, StartError> {
        if !matches!(config.isolation, Isolation::Processes { .. }) {
            return Ok(None);
        }
        let (listener, address) = listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        Ok(Some(Self { listener, address, token: Secret::new(&random()) }))
    }

    pub(super) fn serve(
        self,
        aws: Aws,
        stop: CancellationToken,
    ) -> Result<impl Future<Output = ()>, StartError> {
        let guard = Guard::new(Ipv4Addr::LOCALHOST.into(), Some(self.token.reveal()))?;
        Ok(guard::serve(self.listener, of_agents(aws, guard), stop.cancelled_owned()))
    }
}

pub(super) fn agents(
    config: &Config,
    progress: &Broadcast,
    store: &Database,
    clock: &Clock,
    aws: &SdkConfig,
    data: &Path,
    inside: Option<&Inside>,
) -> Result<Agents, StartError> {
    match (&config.isolation, inside) {
        (Isolation::Processes { program, arguments, environment }, Some(inside)) => {
            let program = match program {
                Some(program) => program.clone(),
                None => beside_this("agent")?,
            };
            let mut environment = environment.clone();
            environment.extend(agent_environment(inside, data));
            let time_scale = config.time_scale.max(1);
            let (clock, progress) = (clock.clone(), progress.clone());
            let token = inside.token.clone();
            let callbacks = aws_sdk_sfn::Client::new(aws);
            let exits = Some(Exits { store: store.clone(), callbacks, clock: clock.clone() });
            let settings = Settings {
                program,
                arguments: arguments.clone(),
                environment,
                token,
                clock,
                time_scale,
                progress,
                exits,
            };
            Ok(Agents::Isolated(Isolated::new(settings)?))
        }
        (Isolation::None, _) | (_, None) => {
            let host = agent::host::Config {
                agents: Arc::clone(&config.agents),
                callbacks: aws_sdk_sfn::Client::new(aws),
                clock: clock.clone(),
                servers: config.servers.clone(),
                timeouts: config.timeouts,
                models: config.models.clone(),
                defaults: config.defaults.clone(),
                progress: progress.clone(),
            };
            Ok(Agents::Here(Host::new(store.clone(), host)))
        }
    }
}

fn beside_this(name: &str) -> Result<PathBuf, StartError> {
    let this = std::env::current_exe()
        .map_err(|source| StartError::Folder { path: PathBuf::from(name), source })?;
    Ok(this.with_file_name(name))
}

/// The environment of an isolated agent, which names what its container would find in the cloud.
fn agent_environment(inside: &Inside, data: &Path) -> Vec<(String, String)> {
    [
        (env::JOURNAL_TABLE_NAME, dynamodb::TABLE_NAME),
        (env::STATE_MACHINE_ARN, names::STATE_MACHINE_ARN),
        (env::AGENT_RUNTIME_ARN, names::RUNTIME_ARN),
        (env::DAYBOOK_STATE_FOLDER, &data.to_string_lossy()),
        (env::DAYBOOK_JOURNAL_TOKEN, inside.token.reveal()),
        ("AWS_ENDPOINT_URL", &format!("http://{}", inside.address)),
        ("AWS_REGION", names::REGION),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}
