//! Where the arguments of a call in question came from.

use graph::origin::{Sources, Traced};
use serde_json::Value;

use super::{OpenQuestion, RecordedStep};

impl OpenQuestion {
    /// Computes the origins of a question that was journaled without them.
    pub(super) fn trace(&mut self, steps: &[RecordedStep]) {
        if let (Some(arguments), None) = (&self.arguments, &self.origins) {
            self.origins = Some(traced(steps, self.question_id, arguments));
            self.origins_computed = true;
        }
    }
}

/// The origins of a call's arguments, as the question of this number has them.
pub(super) fn traced(steps: &[RecordedStep], question: u32, arguments: &Value) -> Vec<Traced> {
    let before = steps.iter().take_while(|step| step.seq < question);
    Sources::of(before).trace(arguments)
}
