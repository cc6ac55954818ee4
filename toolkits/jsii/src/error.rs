//! Errors of calls to the kernel.

use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel could not be started or has exited: Node.js or a package is missing, or the
    /// kernel's output on standard error says more.
    #[error("{call}: the jsii kernel cannot be reached")]
    Unreachable {
        /// The attempted call.
        call: String,
        #[source]
        cause: std::io::Error,
    },
    /// The kernel did not reply in time.
    #[error("{call}: the jsii kernel did not reply within {} s", after.as_secs())]
    Silent {
        /// The attempted call.
        call: String,
        after: Duration,
    },
    /// The kernel sent a reply that the protocol does not allow.
    #[error("{call}: invalid reply from the jsii kernel: {what}")]
    Protocol {
        /// The attempted call.
        call: String,
        /// What is wrong with the reply.
        what: String,
    },
    /// The library rejected the call: a wrong value, a duplicate name, a missing member.
    #[error("{call}{}: {message}", property.as_deref().map(|name| format!(", property `{name}`")).unwrap_or_default())]
    Refused {
        /// The attempted call; a construct is named by its class and its path in the tree.
        call: String,
        /// The property with the wrong value, if the kernel names it: `partitionKey.name`.
        property: Option<String>,
        message: String,
    },
}
