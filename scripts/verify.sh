#!/usr/bin/env bash
# Everything that `make test` leaves out. The test runner's summary is printed last.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools cargo-nextest
hide_settings

# First, so that the other steps find the libraries built.
cargo nextest run --workspace --all-features --no-run
bash scripts/fuzz.sh
bash scripts/instructions.sh
# Checks the tests themselves: each planted defect must make one fail.
cargo run --quiet ${CI:+--locked} -p defects
bash scripts/test.sh verify
