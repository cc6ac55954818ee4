#!/usr/bin/env bash
# Runs the fuzz targets, two at a time.
#
#   scripts/fuzz.sh                    all targets: a minute each, half a minute for triggers
#   scripts/fuzz.sh all 600            all targets, 600 seconds each
#   scripts/fuzz.sh record 600         one target; 0 runs only the inputs that exist, once
#   scripts/fuzz.sh record FILE        runs one input again
#
# Inputs that reach new code are kept in the target folder, and the next run starts from them. A failing input is kept
# there too, and the script prints its path and the command that runs it again.
#
# In CI every run starts from the seeds with the same random numbers, so its result depends on the commit alone. Use
# `make fuzz` on your machine to explore.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

# Each target with its seconds.
all=(record:60 import:60 canonical:60 endpoint:60 expression:60 machine:60 pattern:60 trigger:30)

# Cargo's target folder.
target_dir=${CARGO_TARGET_DIR:-target}

# Inputs grow no longer than this, in bytes; the seeds are shorter.
input_bytes_max=16384
# No input takes longer than this, in seconds, or more memory, in MiB: ten times what the slowest and largest seeds do.
input_seconds_max=20
memory_mib_max=640
# The stack that the product's own threads have, in KiB, so that nesting shows what it costs there.
stack_kib=2048

# The features and kinds of dependencies are the test run's, so that both share the libraries that they build.
build() {
    local examples=()
    for target in "${all[@]}"; do examples+=(--example "${target%:*}"); done
    RUSTC_WORKSPACE_WRAPPER=$PWD/verify/fuzz/rustc.sh \
        cargo build --quiet ${CI:+--locked} --workspace --all-features "${examples[@]}"
    # Every other build has programs of the same names that do nothing, and puts them in the same place.
    mkdir -p "$target_dir/fuzz/bin"
    for target in "${all[@]}"; do cp "$target_dir/debug/examples/${target%:*}" "$target_dir/fuzz/bin/"; done
}

# fuzz TARGET SECONDS, in one line if it found nothing.
fuzz() {
    local target=$1 seconds=$2
    local corpus=$target_dir/fuzz/corpus/$target failures=$target_dir/fuzz/failures log=$target_dir/fuzz/$target.log
    local draw=()
    if [ -n "${CI:-}" ]; then
        corpus=$target_dir/fuzz/ci/$target
        rm -rf "$corpus"
        draw=(-seed=1)
    fi
    mkdir -p "$corpus" "$failures"
    local limit=-max_total_time=$seconds
    [ "$seconds" != 0 ] || limit=-runs=0
    if ! run "$target" "$corpus" "$limit" -max_len=$input_bytes_max "${draw[@]}" -artifact_prefix="$failures/$target-" \
        -print_final_stats=1 >"$log" 2>&1; then
        grep -a -m 1 -A 6 'panicked at\|ERROR: libFuzzer' "$log" | cut -c 1-1000 >&2 || tail -n 20 "$log" >&2
        local input
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        echo "error: fuzzing $target found an input that breaks a promise: ${input:-see $log}" >&2
        [ -z "$input" ] || echo "hint: to run it again: bash scripts/fuzz.sh $target $input" >&2
        return 1
    fi
    local runs coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 branches, \3 inputs kept/p' "$log" | tail -n 1)
    [ "${runs:-0}" -gt 0 ] || fail "fuzzing $target ran no input" "see $log"
    echo "fuzz $target: $runs inputs run, ${coverage:-nothing new}"
}

# run TARGET ARGUMENT...
run() {
    local program=$target_dir/fuzz/bin/$1
    shift
    ulimit -s $stack_kib
    "$program" "$@" -timeout=$input_seconds_max -rss_limit_mb=$memory_mib_max
}

if [ "${1:-}" = --built ]; then
    fuzz "$2" "$3"
    exit
fi

given=${1:-all}
[[ " all ${all[*]%:*} " = *" $given "* ]] || fail "unknown fuzz target \`$given\`" "use all, or one of: ${all[*]%:*}"
mkdir -p "$tools_dir"
need c++ g++
build

# A fuzzer does not clean up when it exits, so its temporary folder is removed here. It holds many short-lived journals,
# so it is in memory if possible.
if [ -w /dev/shm ]; then TMPDIR=/dev/shm; fi
TMPDIR=$(mktemp -d -p "${TMPDIR:-/tmp}")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

if [ "$given" = all ]; then
    for target in "${all[@]}"; do
        echo "${target%:*} ${2:-${target#*:}}"
    done | xargs -P 2 -L 1 bash scripts/fuzz.sh --built
elif [ -f "${2:-}" ]; then
    run "$given" "$2"
else
    fuzz "$given" "${2:-60}"
fi
