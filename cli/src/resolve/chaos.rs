//! What is to be broken or healed.

use tools::place::{Loopback, Place};

use super::{ChaosOrder, Deed, Services};
use crate::args::TargetName;
use crate::args::chaos::{Deed as DeedArgs, FaultName};
use crate::config::Config;
use crate::failure::Failure;

/// What the role loses.
pub fn services(target: TargetName) -> Option<Services> {
    match target {
        TargetName::S3 => Some(Services::S3),
        TargetName::Cloudwatch => Some(Services::CloudWatch),
        TargetName::Both => Some(Services::Both),
        TargetName::Local | TargetName::Aws => None,
    }
}

/// Resolves `chaos`.
///
/// # Errors
/// When something is missing or names no function, or a real account is not named.
pub fn order(
    deed: DeedArgs,
    services: Option<Services>,
    config: &Config,
) -> Result<ChaosOrder, Failure> {
    use FaultName as F;
    let missing = |what: &str| Failure::usage(format!("{what} is missing"));
    let (is_inject, fault) = match deed {
        DeedArgs::Inject(fault) => (true, fault.fault),
        DeedArgs::Revert(fault) => (false, fault.fault),
    };
    let (deed, victim) = match (is_inject, fault) {
        (true, F::Permission(victim)) => {
            let services = services.ok_or_else(|| missing("--target s3, cloudwatch or both"))?;
            (Deed::Permission(services), victim)
        }
        (true, F::Throttle { to, victim }) => {
            (Deed::Throttle(to.ok_or_else(|| missing("--to 0 or 1"))?), victim)
        }
        (true, F::Network(victim)) => (Deed::Network, victim),
        (false, F::Permission(victim)) => (Deed::Revert("permission"), victim),
        (false, F::Throttle { victim, .. }) => (Deed::Revert("throttle"), victim),
        (false, F::Network(victim)) => (Deed::Revert("network"), victim),
    };
    let name = &victim.function;
    let is_name = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_name {
        return Err(Failure::usage(format!("--function is `{name}`, expected a function's name")));
    }
    let place = match config.aws_endpoint_url.as_deref().and_then(Loopback::of) {
        Some(endpoint) => Place::Loopback(endpoint),
        None if victim.account.is_some() => Place::Aws,
        None => {
            let problem = "this would break a function in a real account";
            return Err(Failure::usage(problem).hint(
                "say in which with --account ID, or name an endpoint of this machine in \
                 AWS_ENDPOINT_URL",
            ));
        }
    };
    Ok(ChaosOrder { function: victim.function, deed, place, account: victim.account })
}
