//! The MCP servers of the file that the environment names, with their secrets.

use agent::tool::Servers;
use agent::tool::parameters::ParameterStore;
use agent::tool::servers::LoadError;
use anyhow::{Context as _, anyhow};
#[cfg(feature = "live")]
use aws_config::environment::EnvironmentVariableRegionProvider;
#[cfg(feature = "live")]
use tools::place::{Loopback, Place};

#[cfg(feature = "live")]
use crate::args::Target;
use crate::config::{self, ServersEnvironment};
use crate::failure::Failure;
use crate::resolve::Context;

/// Reads the file, if one is named, and the secrets that it refers to.
///
/// # Errors
/// When one of them cannot be read or used; no secret is in the failure.
pub async fn configured(
    context: &Context,
    environment: &ServersEnvironment,
) -> Result<Servers, Failure> {
    let Some(file) = &environment.file else { return Ok(Servers::default()) };
    let name = workflow::env::DAYBOOK_MCP_SERVERS;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}, which {name} names", file.display()))?;
    let store = parameter_store(context, environment).await;
    let servers = Servers::load(&text, config::variable, &store).await;
    servers.map_err(|error| {
        let hint = match &error {
            LoadError::File(_) => None,
            LoadError::Parameter(_) => Some(
                "it is read from an endpoint of this machine that AWS_ENDPOINT_URL_SSM or \
                 AWS_ENDPOINT_URL names; or write `${env:NAME}` and set that variable",
            ),
        };
        let failure: Failure = anyhow!("{}, which {name} names: {error}", file.display()).into();
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// A real account only if somebody said so, and an endpoint only on this machine.
#[cfg(feature = "live")]
async fn parameter_store(context: &Context, environment: &ServersEnvironment) -> ParameterStore {
    let endpoint = environment.ssm_endpoint.as_deref().and_then(Loopback::of);
    let place = match (endpoint, context.target) {
        (Some(endpoint), _) => Place::Loopback(endpoint),
        (None, Target::Aws) => Place::Aws,
        (None, Target::Local) => {
            return ParameterStore::Closed("nothing says that an AWS account may be asked");
        }
    };
    match place {
        Place::Aws => {
            let version = aws_config::BehaviorVersion::latest();
            ParameterStore::ssm(&aws_config::load_defaults(version).await, None)
        }
        Place::Loopback(endpoint) => {
            use aws_config::meta::region::ProvideRegion as _;
            let region = EnvironmentVariableRegionProvider::new().region().await;
            let config = super::cloud::local(endpoint.as_str())
                .into_builder()
                .region(region.unwrap_or(aws_config::Region::from_static(local::names::REGION)));
            ParameterStore::ssm(&config.build(), Some(endpoint.as_str()))
        }
    }
}

#[cfg(not(feature = "live"))]
async fn parameter_store(_: &Context, _: &ServersEnvironment) -> ParameterStore {
    ParameterStore::Closed(
        "this build has no client for it (cargo build -p cli --profile local --features live)",
    )
}
