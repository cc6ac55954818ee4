//! The destination of AWS calls.

use mcp::loopback::Loopback;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A fake of AWS on this machine.
    Loopback(Loopback),
    /// The account of the current credentials.
    Aws,
}
