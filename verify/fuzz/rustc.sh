#!/usr/bin/env bash
# The compiler for the fuzz targets: cargo calls it through RUSTC_WORKSPACE_WRAPPER, and so for the workspace's own crates
# alone. They count which branches were taken; the libraries stay as every other build has them, and are not built again.
# Deeper optimisation would silently drop debug assertions and overflow checks, which are half of what finds something.
exec "$@" --cfg fuzzing -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
