//! Runs the fuzz target [`fuzz::record`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::record::seeds()),
    |bytes: &[u8]| fuzz::record::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
