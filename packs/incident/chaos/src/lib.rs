//! Injects faults into a Lambda function for a test, and reverts them.
//!
//! A fault is a list of [`change::Change`]s, each with the previous value. `plan` computes them without
//! changing anything, `record` writes them to disk, and then they are made. After any interruption,
//! including a crash, [`Chaos::revert`] restores everything. It is safe to repeat.

mod change;
mod ec2;
mod iam;
mod plan;
mod record;

use std::path::{Path, PathBuf};

use aws_diagnostics::account::{Account, CallError};
use aws_diagnostics::destination::Destination;

pub use change::Change;
use change::Clients;
use record::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Removes the role's access to these services.
    Permission(Services),
    /// Sets the reserved concurrency: 0 or 1.
    Throttle(u8),
    /// Removes all outbound rules of the function's security groups. Everything else in these groups
    /// loses egress, too.
    Network,
}

/// Services to remove from a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Services {
    S3,
    /// CloudWatch: logs and metrics.
    CloudWatch,
    Both,
}

/// A kind of fault. A function has at most one fault of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Permission,
    Throttle,
    Network,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Permission, Self::Throttle, Self::Network];

    /// The name in commands and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Throttle => "throttle",
            Self::Network => "network",
        }
    }
}

impl Fault {
    pub const fn kind(self) -> Kind {
        match self {
            Self::Permission(_) => Kind::Permission,
            Self::Throttle(_) => Kind::Throttle,
            Self::Network => Kind::Network,
        }
    }
}

/// The account of the faults and the folder of their records.
#[derive(Debug)]
pub struct Chaos {
    clients: Clients,
    destination: Destination,
    /// The account of the credentials, according to AWS.
    account: String,
    region: String,
    folder: PathBuf,
}

/// Why a fault was not injected or reverted, or only in part.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller did not name the real account; nothing was changed.
    #[error("the credentials are for account {account}, which --account does not confirm")]
    NotNamed { account: String },
    /// The credentials are not those of the named account; nothing was changed.
    #[error("the credentials are those of account {account}, not of {named}")]
    AnotherAccount {
        account: String,
        /// The named or recorded account.
        named: String,
    },
    /// The function has a record of such a fault; revert it first.
    #[error("{function} already has a {} fault, recorded in {}", kind.name(), record.display())]
    Already { function: String, kind: Kind, record: PathBuf },
    /// There is nothing to remove; nothing was changed.
    #[error("{0}")]
    NothingToBreak(String),
    /// The policy is too broad to remove one service; nothing was changed.
    #[error("policy {policy} allows {action}, which is too broad to remove one service from")]
    TooBroad {
        policy: String,
        /// The action, or `NotAction`.
        action: String,
    },
    /// A call failed. Some of the recorded changes may have been made.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A response is invalid; nothing was changed.
    #[error("{0}")]
    Malformed(String),
    /// The record cannot be written or read; nothing was changed.
    #[error("cannot access the record {}", path.display())]
    Record {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Chaos {
    /// Checks the account of the credentials. A real account must be named, and a name must match.
    /// Records are kept in the folder, which is created when needed.
    ///
    /// # Errors
    /// [`Error::NotNamed`], [`Error::AnotherAccount`], [`Error::Call`].
    pub async fn open(
        account: &Account,
        named: Option<&str>,
        folder: PathBuf,
    ) -> Result<Self, Error> {
        let sts = aws_sdk_sts::Client::new(&account.config);
        let identity = sts.get_caller_identity().send().await;
        let identity = identity.map_err(|error| CallError::of("GetCallerIdentity", &error))?;
        let found = identity.account().unwrap_or_default().to_owned();
        match (account.destination(), named) {
            (_, Some(named)) if named != found => {
                return Err(Error::AnotherAccount { account: found, named: named.to_owned() });
            }
            (Destination::Aws, None) => return Err(Error::NotNamed { account: found }),
            _ => {}
        }
        let region = account.config.region().map(ToString::to_string).unwrap_or_default();
        Ok(Self {
            clients: Clients::new(account),
            destination: account.destination().clone(),
            account: found,
            region,
            folder,
        })
    }

    /// Injects a fault: records the changes, makes them, and returns them.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Call`] some of the recorded changes may have been made;
    /// [`Chaos::revert`] undoes them.
    pub async fn inject(&self, function: &str, fault: Fault) -> Result<Vec<Change>, Error> {
        let path = self.record(function, fault.kind());
        if path.exists() {
            let (function, kind) = (function.to_owned(), fault.kind());
            return Err(Error::Already { function, kind, record: path });
        }
        let changes = plan::plan(&self.clients, function, fault).await?;
        let record = Record {
            version: record::VERSION,
            function: function.to_owned(),
            fault: fault.kind().name().to_owned(),
            is_local: self.destination != Destination::Aws,
            account: self.account.clone(),
            region: self.region.clone(),
            changes,
        };
        record.write(&path)?;
        for change in &record.changes {
            change.make(&self.clients).await?;
        }
        Ok(record.changes)
    }

    /// Reverts a fault, and returns the undone changes: none if there is no record.
    ///
    /// # Errors
    /// [`Error`]. The record stays until all changes are undone, so that a retry is possible.
    pub async fn revert(&self, function: &str, kind: Kind) -> Result<Vec<Change>, Error> {
        let path = self.record(function, kind);
        let Some(record) = Record::read(&path)? else { return Ok(Vec::new()) };
        let here = (self.destination != Destination::Aws, &self.account, &self.region);
        if (record.is_local, &record.account, &record.region) != here {
            let named = format!("{} in {}", record.account, record.region);
            let account = format!("{} in {}", self.account, self.region);
            return Err(Error::AnotherAccount { account, named });
        }
        for change in record.changes.iter().rev() {
            change.undo(&self.clients).await?;
        }
        Record::remove(&path)?;
        Ok(record.changes)
    }

    fn record(&self, function: &str, kind: Kind) -> PathBuf {
        record_of(&self.folder, function, kind)
    }
}

/// The file of a fault's record. A function's name has no dot and no slash.
fn record_of(folder: &Path, function: &str, kind: Kind) -> PathBuf {
    folder.join(format!("{function}.{}.json", kind.name()))
}
