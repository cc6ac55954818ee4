//! Validates a graph before it runs.
//!
//! Routes are names, so a misspelled one compiles. [`Agent::check`](crate::agent::Agent::check) finds
//! it when the agent is registered. It cannot detect a graph that never ends, because `to` does not say
//! whether a node may end the run.

use std::collections::BTreeSet;
use std::fmt;

use journal::version::VERSION_BYTES_MAX;

use crate::agent::{Agent, OutlineNode};

/// Largest edit distance of a suggested name; it is also at most a third of the longer name's length.
const EDITS_MAX: usize = 3;

/// An invalid graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidGraph {
    pub agent: &'static str,
    /// At least one.
    pub problems: Vec<Problem>,
}

/// A problem of a graph. `nearest` is the node with the most similar name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the start `{start}` is not a node{}", suggestion(*nearest))]
    UnknownStart { start: &'static str, nearest: Option<&'static str> },
    #[error("node `{node}` routes to `{target}`, which is not a node{}", suggestion(*nearest))]
    UnknownTarget { node: &'static str, target: &'static str, nearest: Option<&'static str> },
    #[error("`on_limit_to` names `{target}`, which is not a node{}", suggestion(*nearest))]
    UnknownLimitTarget { target: &'static str, nearest: Option<&'static str> },
    #[error("two nodes are named `{node}`")]
    DuplicateNode { node: &'static str },
    #[error(
        "no route leads from `{start}` to node `{node}`; name it in a node's `to`, or in `on_limit_to`"
    )]
    UnreachableNode { node: &'static str, start: &'static str },
    #[error("its earlier version `{version}` is of agent `{other}`")]
    OtherAgent { version: &'static str, other: &'static str },
    #[error("two of its versions are named `{version}`")]
    DuplicateVersion { version: &'static str },
    #[error("a version's name has 1 to {VERSION_BYTES_MAX} bytes, not {}", version.len())]
    VersionName { version: &'static str },
}

/// The problems of an agent's versions among each other.
pub(crate) fn versions(agent: &Agent) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let problem_of = |one: &Agent| {
        let version = one.version();
        if one.name() != agent.name() {
            return Some(Problem::OtherAgent { version, other: one.name() });
        }
        if !(1..=VERSION_BYTES_MAX).contains(&version.len()) {
            return Some(Problem::VersionName { version });
        }
        (!seen.insert(version)).then_some(Problem::DuplicateVersion { version })
    };
    agent.versions().filter_map(problem_of).collect()
}

impl fmt::Display for InvalidGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph of agent `{}` is invalid", self.agent)?;
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{} {problem}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The names of a graph that are checked against each other.
pub(crate) struct Names<'a> {
    pub(crate) start: &'static str,
    pub(crate) nodes: &'a [OutlineNode],
    pub(crate) on_limit_to: &'static [&'static str],
}

impl Names<'_> {
    /// The problems, in the order of the nodes.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !self.has(self.start) {
            let nearest = self.nearest(self.start);
            problems.push(Problem::UnknownStart { start: self.start, nearest });
        }
        for (index, OutlineNode { name, to }) in self.nodes.iter().enumerate() {
            let twins = self.nodes[..index].iter().filter(|earlier| earlier.name == *name).count();
            if twins == 1 {
                problems.push(Problem::DuplicateNode { node: name });
            }
            let unknown = to.iter().filter(|target| !self.has(target));
            problems.extend(unknown.map(|target| {
                let nearest = self.nearest(target);
                Problem::UnknownTarget { node: name, target, nearest }
            }));
        }
        let unknown = self.on_limit_to.iter().filter(|target| !self.has(target));
        problems.extend(unknown.map(|target| {
            let nearest = self.nearest(target);
            Problem::UnknownLimitTarget { target, nearest }
        }));
        // A misspelled route also makes nodes unreachable: report only the cause.
        if problems.is_empty() {
            problems.extend(self.unreachable());
        }
        problems
    }

    fn unreachable(&self) -> impl Iterator<Item = Problem> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = self.on_limit_to.iter().copied().chain([self.start]).collect();
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                let node = self.nodes.iter().find(|node| node.name == name);
                open.extend(node.into_iter().flat_map(|node| node.to));
            }
        }
        let start = self.start;
        let names = self.nodes.iter().map(|node| node.name);
        names
            .filter(move |name| !reached.contains(name))
            .map(move |node| Problem::UnreachableNode { node, start })
    }

    fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name == name)
    }

    fn nearest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.nodes.iter().map(|node| node.name))
    }
}

/// The known name that is most similar to a misspelled one, if any is similar.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().filter_map(|known| {
        let longer = name.chars().count().max(known.chars().count());
        let edits = edits(name, known);
        (edits <= EDITS_MAX.min(longer / 3).max(1)).then_some((edits, known))
    });
    near.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// The Levenshtein distance of two names.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, c) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (index, d) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(c != *d);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        start: &'static str,
        nodes: &[(&'static str, &'static [&'static str])],
        on_limit_to: &'static [&'static str],
        expected: &[&str],
    ) {
        let nodes: Vec<_> = nodes.iter().map(|&(name, to)| OutlineNode { name, to }).collect();
        let found = Names { start, nodes: &nodes, on_limit_to }.problems();
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn every_problem_of_a_graph_names_its_node_and_target() {
        check("think", &[("think", &["act"]), ("act", &["think"])], &[], &[]);
        check(
            "think",
            &[("think", &["act"]), ("act", &["thnk", "elsewhere"])],
            &[],
            &[
                "node `act` routes to `thnk`, which is not a node (did you mean `think`?)",
                "node `act` routes to `elsewhere`, which is not a node",
            ],
        );
        check(
            "thinks",
            &[("think", &[])],
            &["acts"],
            &[
                "the start `thinks` is not a node (did you mean `think`?)",
                "`on_limit_to` names `acts`, which is not a node",
            ],
        );
        check("a", &[("a", &["a"]), ("a", &[]), ("a", &[])], &[], &["two nodes are named `a`"]);
        check("think", &[], &[], &["the start `think` is not a node"]);
    }

    #[test]
    fn a_node_is_reached_from_the_start_or_by_a_limit() {
        let nodes: &[(_, &[_])] = &[("a", &["b"]), ("b", &["a"]), ("c", &["d"]), ("d", &["c"])];
        check(
            "a",
            nodes,
            &[],
            &[
                "no route leads from `a` to node `c`; name it in a node's `to`, or in `on_limit_to`",
                "no route leads from `a` to node `d`; name it in a node's `to`, or in `on_limit_to`",
            ],
        );
        check("a", nodes, &["c"], &[]);
    }

    #[test]
    fn edits_are_counted_by_character() {
        for (one, other, expected) in
            [("", "", 0), ("", "ab", 2), ("think", "thnk", 1), ("act", "cat", 2), ("ü", "u", 1)]
        {
            assert_eq!(edits(one, other), expected, "{one} {other}");
            assert_eq!(edits(other, one), expected, "{other} {one}");
        }
    }
}
