#!/usr/bin/env bash
# Counts the processor instructions of an append, a step and a resumed step with valgrind, in a build without
# optimisation. The counts depend on neither load nor disk, so a regression shows on any machine. The script fails if a
# count is more than 10 % above scripts/instructions.txt.
#
#   scripts/instructions.sh            compares
#   scripts/instructions.sh --write    updates the file after an intended change

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
need valgrind valgrind

known=scripts/instructions.txt
tolerance_percent=10
bench=$(cargo test --quiet --workspace --all-features --bench daybook --no-run --message-format json \
    | sed -n '/"kind":\["bench"\]/s/.*"name":"daybook".*"executable":"\([^"]*\)".*/\1/p')

counted() {
    local log
    log=$(mktemp)
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$log" "$bench" count "$1" "$2" >/dev/null
    sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' "$log"
    rm -f "$log"
}

# each WHAT FEW MANY UNITS: instructions of one unit, from the difference of two runs; start and end cancel out.
# Both runs count at the same time, because a count does not depend on other processes.
each() {
    local few many part
    part=$(mktemp)
    counted "$1" "$2" >"$part" &
    many=$(counted "$1" "$3")
    wait $!
    few=$(cat "$part")
    rm -f "$part"
    echo $(((many - few) / (($3 - $2) * $4)))
}

status=0
written=$(mktemp)
trap 'rm -f "$written"' EXIT
while read -r what few many units; do
    now=$(each "$what" "$few" "$many" "$units")
    # A failed count is a difference of zero, which would pass.
    [ "${now:-0}" -gt 0 ] || fail "no instructions of $what were counted" "try: valgrind --tool=callgrind $bench count $what $few"
    echo "$what $now" >>"$written"
    [ "${1:-}" != --write ] || continue
    before=$(sed -n "s/^$what //p" "$known")
    echo "$what: $now instructions, expected $before"
    if [ $((now * 100)) -gt $((before * (100 + tolerance_percent))) ]; then
        echo "error: ${what} takes more than $tolerance_percent % more instructions than before" >&2
        echo "hint: find the cause, or after an intended change run scripts/instructions.sh --write" >&2
        status=1
    fi
done <<'WORK'
append 50 250 1
step 20 120 1
resume 1 3 500
WORK
[ "${1:-}" != --write ] || mv "$written" "$known"
exit $status
