//! What crosses a process boundary.
