//! An agent's graph laid out, with the path that a session took through it.

use graph::agent::Outline;
use journal::step::{Step, StepBody};
use serde::Serialize;
use serde_json::Value;

/// A graph on a grid: layers from the start onwards, and places within a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// The nodes, in the graph's own order.
    pub nodes: Vec<Node>,
    /// The routes, by the nodes' places in the list.
    pub edges: Vec<Edge>,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub name: &'static str,
    /// How many routes it is from the start at least.
    pub layer: usize,
    /// Its place among the nodes of its layer.
    pub place: usize,
    /// How often the session was there.
    pub visits: u32,
    /// Whether the session is there now, or was when it ended.
    pub is_newest: bool,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// From this node.
    pub from: usize,
    /// To that one.
    pub to: usize,
    /// How often the session took it.
    pub taken: u32,
}

impl Drawing {
    /// The graph with the path that these steps, in sequence, took.
    pub fn of(outline: &Outline, steps: &[Step<Value>]) -> Self {
        let place = |name: &str| outline.nodes.iter().position(|node| node.name == name);
        let mut drawing = Self { nodes: Vec::new(), edges: Vec::new() };
        let layers = layers(outline);
        for (node, layer) in outline.nodes.iter().zip(&layers) {
            let place = drawing.nodes.iter().filter(|node| node.layer == *layer).count();
            let (name, layer) = (node.name, *layer);
            drawing.nodes.push(Node { name, layer, place, visits: 0, is_newest: false });
        }
        for (from, node) in outline.nodes.iter().enumerate() {
            let to = node.to.iter().filter_map(|name| place(name));
            drawing.edges.extend(to.map(|to| Edge { from, to, taken: 0 }));
        }
        let mut before = None;
        for visit in visits(steps) {
            let Some(at) = place(visit) else { continue };
            drawing.nodes[at].visits += 1;
            if let Some(from) = before
                && let Some(edge) = drawing.edges.iter_mut().find(|e| e.from == from && e.to == at)
            {
                edge.taken += 1;
            }
            before = Some(at);
        }
        if let Some(at) = before {
            drawing.nodes[at].is_newest = true;
        }
        drawing
    }
}

/// The nodes that were visited. Calls side by side belong to one visit, as do a question and its
/// answer.
fn visits(steps: &[Step<Value>]) -> Vec<&str> {
    let mut visits = Vec::new();
    let mut before = None;
    for step in steps {
        let (StepBody::Outcome { effect, .. } | StepBody::Ask { effect, .. }) = &step.body else {
            continue;
        };
        // The digest is of all calls of an effect: one visit that asked twice was tried again.
        let visit = (effect.node.as_str(), &effect.digest);
        if before != Some(visit) {
            visits.push(visit.0);
        }
        before = Some(visit);
    }
    visits
}

/// Each node's distance from the start; what no route leads to comes after everything.
fn layers(outline: &Outline) -> Vec<usize> {
    let mut layers = vec![None; outline.nodes.len()];
    let place = |name: &str| outline.nodes.iter().position(|node| node.name == name);
    let mut next: Vec<usize> = place(outline.start).into_iter().collect();
    let mut layer = 0;
    while !next.is_empty() {
        next.retain(|at| layers[*at].is_none());
        next.sort_unstable();
        next.dedup();
        next.iter().for_each(|at| layers[*at] = Some(layer));
        next =
            next.iter().flat_map(|at| outline.nodes[*at].to).filter_map(|to| place(to)).collect();
        layer += 1;
    }
    let beyond = layers.iter().flatten().max().map_or(0, |last| last + 1);
    layers.into_iter().map(|found| found.unwrap_or(beyond)).collect()
}

#[cfg(test)]
mod tests {
    use graph::agent::OutlineNode;
    use journal::clock::Stamp;
    use journal::id::Runner;
    use journal::item::Hash;
    use journal::step::{EffectKind, EffectRef, Usage};

    use super::*;

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
        let step = |(place, (node, call)): (usize, &(&str, u32))| Step {
            session: "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f".parse().unwrap(),
            seq: u32::try_from(place).unwrap() + 1,
            epoch: 1,
            runner: Runner::named("agent:1"),
            stamp: Stamp::default(),
            expires_at: 0,
            prev_hash: Hash::genesis(),
            hash: Hash::genesis(),
            body: StepBody::Outcome {
                effect: EffectRef {
                    node: (*node).to_owned(),
                    kind: EffectKind::Tools,
                    digest: Hash::genesis(),
                    call: *call,
                },
                started_at: Stamp::default(),
                usage: Usage::default(),
                payload: Value::Null,
            },
        };
        path.iter().enumerate().map(step).collect()
    }

    #[test]
    fn a_graph_lies_in_layers_with_the_path_that_was_taken() {
        let path = [("plan", 0), ("gather", 0), ("gather", 1), ("judge", 0), ("gather", 0)];
        let drawing = Drawing::of(&outline(), &steps(&path));
        let nodes: Vec<_> = drawing
            .nodes
            .iter()
            .map(|n| (n.name, n.layer, n.place, n.visits, n.is_newest))
            .collect();
        assert_eq!(
            nodes,
            [
                ("plan", 0, 0, 1, false),
                ("gather", 1, 0, 2, true),
                ("judge", 2, 0, 1, false),
                ("report", 1, 1, 0, false),
                ("unreached", 3, 0, 0, false),
            ]
        );
        let taken: Vec<_> =
            drawing.edges.iter().filter(|e| e.taken > 0).map(|e| (e.from, e.to, e.taken)).collect();
        assert_eq!(taken, [(0, 1, 1), (1, 2, 1), (2, 1, 1)]);
    }

    #[test]
    fn a_node_that_the_graph_does_not_have_is_passed_over() {
        let drawing = Drawing::of(&outline(), &steps(&[("plan", 0), ("of another version", 0)]));
        assert_eq!(drawing.nodes.iter().map(|node| node.visits).sum::<u32>(), 1);
    }
}
