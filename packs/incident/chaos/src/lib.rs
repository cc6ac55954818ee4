//! Breaks a Lambda function for a test, and reverts it.
//!
//! A fault is a list of [`change::Change`]s, each with the previous value. `plan` computes them and
//! only reads; `record` writes them to disk; then they are made. After any interruption, a crash
//! included, [`Chaos::revert`] can restore everything, and is safe to repeat.

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

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The function's role may no longer use these services.
    Permission(Services),
    /// So many invocations may run at a time: 0 or 1.
    Throttle(u8),
    /// Nothing leaves the function's security groups. They cannot deny, so what they allow is
    /// removed; whatever else is in them loses its way out, too.
    Network,
}

/// The services that a role loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Services {
    /// S3.
    S3,
    /// CloudWatch: logs and metrics.
    CloudWatch,
    /// Both of them.
    Both,
}

/// The kinds of faults, of which a function has each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Fault::Permission`].
    Permission,
    /// [`Fault::Throttle`].
    Throttle,
    /// [`Fault::Network`].
    Network,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Permission, Self::Throttle, Self::Network];

    /// Its name, in commands and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Throttle => "throttle",
            Self::Network => "network",
        }
    }
}

impl Fault {
    /// Its kind.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Permission(_) => Kind::Permission,
            Self::Throttle(_) => Kind::Throttle,
            Self::Network => Kind::Network,
        }
    }
}

/// Where faults are made and written down.
#[derive(Debug)]
pub struct Chaos {
    clients: Clients,
    destination: Destination,
    /// Of the credentials, as AWS says.
    account: String,
    region: String,
    folder: PathBuf,
}

/// Why nothing was broken or healed, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This is a real account, and nobody named it; nothing was changed.
    #[error(
        "the credentials are those of account {account}, and nobody said that it may be broken"
    )]
    NotNamed {
        /// The account.
        account: String,
    },
    /// The credentials are not those of the account that was named; nothing was changed.
    #[error("the credentials are those of account {account}, not of {named}")]
    AnotherAccount {
        /// The account of the credentials.
        account: String,
        /// The one that was named or recorded.
        named: String,
    },
    /// A record says that the function has such a fault; it has to be reverted first.
    #[error("{function} has a {} fault already, says {}", kind.name(), record.display())]
    Already {
        /// The function.
        function: String,
        /// The fault.
        kind: Kind,
        /// The record.
        record: PathBuf,
    },
    /// There is nothing to take away; nothing was changed.
    #[error("{0}")]
    NothingToBreak(String),
    /// The policy allows too much at once to take one service out; nothing was changed.
    #[error("policy {policy} allows {action}: one service cannot be taken out of that")]
    TooBroad {
        /// The policy.
        policy: String,
        /// The action, or `NotAction`.
        action: String,
    },
    /// A call gave no answer. What the record names may have been changed in part.
    #[error(transparent)]
    Call(#[from] CallError),
    /// An answer cannot be understood; nothing was changed.
    #[error("{0}")]
    Malformed(String),
    /// The record cannot be written or read; nothing was changed.
    #[error("cannot keep the record {}", path.display())]
    Record {
        /// Where it is.
        path: PathBuf,
        /// What the file system said, or the JSON reader.
        #[source]
        source: std::io::Error,
    },
}

impl Chaos {
    /// Finds out whose account it is. A real one has to be named; another than the named one is
    /// refused, wherever it is. Records are kept in the folder, which is made when it is needed.
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

    /// Breaks a function: writes down what will be changed, changes it, and says what it was.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Call`] the record may be there and the changes made in part;
    /// [`Chaos::revert`] puts all of it back.
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

    /// Heals a function of a fault, and says what was put back: nothing if there is no record.
    ///
    /// # Errors
    /// [`Error`]. The record stays until all is put back, so that it can be tried again.
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

/// Where the record of a fault is. A function's name has no dot and no slash.
fn record_of(folder: &Path, function: &str, kind: Kind) -> PathBuf {
    folder.join(format!("{function}.{}.json", kind.name()))
}
