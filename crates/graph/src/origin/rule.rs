//! What may feed an argument of a tool.

use serde::{Deserialize, Serialize};

use super::{Origin, Traced, child};
use crate::effect::ToolCall;

/// Permits an argument of a tool only these origins. A call with another one waits for a person's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The tool, as `tool` or `server.tool`.
    pub tool: String,
    /// The argument's name, or a JSON pointer into the arguments. It includes all values within.
    pub argument: String,
    /// The permitted origins.
    pub from: Vec<Origin>,
}

impl Rule {
    pub fn new(tool: &str, argument: &str, from: &[Origin]) -> Self {
        Self { tool: tool.to_owned(), argument: argument.to_owned(), from: from.to_vec() }
    }

    pub(crate) fn is_about(&self, call: &ToolCall) -> bool {
        call.is_in(&[&self.tool])
    }

    /// Whether the rule includes the leaf. A leaf in place of the object that the pointer leads through is
    /// included, too.
    fn includes(&self, leaf: &str) -> bool {
        let pointer = match self.argument.strip_prefix('/') {
            Some(_) => self.argument.clone(),
            None => child("", &self.argument),
        };
        let is_within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_within(leaf, &pointer) || is_within(&pointer, leaf)
    }
}

/// Marks each origin that a rule does not permit. Every rule must permit it.
pub(crate) fn mark<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    call: &ToolCall,
    traced: &mut [Traced],
) {
    for rule in rules.into_iter().filter(|rule| rule.is_about(call)) {
        for leaf in traced.iter_mut().filter(|leaf| rule.includes(&leaf.pointer)) {
            if leaf.is_permitted() && !leaf.origins().all(|origin| rule.from.contains(&origin)) {
                leaf.allowed.clone_from(&rule.from);
            }
        }
    }
}

/// The origins that no rule permits, one line each; empty if all are permitted.
pub(crate) fn breaches(traced: &[Traced]) -> Vec<String> {
    traced.iter().filter(|leaf| !leaf.is_permitted()).map(ToString::to_string).collect()
}

impl Traced {
    /// The arguments' origins with the breaches of these rules.
    pub(crate) fn judged<'a>(
        sources: &super::Sources,
        rules: impl IntoIterator<Item = &'a Rule>,
        call: &ToolCall,
    ) -> Vec<Self> {
        let mut traced = sources.trace(&call.arguments);
        mark(rules, call, &mut traced);
        traced
    }
}
