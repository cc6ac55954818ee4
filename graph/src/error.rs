//! Why a step cannot be folded.

use std::fmt;

use journal::step::{EffectRef, StepKind};

use crate::definition::{Finish, InputError};

/// Why a step cannot be folded. The run is of no further use; only [`FoldError::OutOfSequence`]
/// may be the caller's mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The step is not the next one.
    #[error("step {found} came where step {expected} was due")]
    OutOfSequence {
        /// The number that was due.
        expected: u32,
        /// The number that came.
        found: u32,
    },
    /// The journal recorded another effect than the graph asks for here.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A step of this kind cannot come here.
    #[error("step {seq}: unexpected {}, {why}", kind.as_str())]
    Unexpected {
        /// The step.
        seq: u32,
        /// Its kind.
        kind: StepKind,
        /// What stands against it.
        why: &'static str,
    },
    /// The payload is not what a step of this kind holds.
    #[error("step {seq}: {reason}")]
    Malformed {
        /// The step.
        seq: u32,
        /// What is wrong with it.
        reason: String,
    },
}

/// Two sides that should be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The step.
    pub seq: u32,
    /// What the journal recorded.
    pub recorded: EffectRef,
    /// The version of the graph that recorded it.
    pub recorded_version: String,
    /// What the graph asks for here; `None` when it asks for nothing any more.
    pub asked: Option<EffectRef>,
    /// The version of this graph.
    pub asked_version: String,
}

/// Why a run cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The input is not one of this agent's.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A step cannot be folded.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

impl FoldError {
    /// The end of a session that cannot go on for this error.
    pub fn finish(&self) -> Finish {
        let code = match self {
            Self::OutOfSequence { .. } => "OutOfSequence",
            Self::Diverged(_) => "Diverged",
            Self::Unexpected { .. } => "Unexpected",
            Self::Malformed { .. } => "Malformed",
        };
        Finish::failed("ReplayError", code, &self.to_string(), "replay")
    }
}

impl ResumeError {
    /// The end of a session that cannot go on for this error.
    pub fn finish(&self) -> Finish {
        match self {
            Self::Input(error) => error.finish(),
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
                write!(f, "graph version {} asks for {}", self.asked_version, Side(asked))
            }
            None => write!(f, "graph version {} asks for nothing", self.asked_version),
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
