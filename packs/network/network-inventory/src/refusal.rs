//! Errors of tool calls, written for a model or a person.

#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("unknown device_name {asked:?}; known devices: {}", present.join(", "))]
    Device { asked: String, present: Vec<String> },
    #[error("{device} has no interface {asked:?}; it has {}", present.join(", "))]
    Interface { device: String, asked: String, present: Vec<String> },
    #[error("no answer of {tool} was saved for {device}")]
    NotSaved { device: String, tool: &'static str },
    #[error("{device} has no vrf {asked:?}; it has {}", Present(present))]
    Vrf { device: String, asked: String, present: Vec<String> },
}

/// The available names.
struct Present<'a>(&'a [String]);

impl std::fmt::Display for Present<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            names => f.write_str(&names.join(", ")),
        }
    }
}
