//! `daybook chaos`: injects faults into a Lambda function, and reverts them.

use aws_diagnostics::destination::Destination;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgMatches, Args, FromArgMatches as _, Subcommand};
use extension::command::{Command, Host};
use extension::failure::{Exit, Failure};
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use serde_json::{Value, json};

use super::{Account, destination};

/// Folder of the fault records, in the stack's folder.
const RECORDS: &str = "chaos";

/// A fault to inject or to revert.
#[derive(Debug)]
pub struct Order {
    pub function: String,
    pub action: Action,
    pub destination: Destination,
    /// The required account of the credentials.
    pub account: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Remove access to these services from its role.
    Permission(Services),
    /// Set this reserved concurrency.
    Throttle(u8),
    /// Block the egress of its security groups.
    Network,
    /// Revert the fault of this name.
    Revert(&'static str),
}

/// Services to remove from a role.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Services {
    S3,
    CloudWatch,
    Both,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub text: String,
    /// The output of `--json`.
    pub json: Value,
}

/// `daybook chaos`, with optional AWS support.
pub struct Chaos {
    pub account: Option<Account>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Inject a fault into a function
    Inject(Fault),
    /// Revert a fault; safe to repeat
    Revert(Fault),
}

#[derive(Debug, Args)]
struct Fault {
    #[command(subcommand)]
    name: FaultName,
}

#[derive(Debug, Subcommand)]
enum FaultName {
    /// Remove S3, CloudWatch or both from the function's role: --target s3, cloudwatch or both
    Permission {
        // Hides the global `--target`, which this command does not use.
        /// Services to remove: s3, cloudwatch or both
        #[arg(long, value_name = "SERVICES", hide_possible_values = true, value_parser = services_parser())]
        target: Option<String>,
        #[command(flatten)]
        victim: Victim,
    },
    /// Limit the function's concurrency: --to 0 or 1
    Throttle {
        /// Concurrent invocations to allow
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
        to: Option<u8>,
        #[command(flatten)]
        victim: Victim,
    },
    /// Block all egress of the function's security groups
    Network(Victim),
}

#[derive(Debug, Args)]
struct Victim {
    /// The function
    #[arg(long, value_name = "NAME", default_value = "data-processor")]
    function: String,
    /// The required account of the current credentials
    #[arg(long, value_name = "ID")]
    account: Option<String>,
}

/// Also accepts the global option's values, which may precede the command.
fn services_parser() -> PossibleValuesParser {
    let hidden = ["local", "aws"].map(|name| PossibleValue::new(name).hide(true));
    PossibleValuesParser::new(
        ["s3", "cloudwatch", "both"].map(PossibleValue::new).into_iter().chain(hidden),
    )
}

impl Command for Chaos {
    fn definition(&self) -> clap::Command {
        Verb::augment_subcommands(clap::Command::new("chaos"))
            .about("Inject faults into a Lambda function, and revert them")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .after_help(
                "\
The original configuration is saved in .daybook/chaos before a change; revert restores it from there.
The command acts on the endpoint in AWS_ENDPOINT_URL if that is on this machine, or else on the account
of the current credentials, which --account must name.

Examples:
  daybook chaos inject permission --target s3 --account 123456789012
  daybook chaos inject throttle --to 0 --function payment-capture --account 123456789012
  daybook chaos revert permission --account 123456789012",
            )
    }

    fn run<'a>(
        &'a self,
        options: &'a ArgMatches,
        host: &'a dyn Host,
    ) -> LocalBoxFuture<'a, Result<Exit, Failure>> {
        async move {
            let surroundings = host.surroundings();
            let verb = Verb::from_arg_matches(options)?;
            let order = order(verb, surroundings.aws_endpoint_url.as_deref())?;
            let account = self.account.ok_or_else(|| Failure::not_live("AWS accounts"))?;
            let (function, action) = (order.function.clone(), order.action);
            let changes = (account.chaos)(order, surroundings.stack_folder.join(RECORDS)).await?;
            let is_undone = matches!(action, Action::Revert(_));
            if changes.is_empty() && !surroundings.json {
                host.say(&format!("nothing to revert: {function} has no such fault"));
            }
            for change in changes {
                if surroundings.json {
                    host.print_json(&json!({"undone": is_undone, "change": change.json}))?;
                } else if is_undone {
                    host.print(&[format!("undone: {}", change.text)])?;
                } else {
                    host.print(&[change.text])?;
                }
            }
            Ok(Exit::Succeeded)
        }
        .boxed_local()
    }
}

/// # Errors
/// When an option is missing, the function's name is invalid, or `--account` is missing.
fn order(verb: Verb, aws_endpoint_url: Option<&str>) -> Result<Order, Failure> {
    let missing = |what: &str| Failure::usage(format!("{what} is missing"));
    let (is_inject, fault) = match verb {
        Verb::Inject(fault) => (true, fault.name),
        Verb::Revert(fault) => (false, fault.name),
    };
    let (action, victim) = match (is_inject, fault) {
        (true, FaultName::Permission { target, victim }) => {
            let services = target.as_deref().and_then(services);
            let services = services.ok_or_else(|| missing("--target s3, cloudwatch or both"))?;
            (Action::Permission(services), victim)
        }
        (true, FaultName::Throttle { to, victim }) => {
            (Action::Throttle(to.ok_or_else(|| missing("--to 0 or 1"))?), victim)
        }
        (true, FaultName::Network(victim)) => (Action::Network, victim),
        (false, FaultName::Permission { victim, .. }) => (Action::Revert("permission"), victim),
        (false, FaultName::Throttle { victim, .. }) => (Action::Revert("throttle"), victim),
        (false, FaultName::Network(victim)) => (Action::Revert("network"), victim),
    };
    let name = &victim.function;
    let is_name = (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_name {
        return Err(Failure::usage(format!(
            "--function is `{name}`, expected a function name of letters, digits, - and _"
        )));
    }
    let destination = destination(aws_endpoint_url, victim.account.is_some()).ok_or_else(|| {
        Failure::usage("--account is required to change a function in an AWS account")
            .hint("pass --account ID, or set AWS_ENDPOINT_URL to an endpoint on this machine")
    })?;
    Ok(Order { function: victim.function, action, destination, account: victim.account })
}

fn services(text: &str) -> Option<Services> {
    match text {
        "s3" => Some(Services::S3),
        "cloudwatch" => Some(Services::CloudWatch),
        "both" => Some(Services::Both),
        _ => None,
    }
}
