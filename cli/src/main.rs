//! The binary `daybook`.
fn main() {}
