//! Errors of folding steps.

use std::fmt;

use journal::step::{EffectRef, StepKind};

use crate::definition::{Finish, InputError};
use crate::panics::Panicked;

/// A step cannot be folded, and the run cannot continue. Only [`FoldError::OutOfSequence`] can be a
/// mistake of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The step has the wrong number.
    #[error("expected step {expected}, got step {found}")]
    OutOfSequence {
        /// The expected number.
        expected: u32,
        found: u32,
    },
    /// The journal recorded another effect than the graph requests.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A step of this kind is not possible here.
    #[error("step {seq}: unexpected {}, {why}", kind.as_str())]
    Unexpected {
        seq: u32,
        kind: StepKind,
        /// The reason.
        why: &'static str,
    },
    /// The payload is not valid for a step of this kind.
    #[error("step {seq}: {reason}")]
    Malformed { seq: u32, reason: String },
    /// The state of the step cannot be restored.
    #[error("step {seq}: {panicked}")]
    Panicked { seq: u32, panicked: Panicked },
}

/// Why a run cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The input is not valid for this agent.
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// A recorded effect and the requested one, which differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    pub seq: u32,
    pub recorded: EffectRef,
    /// Version of the graph that recorded it.
    pub recorded_version: String,
    /// The requested effect; `None` if the graph requests none.
    pub asked: Option<EffectRef>,
    /// Version of this graph.
    pub asked_version: String,
}

/// Why a run cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Fold(#[from] FoldError),
}

impl FoldError {
    /// The end of a session that cannot continue because of this error.
    pub fn finish(&self) -> Finish {
        let code = match self {
            Self::OutOfSequence { .. } => "OutOfSequence",
            Self::Diverged(_) => "Diverged",
            Self::Unexpected { .. } => "Unexpected",
            Self::Malformed { .. } => "Malformed",
            Self::Panicked { panicked, .. } => return panicked.finish(),
        };
        Finish::failed("ReplayError", code, &self.to_string(), "replay")
    }
}

impl StartError {
    /// The end of a session that cannot start because of this error.
    pub fn finish(&self) -> Finish {
        match self {
            Self::Input(error) => error.finish(),
            Self::Panicked(panicked) => panicked.finish(),
        }
    }
}

impl ResumeError {
    /// The end of a session that cannot continue because of this error.
    pub fn finish(&self) -> Finish {
        match self {
            Self::Start(error) => error.finish(),
            Self::Fold(error) => error.finish(),
        }
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "step {} recorded {} under graph version {}, ",
            self.seq,
            Side(&self.recorded),
            self.recorded_version
        )?;
        match &self.asked {
            Some(asked) => {
                write!(f, "graph version {} requests {}", self.asked_version, Side(asked))
            }
            None => write!(f, "graph version {} requests nothing", self.asked_version),
        }
    }
}

struct Side<'a>(&'a EffectRef);

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EffectRef { node, kind, digest, call } = self.0;
        let digest = digest.as_str().get(..12).unwrap_or(digest.as_str());
        write!(f, "{} of node `{node}` call {call} digest {digest}", kind.as_str())
    }
}
