#!/usr/bin/env bash
# The compiler for the fuzz targets. Cargo calls it through RUSTC_WORKSPACE_WRAPPER, so only the workspace's own crates
# are instrumented; dependencies are shared with other builds. A higher optimisation level would silently drop debug
# assertions and overflow checks, which find many of the bugs.
exec "$@" --cfg fuzzing -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
