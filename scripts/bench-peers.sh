#!/usr/bin/env bash
# Measures ten durable steps a run with Daybook, LangGraph and Restate in turn, on this machine and disk.
#
#   scripts/bench-peers.sh BENCH [ROUNDS]
#
# BENCH is the built program of `cargo bench -p cli --bench daybook`. Each round lets Daybook, LangGraph (SQLite saver,
# durability "sync") and Restate run for a few seconds, one after the other; the table has the medians of the rounds and
# how many times as many runs Daybook did. Every system makes each step durable before the next one starts, which is its default.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools langgraph restate jq

bench=$1 rounds=${2:-3} seconds=3
modules=$tools_dir/restate-$restate_version
node=$tools_dir/node-$node_version/bin/node
# In the target folder, because the system's temporary folder may be in memory.
work=$(mktemp -d "$(dirname "$bench")/peers.XXXXXX")
trap 'rm -rf "$work"' EXIT

for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds" >&2
    "$bench" ten-step "$seconds" 1 16 64
    mkdir "$work/langgraph.$round" "$work/restate.$round"
    "$tools_dir/langgraph-$langgraph_version/bin/python" verify/peers/langgraph_runs.py "$seconds" "$work/langgraph.$round"
    RESTATE_LOGGING=ERROR "$node" verify/peers/restate_runs.mjs "$seconds" "$work/restate.$round" "$modules" 1 16 64
done | grep '^{' >"$work/figures"

echo
echo "ten durable steps a run, runs per second: medians of $rounds rounds of $seconds s; every step on disk before the next"
echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg) at the end"
echo
jq -rs '
  def median: sort | .[length / 2 | floor];
  group_by([.what, .at_once]) | map({what: .[0].what, at_once: .[0].at_once, rate: (map(.per_second) | median)})
  | . as $rows
  | ["", "at once", "a second", "Daybook does"],
    (sort_by([.what != "Daybook", .what, .at_once])[]
     | . as $row
     | ($rows[] | select(.what == "Daybook" and .at_once == $row.at_once) | .rate) as $ours
     | [.what, .at_once, (.rate | round), (if .what == "Daybook" then "" else "\($ours / .rate * 10 | round / 10) times as many" end)])
  | @tsv' "$work/figures" | column -t -s "$(printf '\t')"
