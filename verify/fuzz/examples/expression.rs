//! Runs the fuzz target [`fuzz::expression`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::expression::seeds()),
    |bytes: &[u8]| fuzz::expression::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
