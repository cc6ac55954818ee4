//! The graph of a definition: its states and the transitions between them.

use super::{Definition, Kind, State, StateType, Transition};

/// A state and its transitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineState<'a> {
    pub name: &'a str,
    pub state_type: StateType,
    /// Its transitions, the regular one first; each target once.
    pub to: Vec<OutlineEdge<'a>>,
}

/// A transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineEdge<'a> {
    pub to: &'a str,
    /// Whether only an error takes this transition.
    pub is_catch: bool,
}

impl Definition {
    /// The top-level states, sorted by name.
    pub fn outline(&self) -> Vec<OutlineState<'_>> {
        let states = self.machine.states.iter();
        states
            .map(|(name, state)| OutlineState {
                name,
                state_type: state.kind.state_type(),
                to: edges(state),
            })
            .collect()
    }
}

fn edges(state: &State) -> Vec<OutlineEdge<'_>> {
    let mut edges: Vec<OutlineEdge<'_>> = Vec::new();
    let usual: Vec<&String> = match (&state.kind, &state.next) {
        (Kind::Choice { rules, default }, _) => {
            default.iter().chain(rules.iter().map(|rule| &rule.next)).collect()
        }
        (Kind::Succeed | Kind::Fail { .. }, _) | (_, Transition::End) => Vec::new(),
        (_, Transition::Next(next)) => vec![next],
    };
    let usual = usual.into_iter().map(|to| OutlineEdge { to, is_catch: false });
    let caught =
        state.catch.iter().map(|catcher| OutlineEdge { to: &catcher.next, is_catch: true });
    for edge in usual.chain(caught) {
        if edges.iter().all(|known| known.to != edge.to) {
            edges.push(edge);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_lists_each_transition_once_regular_first() {
        let text = r#"{"QueryLanguage": "JSONata", "StartAt": "Ask", "States": {
            "Ask": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
                "Arguments": {"FunctionName": "f"}, "Next": "Judge", "Catch": [
                    {"ErrorEquals": ["A"], "Next": "Judge"}, {"ErrorEquals": ["States.ALL"], "Next": "Bad"}]},
            "Judge": {"Type": "Choice", "Default": "Good",
                "Choices": [{"Condition": "{% true %}", "Next": "Ask"}]},
            "Bad": {"Type": "Fail"}, "Good": {"Type": "Succeed"}}}"#;
        let definition = Definition::parse(text).unwrap();
        let told: Vec<_> = definition
            .outline()
            .iter()
            .map(|state| {
                let edges = state
                    .to
                    .iter()
                    .map(|w| format!("{}{}", w.to, ["", "!"][usize::from(w.is_catch)]));
                format!(
                    "{} {}: {}",
                    state.state_type.name(),
                    state.name,
                    edges.collect::<Vec<_>>().join(" ")
                )
            })
            .collect();
        assert_eq!(
            told,
            ["Task Ask: Judge Bad!", "Fail Bad: ", "Succeed Good: ", "Choice Judge: Good Ask"]
        );
    }
}
