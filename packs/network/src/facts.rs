//! What an answer shows: what is wrong, what is in order, what no rule knows, and what is compared with other answers.

use std::collections::BTreeSet;

use serde_json::Value;

/// Something in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fine {
    pub subjects: Vec<&'static str>,
    pub attribute: &'static str,
    pub number: Option<f64>,
    /// The object's name.
    pub name: String,
    /// What the object shows, for the names that a question mentions: an index of [`Read::tokens`].
    pub object: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub subjects: Vec<&'static str>,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub wrong: Vec<Wrong>,
    pub fine: Vec<Fine>,
    /// Parts that no rule knows, quoted.
    pub unknown: Vec<String>,
    /// Subjects that the device does not have, according to the answer.
    pub absent: Vec<&'static str>,
    /// The words of each object.
    pub tokens: Vec<Vec<String>>,
    /// Objects by subject and name, whatever their state.
    pub named: Vec<(&'static str, String)>,
    /// Objects that should be there, by subject and name.
    pub expected: Vec<(&'static str, String)>,
    /// What an operator switched off, with its subjects.
    pub off: Vec<(Vec<&'static str>, String)>,
    /// The root bridges of spanning trees.
    pub roots: Vec<Root>,
    /// The prefixes that BGP neighbors send.
    pub sends: Vec<Sends>,
    /// What was read, without the server's wrapping.
    pub content: Value,
    /// When the answer was taken, if it says so.
    pub taken_at: Option<String>,
    /// The newest time in the answer, in seconds since 1970.
    pub newest: Option<f64>,
    /// The route targets of VRFs.
    pub targets: Vec<Targets>,
    /// The device of the call, in lower case; empty if the tool takes none.
    pub device: String,
}

/// The root bridge of a spanning tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Root {
    pub address: String,
    /// Whether the device itself is the root.
    pub is_own: bool,
    /// An index of [`Read::tokens`].
    pub object: usize,
}

/// How many prefixes a BGP neighbor sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sends {
    pub name: String,
    pub remote_as: String,
    pub local_as: String,
    pub number: f64,
    /// Its name and its description, in lower case.
    pub described: String,
}

/// The route targets of a VRF at one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Targets {
    pub vrf: String,
    pub imports: BTreeSet<String>,
    pub exports: BTreeSet<String>,
}
