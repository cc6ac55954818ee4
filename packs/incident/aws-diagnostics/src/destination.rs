//! Where the calls to an AWS account go.

use mcp::loopback::Loopback;

/// Where the calls to an account go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An endpoint on this machine that stands in for AWS.
    Loopback(Loopback),
    /// The account of the current credentials.
    Aws,
}
