//! Lays out the agent's graph and the state machine, with the path that a session took.

use std::collections::VecDeque;

use asl::definition::{Definition, StateType};
use graph::agent::Outline;
use journal::step::{Ending, Step, StepBody};
use serde::Serialize;
use serde_json::Value;

/// Maximum number of nodes of a graph that is drawn; a larger picture is unreadable.
pub const NODES_MAX: usize = 200;

/// A graph on a grid of layers and columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// The nodes, in the order of the graph's definition.
    pub nodes: Vec<Node>,
    /// The edges; they refer to nodes by index.
    pub edges: Vec<Edge>,
    #[serde(skip)]
    start: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub name: String,
    /// The length of the longest path from the start, back edges excluded.
    pub layer: usize,
    /// Its column. A node's first edge leads straight down, other edges one column to the right, and
    /// error edges two.
    pub place: usize,
    /// The number of visits that the session's records show.
    pub visits: u32,
    /// Whether it lies on the shortest path between two visits: a node without an effect leaves no
    /// record.
    pub is_passed: bool,
    /// Whether this is the session's current or last node.
    pub is_newest: bool,
    /// Whether the session failed here.
    pub is_failed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// How many times the session took it.
    pub taken: u32,
    /// Whether only errors take this edge.
    pub is_catch: bool,
    /// Whether it closes a cycle.
    pub is_back: bool,
}

/// An edge's target, and whether only errors lead there.
type Way<'a> = (&'a str, bool);

/// A node, and the edge by which the search first found it.
type Found = (usize, Option<usize>);

impl Drawing {
    /// The agent's graph with the path of these steps, in sequence.
    pub fn of(outline: &Outline, steps: &[Step<Value>]) -> Self {
        let nodes: Vec<_> = outline
            .nodes
            .iter()
            .map(|node| (node.name, node.to.iter().map(|to| (*to, false)).collect()))
            .collect();
        let mut drawing = Self::laid_out(outline.start, &nodes);
        let newest = drawing.walk(visits(steps));
        let ended = steps.last().map(|step| &step.body);
        if let (Some(at), Some(StepBody::End { ending, .. })) = (newest, ended) {
            drawing.nodes[at].is_failed = matches!(ending, Ending::Failed | Ending::TimedOut);
        }
        drawing
    }

    /// A state machine with the path through the `entered` states, in order; `None` above
    /// [`NODES_MAX`] states.
    pub fn of_machine<'a>(
        definition: &Definition,
        entered: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let outline = definition.outline();
        if outline.len() > NODES_MAX {
            return None;
        }
        let nodes: Vec<_> = outline
            .iter()
            .map(|s| (s.name, s.to.iter().map(|way| (way.to, way.is_catch)).collect()))
            .collect();
        let mut drawing = Self::laid_out(definition.start_at(), &nodes);
        drawing.walk(entered);
        for (node, state) in drawing.nodes.iter_mut().zip(&outline) {
            node.is_failed = node.visits > 0 && state.state_type == StateType::Fail;
        }
        Some(drawing)
    }

    fn laid_out(start: &str, nodes: &[(&str, Vec<Way<'_>>)]) -> Self {
        let place = |name: &str| nodes.iter().position(|(known, _)| *known == name);
        let mut edges = Vec::new();
        for (from, (_, ways)) in nodes.iter().enumerate() {
            edges.extend(ways.iter().filter_map(|(name, is_catch)| {
                let to = place(name)?;
                Some(Edge { from, to, taken: 0, is_catch: *is_catch, is_back: false })
            }));
        }
        let start = place(start);
        let (layers, found) = layers(start, nodes.len(), &mut edges);
        let columns = columns(&layers, &found, &edges);
        let drawn = nodes.iter().zip(layers).zip(columns).map(|(((name, _), layer), place)| Node {
            name: (*name).to_owned(),
            layer,
            place,
            visits: 0,
            is_passed: false,
            is_newest: false,
            is_failed: false,
        });
        Self { nodes: drawn.collect(), edges, start }
    }

    /// Counts a walk through the named nodes and returns its last node.
    fn walk<'a>(&mut self, visits: impl IntoIterator<Item = &'a str>) -> Option<usize> {
        let mut before = None;
        for visit in visits {
            let Some(at) = self.nodes.iter().position(|node| node.name == visit) else { continue };
            match before {
                Some(from) => self.go(from, at),
                None => self.start.into_iter().for_each(|start| self.go(start, at)),
            }
            self.nodes[at].visits += 1;
            before = Some(at);
        }
        if let Some(at) = before {
            self.nodes[at].is_newest = true;
        }
        before
    }

    /// Counts the edges of the shortest path from one node to another, if there is one. A repeated
    /// node counts its edge to itself.
    fn go(&mut self, from: usize, to: usize) {
        if from == to {
            let itself = self.edges.iter_mut().find(|edge| edge.from == from && edge.to == from);
            itself.into_iter().filter(|_| self.nodes[from].visits > 0).for_each(|e| e.taken += 1);
            return;
        }
        let mut came_by = vec![None; self.nodes.len()];
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            let out = self.edges.iter().enumerate().filter(|(_, edge)| edge.from == at);
            for (edge, way) in out {
                if came_by[way.to].is_none() {
                    came_by[way.to] = Some(edge);
                    next.push_back(way.to);
                }
            }
        }
        let mut at = to;
        while let Some(edge) = came_by[at] {
            self.edges[edge].taken += 1;
            at = self.edges[edge].from;
            if at == from {
                self.nodes[from].is_passed |= self.nodes[from].visits == 0;
                return;
            }
            self.nodes[at].is_passed = true;
        }
    }
}

