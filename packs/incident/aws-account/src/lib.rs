//! Runs `aws-diagnostics` and `chaos` against an AWS account.
//!
//! The AWS clients take minutes to build, so only builds with the feature `live` link this crate.

use std::path::PathBuf;

use aws_diagnostics::account::Account as Clients;
use chaos::{Chaos, Error, Fault, Kind, Services};
use extension::failure::Failure;
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use incident_cli::Account;
use incident_cli::chaos::{self as ordered, Action, Change, Order};

pub const ACCOUNT: Account = Account { open, chaos: run };

fn open(
    destination: aws_diagnostics::destination::Destination,
    record: Option<PathBuf>,
) -> LocalBoxFuture<'static, Result<aws_diagnostics::Server, aws_diagnostics::Error>> {
    async move {
        let account = Clients::open(destination).await;
        match record {
            None => Ok(aws_diagnostics::live(&account)),
            Some(folder) => aws_diagnostics::recording(&account, folder),
        }
    }
    .boxed_local()
}

fn run(order: Order, records: PathBuf) -> LocalBoxFuture<'static, Result<Vec<Change>, Failure>> {
    async move {
        let changes = changes(&order, records).await;
        let changes = changes.map_err(|error| failure(error, &order.function))?;
        changes.iter().map(shown).collect()
    }
    .boxed_local()
}

fn shown(change: &chaos::Change) -> Result<Change, Failure> {
    Ok(Change { text: change.to_string(), json: serde_json::to_value(change)? })
}

async fn changes(order: &Order, records: PathBuf) -> Result<Vec<chaos::Change>, Error> {
    let account = Clients::open(order.destination.clone()).await;
    let chaos = Chaos::open(&account, order.account.as_deref(), records).await?;
    let fault = match order.action {
        Action::Revert(name) => return revert(&chaos, &order.function, name).await,
        Action::Permission(ordered::Services::S3) => Fault::Permission(Services::S3),
        Action::Permission(ordered::Services::CloudWatch) => {
            Fault::Permission(Services::CloudWatch)
        }
        Action::Permission(ordered::Services::Both) => Fault::Permission(Services::Both),
        Action::Throttle(to) => Fault::Throttle(to),
        Action::Network => Fault::Network,
    };
    chaos.inject(&order.function, fault).await
}

async fn revert(chaos: &Chaos, function: &str, name: &str) -> Result<Vec<chaos::Change>, Error> {
    let mut undone = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.name() == name) {
        undone.extend(chaos.revert(function, kind).await?);
    }
    Ok(undone)
}

fn failure(error: Error, function: &str) -> Failure {
    let hint = match &error {
        Error::NotNamed { .. } | Error::AnotherAccount { .. } => {
            "pass --account ID; nothing was changed".to_owned()
        }
        Error::Already { kind, .. } => {
            format!("revert it with: daybook chaos revert {} --function {function}", kind.name())
        }
        Error::TooBroad { .. } | Error::NothingToBreak(_) | Error::Malformed(_) => {
            "nothing was changed".to_owned()
        }
        Error::Record { .. } => "check the record; nothing was changed".to_owned(),
        Error::Call(_) => "undo what was changed with: daybook chaos revert".to_owned(),
    };
    Failure::from(error).hint(hint)
}
