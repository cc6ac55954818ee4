//! Runs the fuzz target [`fuzz::endpoint`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::endpoint::seeds()),
    |bytes: &[u8]| fuzz::endpoint::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
