//! Runs the fuzz target [`fuzz::machine`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::machine::seeds()),
    |bytes: &[u8]| fuzz::machine::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
