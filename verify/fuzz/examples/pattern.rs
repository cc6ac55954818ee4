//! Runs the fuzz target [`fuzz::pattern`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::pattern::seeds()),
    |bytes: &[u8]| fuzz::pattern::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