/// The visited nodes. Parallel calls belong to one visit, as do a question and its answer.
fn visits(steps: &[Step<Value>]) -> Vec<&str> {
    let mut visits = Vec::new();
    let mut before = None;
    for step in steps {
        let (StepBody::Outcome { effect, .. } | StepBody::Ask { effect, .. }) = &step.body else {
            continue;
        };
        // All calls of an effect share its digest: two equal effects in a row are one visit with a retry.
        let visit = (effect.node.as_str(), &effect.digest);
        if before != Some(visit) {
            visits.push(visit.0);
        }
        before = Some(visit);
    }
    visits
}

/// Returns each node's layer, and all nodes in depth-first order from the start. Marks back edges.
/// Unreachable nodes come last.
fn layers(start: Option<usize>, count: usize, edges: &mut [Edge]) -> (Vec<usize>, Vec<Found>) {
    let out: Vec<Vec<usize>> = (0..count)
        .map(|node| (0..edges.len()).filter(|edge| edges[*edge].from == node).collect())
        .collect();
    let (mut found, mut finished) = (Vec::new(), Vec::new());
    let mut open: Vec<(usize, usize)> = Vec::new();
    found.extend(start.map(|at| (at, None)));
    open.extend(start.map(|at| (at, 0)));
    while let Some((at, next)) = open.last_mut() {
        let (from, turn) = (*at, *next);
        *next += 1;
        let Some(&edge) = out[from].get(turn) else {
            finished.push(from);
            open.pop();
            continue;
        };
        let to = edges[edge].to;
        if open.iter().any(|(at, _)| *at == to) {
            edges[edge].is_back = true;
        } else if found.iter().all(|(known, _)| *known != to) {
            found.push((to, Some(edge)));
            open.push((to, 0));
        }
    }
    let mut layers = vec![None; count];
    start.into_iter().for_each(|at| layers[at] = Some(0));
    // In reverse order of finishing, every node comes before its successors.
    for from in finished.iter().rev() {
        let below = layers[*from].map_or(0, |layer: usize| layer + 1);
        for edge in out[*from].iter().map(|edge| &edges[*edge]).filter(|edge| !edge.is_back) {
            layers[edge.to] = layers[edge.to].max(Some(below));
        }
    }
    let beyond = layers.iter().flatten().max().map_or(0, |last| last + 1);
    found.extend((0..count).filter(|node| layers[*node].is_none()).map(|node| (node, None)));
    (layers.into_iter().map(|layer| layer.unwrap_or(beyond)).collect(), found)
}

