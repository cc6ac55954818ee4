//! Runs the fuzz target [`fuzz::import`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::import::seeds()),
    |bytes: &[u8]| fuzz::import::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
