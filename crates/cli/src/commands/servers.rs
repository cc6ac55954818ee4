//! Loads the MCP servers of the configuration file, with their secrets.

use agent::tool::Servers;
use agent::tool::parameters::ParameterStore;
use agent::tool::servers::LoadError;
use anyhow::{Context as _, anyhow};
#[cfg(feature = "live")]
use aws_config::environment::EnvironmentVariableRegionProvider;
#[cfg(feature = "live")]
use mcp::loopback::Loopback;

#[cfg(feature = "live")]
use crate::args::Target;
use crate::config::{self, ServersEnvironment};
use crate::failure::Failure;
use crate::resolve::Context;

/// Reads the configuration file, if there is one, and the secrets that it refers to.
///
/// # Errors
/// When the file or a secret cannot be read. Failures contain no secrets.
pub async fn configured(
    context: &Context,
    environment: &ServersEnvironment,
) -> Result<Servers, Failure> {
    let mut servers = Servers::default();
    if let Some(text) = &environment.project {
        let store = parameter_store(context, environment).await;
        let of_project = Servers::load(text, config::variable, &store).await;
        servers = of_project.map_err(|error| anyhow!("{}: {error}", agent::project::FILE))?;
    }
    let Some(file) = &environment.file else { return Ok(servers) };
    let name = workflow::env::DAYBOOK_MCP_SERVERS;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}, set by {name}", file.display()))?;
    let store = parameter_store(context, environment).await;
    let of_file = Servers::load(&text, config::variable, &store).await;
    of_file.map(|of_file| servers.with(of_file)).map_err(|error| {
        let hint = match &error {
            LoadError::File(_) => None,
            LoadError::Parameter(_) => Some(
                "set AWS_ENDPOINT_URL_SSM or AWS_ENDPOINT_URL to an endpoint on this machine; or write \
                 `${env:NAME}` and set that variable",
            ),
        };
        let failure: Failure = anyhow!("{}, set by {name}: {error}", file.display()).into();
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// The store for parameters: an AWS account only with `--target aws`, an endpoint only on this machine.
#[cfg(feature = "live")]
async fn parameter_store(context: &Context, environment: &ServersEnvironment) -> ParameterStore {
    let endpoint = environment.ssm_endpoint.as_deref().and_then(Loopback::of);
    match (endpoint, context.target) {
        (None, Target::Local) => ParameterStore::Closed("AWS is used with --target aws only"),
        (None, Target::Aws) => {
            let version = aws_config::BehaviorVersion::latest();
            ParameterStore::ssm(&aws_config::load_defaults(version).await, None)
        }
        (Some(endpoint), _) => {
            use aws_config::meta::region::ProvideRegion as _;
            let region = EnvironmentVariableRegionProvider::new().region().await;
            let config = super::cloud::local(endpoint.as_str())
                .into_builder()
                .region(region.unwrap_or(aws_config::Region::from_static(stack::names::REGION)));
            ParameterStore::ssm(&config.build(), Some(endpoint.as_str()))
        }
    }
}

#[cfg(not(feature = "live"))]
async fn parameter_store(_: &Context, _: &ServersEnvironment) -> ParameterStore {
    ParameterStore::Closed(
        "this build has no AWS support; build it with: cargo build -p cli --profile local --features live",
    )
}
