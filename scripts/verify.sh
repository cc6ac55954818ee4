#!/usr/bin/env bash
# All that `make test` leaves out. The test runner's own closing line is the last thing printed.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools cargo-nextest
hide_settings

# First, so that fuzzing, counting and the defects find the libraries built.
cargo nextest run --workspace --all-features --no-run
bash scripts/fuzz.sh
# What an append, a step and a resumed step cost the processor, whatever else it does.
bash scripts/instructions.sh
# Before the tests are believed: does each of the defects put in on purpose make one of them fail?
cargo run --quiet ${CI:+--locked} -p defects
bash scripts/test.sh verify