fn columns(layers: &[usize], found: &[Found], edges: &[Edge]) -> Vec<usize> {
    let mut columns: Vec<Option<usize>> = vec![None; layers.len()];
    for (node, by) in found {
        let wanted = by.map(|edge| &edges[edge]).map_or(0, |edge| {
            let is_usual = edges.iter().find(|other| other.from == edge.from) == Some(edge);
            let beside = if edge.is_catch { 2 } else { usize::from(!is_usual) };
            columns[edge.from].unwrap_or_default() + beside
        });
        let is_taken = |column: usize| {
            let mut placed = columns.iter().zip(layers);
            placed.any(|(known, layer)| *known == Some(column) && *layer == layers[*node])
        };
        columns[*node] = (wanted..).find(|column| !is_taken(*column));
    }
    columns.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use graph::agent::OutlineNode;
    use journal::clock::Stamp;
    use journal::step::{EffectKind, Usage};

    use super::*;
    use crate::testing::{effect, step};

    fn outline() -> Outline {
        let node = |name, to| OutlineNode { name, to };
        Outline {
            start: "plan",
            nodes: vec![
                node("plan", &["gather", "report"]),
                node("gather", &["judge"]),
                node("judge", &["gather", "report"]),
                node("report", &[]),
                node("unreached", &[]),
            ],
        }
    }

    fn steps(path: &[(&str, u32)]) -> Vec<Step<Value>> {
        let each = (1..).zip(path);
        each.map(|(seq, (node, call))| {
            let effect = effect(node, EffectKind::Tools, *call);
            let (started_at, usage, payload) = (Stamp::default(), Usage::default(), Value::Null);
            step(0, seq, StepBody::Outcome { effect, started_at, usage, request: None, payload })
        })
        .collect()
    }

    #[test]
    fn a_graph_is_layered_and_shows_the_path_taken() {
        let path = [("plan", 0), ("gather", 0), ("gather", 1), ("judge", 0), ("gather", 0)];
        let drawing = Drawing::of(&outline(), &steps(&path));
        let nodes: Vec<_> = drawing
            .nodes
            .iter()
            .map(|n| (n.name.as_str(), n.layer, n.place, n.visits, n.is_newest))
            .collect();
        assert_eq!(
            nodes,
            [
                ("plan", 0, 0, 1, false),
                ("gather", 1, 0, 2, true),
                ("judge", 2, 0, 1, false),
                ("report", 3, 1, 0, false),
                ("unreached", 4, 0, 0, false),
            ]
        );
        assert!(drawing.edges.iter().all(|edge| edge.is_back == ((edge.from, edge.to) == (2, 1))));
        let taken: Vec<_> =
            drawing.edges.iter().filter(|e| e.taken > 0).map(|e| (e.from, e.to, e.taken)).collect();
        assert_eq!(taken, [(0, 1, 1), (1, 2, 1), (2, 1, 1)]);
    }

    #[test]
    fn a_node_without_a_record_is_passed_between_visits() {
        let drawing = Drawing::of(&outline(), &steps(&[("gather", 0), ("report", 0)]));
        let passed: Vec<_> =
            drawing.nodes.iter().filter(|n| n.is_passed).map(|n| n.name.as_str()).collect();
        assert_eq!(passed, ["plan", "judge"]);
        let taken: Vec<_> =
            drawing.edges.iter().filter(|e| e.taken > 0).map(|e| (e.from, e.to)).collect();
        assert_eq!(taken, [(0, 1), (1, 2), (2, 3)]);
    }

    #[test]
    fn an_unknown_node_is_ignored() {
        let drawing = Drawing::of(&outline(), &steps(&[("plan", 0), ("of another version", 0)]));
        assert_eq!(drawing.nodes.iter().map(|node| node.visits).sum::<u32>(), 1);
    }

    #[test]
    fn a_machine_s_failed_state_is_marked_and_its_path_counted() {
        let text = r#"{"StartAt": "Try", "States": {
            "Try": {"Type": "Pass", "Next": "Judge"},
            "Judge": {"Type": "Choice", "Default": "Lost", "Choices": [
                {"Variable": "$.a", "IsPresent": true, "Next": "Try"}]},
            "Lost": {"Type": "Fail"}}}"#;
        let definition = Definition::parse(text).unwrap();
        let path = ["Try", "Judge", "Try", "within another", "Judge", "Lost"];
        let drawing = Drawing::of_machine(&definition, path).unwrap();
        let lines: Vec<_> = drawing
            .nodes
            .iter()
            .map(|n| (n.name.as_str(), n.layer, n.visits, n.is_newest, n.is_failed))
            .collect();
        assert_eq!(
            lines,
            [
                ("Judge", 1, 2, false, false),
                ("Lost", 2, 1, true, true),
                ("Try", 0, 2, false, false)
            ]
        );
    }
}
