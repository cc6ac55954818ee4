//! Evaluation: cases of an agent, what a run made of each, and the comparison with a baseline. Pure, but for
//! the reading of cases. `docs/eval.md` is the format.

pub mod baseline;
pub mod case;
pub mod judge;
