//! Runs the fuzz target [`fuzz::canonical`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::canonical::seeds()),
    |bytes: &[u8]| fuzz::canonical::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
