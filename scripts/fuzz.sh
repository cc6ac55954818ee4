#!/usr/bin/env bash
# Runs the fuzz targets, two at a time.
#
#   scripts/fuzz.sh                    all: a minute each, half a minute for triggers
#   scripts/fuzz.sh all 600            all, each for so many seconds
#   scripts/fuzz.sh record 600         one; 0 runs the inputs that are there once and no more
#   scripts/fuzz.sh record FILE        runs one input again
#
# Inputs that reach something new are kept in the target folder and are where the next run begins. An input that fails
# is kept there too, and its path is printed with the command that runs it again.
#
# In CI every run begins at the seeds and draws the same numbers, so that what is said of a commit depends on the commit
# alone; `make fuzz` at a desk is what explores.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

# Each target with its seconds.
all=(record:60 import:60 canonical:60 endpoint:60 expression:60 machine:60 pattern:60 trigger:30)

# The folder that cargo builds in, also where the environment does not name one.
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
        echo "error: fuzzing $target found an input that breaks a promise: ${input:-none was kept, see $log}" >&2
        [ -z "$input" ] || echo "hint: to run it again: bash scripts/fuzz.sh $target $input" >&2
        return 1
    fi
    local runs coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 branches, \3 inputs kept/p' "$log" | tail -n 1)
    [ "${runs:-0}" -gt 0 ] || fail "fuzzing $target ran no input" "its words are in $log"
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
[[ " all ${all[*]%:*} " = *" $given "* ]] || fail "no fuzz target is called $given" "there are: ${all[*]%:*}"
mkdir -p "$tools_dir"
need c++ g++
build

# A fuzzer never ends in order: what it leaves in its temporary folder goes with that. The journals there are many and
# short-lived, so memory is the place for them.
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
