//! What can go wrong between a program and its kernel.

use std::time::Duration;

/// What a call brings.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel could not be started or went away. The stack's packages or Node.js are missing, or
    /// the kernel's own words on standard error say more.
    #[error("{call}: the jsii kernel cannot be reached")]
    Unreachable {
        /// What was to be done.
        call: String,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// The kernel did not answer in time.
    #[error("{call}: the jsii kernel said nothing for {} s", after.as_secs())]
    Silent {
        /// What was to be done.
        call: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The kernel said something that no kernel of this protocol says.
    #[error("{call}: the jsii kernel's answer is not understood: {what}")]
    Protocol {
        /// What was to be done.
        call: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The library refused: a wrong value, a name that is taken, something missing.
    #[error("{call}{}: {message}", property.as_deref().map(|name| format!(", property `{name}`")).unwrap_or_default())]
    Refused {
        /// What was to be done; a construct is named by its class and its path in the tree.
        call: String,
        /// The property with the wrong value, where the kernel says which: `partitionKey.name`.
        property: Option<String>,
        /// The library's reason.
        message: String,
    },
}
