//! An Amazon States Language engine: a pure interpreter, no IO.
