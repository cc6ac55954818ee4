//! What is to be broken or healed.

use tools::place::{Loopback, Place};

use crate::args::TargetName;
use crate::args::chaos::{Deed as DeedArgs, FaultName};
use crate::config::Config;
use crate::failure::Failure;

/// A function to break or to heal.
#[derive(Debug)]
#[cfg_attr(not(feature = "live"), expect(dead_code, reason = "checked here, done by other builds"))]
pub struct Order {
    /// The function.
    pub function: String,
    /// What is done to it.
    pub deed: Deed,
    /// Where it is.
    pub place: Place,
    /// The account that the credentials have to be of.
    pub account: Option<String>,
}

/// What is done to a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed {
    /// Its role loses these services.
    Permission(Services),
    /// So many invocations may run at a time.
    Throttle(u8),
    /// Nothing leaves its security groups.
    Network,
    /// A fault of this name is reverted.
    Revert(&'static str),
}

/// The services that a role loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Services {
    /// S3.
    S3,
    /// CloudWatch.
    CloudWatch,
    /// Both of them.
    Both,
}

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
) -> Result<Order, Failure> {
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
    Ok(Order { function: victim.function, deed, place, account: victim.account })
}
