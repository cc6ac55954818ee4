//! Every error of a call. A model or a person reads the texts.

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("device_name must name a device: there is no {asked:?}, there are {}", present.join(", "))]
    Device { asked: String, present: Vec<String> },
    #[error("interface must name one of {device}'s: there is no {asked:?}, there are {}", present.join(", "))]
    Interface { device: String, asked: String, present: Vec<String> },
    #[error("vrf must name one of {device}'s: there is no {asked:?}, {}", Present(present))]
    Vrf { device: String, asked: String, present: Vec<String> },
}

/// What there is instead.
struct Present<'a>(&'a [String]);

impl std::fmt::Display for Present<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => f.write_str("there is none at all"),
            names => write!(f, "there are {}", names.join(", ")),
        }
    }
}
