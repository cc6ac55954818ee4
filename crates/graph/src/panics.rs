//! Contains panics of an agent's code, so that they end its session and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::definition::Finish;
use crate::plan::graph_failed;

/// A function of an agent panicked. The agent's state may be half changed: end the session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} panicked: {message}")]
pub struct Panicked {
    /// The function, such as ``the fold of node `reason` ``.
    pub function: String,
    pub message: String,
}

impl Panicked {
    /// The code in an error message.
    pub const CODE: &'static str = "Panicked";

    /// The panic of `function` with this payload.
    pub fn of(function: &str, payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        if message.is_none() {
            // Its own `drop` may panic again.
            std::mem::forget(payload);
        }
        let message = message.unwrap_or_else(|| "no message".to_owned());
        Self { function: function.to_owned(), message }
    }

    /// The end of the session.
    pub fn finish(&self) -> Finish {
        graph_failed(Self::CODE, &self.to_string())
    }
}

/// The result of an agent's code.
///
/// # Errors
/// If it panics.
pub fn caught<T>(function: &str, run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Panicked::of(function, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }

    #[test]
    fn a_panic_is_contained_with_its_message() {
        let message = |run: fn()| caught("its fold", run).unwrap_err().to_string();
        assert_eq!(message(|| panic!("a text")), "its fold panicked: a text");
        assert_eq!(message(|| panic!("of {}", 1)), "its fold panicked: of 1");
        assert_eq!(message(|| std::panic::panic_any(Bomb)), "its fold panicked: no message");
        assert_eq!(caught("its fold", || 1), Ok(1));
    }
}
