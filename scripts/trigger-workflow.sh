#!/usr/bin/env bash
# Builds the binary and runs one session to its end: trigger-workflow.sh BINARY TARGET AGENT INPUT (AGENT and INPUT may be empty).
# Exits like `daybook trigger --wait`: 0 succeeded, 1 the session failed, 2 unknown.
set -uo pipefail
binary=$1 target=$2 agent=$3 input=$4

if [ "$target" != local ] && [ -d "$input" ]; then
    echo "error: $input is a folder, which only the local stack can read" >&2
    echo "hint: drop TARGET, or pass a JSON file as INPUT" >&2
    exit 64
fi
# An error before the event is sent is not a failed session.
cargo build -p cli --profile local || exit 2

"$binary" --target "$target" trigger ${agent:+--agent "$agent"} ${input:+--input "$input"} --wait --with-stack
