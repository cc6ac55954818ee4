//! `chaos`: breaking a function on purpose, and healing it.

use crate::failure::{Exit, Failure};
use crate::resolve::Context;
use crate::resolve::chaos::Order;

/// Breaks or heals a function.
///
/// # Errors
/// When this build cannot.
#[cfg(not(feature = "live"))]
pub async fn chaos(_: &Context, _: Order) -> Result<Exit, Failure> {
    Err(crate::failure::not_live("AWS accounts"))
}

#[cfg(feature = "live")]
pub use live::chaos;

#[cfg(feature = "live")]
mod live {
    use std::path::Path;

    use serde_json::json;
    use tools::account::Account;
    use tools::chaos::{Change, Chaos, Error, Fault, Kind, Services};

    use super::{Context, Exit, Failure, Order};
    use crate::ledger::DEFAULT_FOLDER;
    use crate::output;
    use crate::resolve::chaos::{self as resolved, Deed};

    /// Below the stack's folder, where the records are.
    const RECORDS: &str = "chaos";

    /// Breaks or heals a function, and says what was changed.
    ///
    /// # Errors
    /// When it is not allowed, or not all of it was done.
    pub async fn chaos(context: &Context, order: Order) -> Result<Exit, Failure> {
        let folder = context.data.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER)).join(RECORDS);
        let account = Account::open(order.place).await;
        let chaos = Chaos::open(&account, order.account.as_deref(), folder).await;
        let chaos = chaos.map_err(|error| said(error, &order.function))?;
        let changes = match order.deed {
            Deed::Revert(name) => revert(&chaos, &order.function, name).await,
            Deed::Permission(services) => {
                let services = match services {
                    resolved::Services::S3 => Services::S3,
                    resolved::Services::CloudWatch => Services::CloudWatch,
                    resolved::Services::Both => Services::Both,
                };
                chaos.inject(&order.function, Fault::Permission(services)).await
            }
            Deed::Throttle(to) => chaos.inject(&order.function, Fault::Throttle(to)).await,
            Deed::Network => chaos.inject(&order.function, Fault::Network).await,
        };
        let changes = changes.map_err(|error| said(error, &order.function))?;
        let is_undone = matches!(order.deed, Deed::Revert(_));
        if changes.is_empty() && !context.json {
            output::say(&format!("{} has no such fault", order.function));
        }
        for change in &changes {
            if context.json {
                output::json(&json!({"undone": is_undone, "change": change}))?;
            } else if is_undone {
                output::line(&format!("undone: {change}"))?;
            } else {
                output::line(&change.to_string())?;
            }
        }
        Ok(Exit::Succeeded)
    }

    async fn revert(chaos: &Chaos, function: &str, name: &str) -> Result<Vec<Change>, Error> {
        let mut undone = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.name() == name) {
            undone.extend(chaos.revert(function, kind).await?);
        }
        Ok(undone)
    }

    fn said(error: Error, function: &str) -> Failure {
        let hint = match &error {
            Error::NotNamed { .. } | Error::AnotherAccount { .. } => {
                "name the account with --account ID; nothing was changed".to_owned()
            }
            Error::Already { kind, .. } => {
                format!("heal it with: daybook chaos revert {} --function {function}", kind.name())
            }
            Error::TooBroad { .. } | Error::NothingToBreak(_) | Error::Malformed(_) => {
                "nothing was changed".to_owned()
            }
            Error::Record { .. } => "look at the record; nothing was changed".to_owned(),
            Error::Call(_) => "what was begun is put back by: daybook chaos revert".to_owned(),
        };
        Failure::from(error).hint(hint)
    }
}
