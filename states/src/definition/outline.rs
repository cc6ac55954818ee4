//! A definition as it is drawn: its states, and the ways between them.

use super::{Definition, Kind, State, StateType, Transition};

/// A state and where it may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineState<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub state_type: StateType,
    /// Where it may lead, the usual way first; each state once.
    pub to: Vec<Way<'a>>,
}

/// A way out of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way<'a> {
    /// The state that it leads to.
    pub to: &'a str,
    /// Whether only an error leads there.
    pub is_catch: bool,
}

impl Definition {
    /// The states outside branches and iterations, in order of name.
    pub fn outline(&self) -> Vec<OutlineState<'_>> {
        let states = self.machine.states.iter();
        states
            .map(|(name, state)| OutlineState {
                name,
                state_type: state.kind.state_type(),
                to: ways(state),
            })
            .collect()
    }
}

fn ways(state: &State) -> Vec<Way<'_>> {
    let mut ways: Vec<Way<'_>> = Vec::new();
    let usual: Vec<&String> = match (&state.kind, &state.next) {
        (Kind::Choice { rules, default }, _) => {
            default.iter().chain(rules.iter().map(|rule| &rule.next)).collect()
        }
        (Kind::Succeed | Kind::Fail { .. }, _) | (_, Transition::End) => Vec::new(),
        (_, Transition::Next(next)) => vec![next],
    };
    let usual = usual.into_iter().map(|to| Way { to, is_catch: false });
    let caught = state.catch.iter().map(|catcher| Way { to: &catcher.next, is_catch: true });
    for way in usual.chain(caught) {
        if ways.iter().all(|known| known.to != way.to) {
            ways.push(way);
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_outlined_with_the_usual_way_first_and_each_way_once() {
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
                let ways = state
                    .to
                    .iter()
                    .map(|w| format!("{}{}", w.to, ["", "!"][usize::from(w.is_catch)]));
                format!(
                    "{} {}: {}",
                    state.state_type.name(),
                    state.name,
                    ways.collect::<Vec<_>>().join(" ")
                )
            })
            .collect();
        assert_eq!(
            told,
            ["Task Ask: Judge Bad!", "Fail Bad: ", "Succeed Good: ", "Choice Judge: Good Ask"]
        );
    }
}
