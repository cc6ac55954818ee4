//! Runs the fuzz target [`fuzz::trigger`]. Without instrumentation it does nothing.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: fuzz::corpus::write(&fuzz::trigger::seeds()),
    |bytes: &[u8]| fuzz::trigger::check(bytes)
);

#[cfg(not(fuzzing))]
fn main() {}
