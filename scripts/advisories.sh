#!/usr/bin/env bash
# Checks the dependencies against the RustSec advisories: scripts/advisories.sh
#
# DAYBOOK_ADVISORIES names their database: a folder with a clone, or a URL that git clones. Without it the public database
# is tried. If that one is not reachable, nothing is checked, and the script says so and succeeds; a database that is named
# and cannot be read is an error.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

public=https://github.com/RustSec/advisory-db
# Where cargo-deny looks for its clone: the name, and a hash of the URL.
clone=advisory-db-3157b0e258782691
# How long the database may take to answer, in seconds.
answer_seconds=10
# The database has a commit every few days; an older one may lack the advisory that matters.
age_days_max=30

named=${DAYBOOK_ADVISORIES:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

within() { if command -v timeout >/dev/null; then timeout "$@"; else "${@:2}"; fi; }

# The URL may contain a password: it is not printed.
if ! GIT_TERMINAL_PROMPT=0 within $answer_seconds git ls-remote --quiet "${named:-$public}" HEAD >/dev/null 2>&1; then
    [ -z "$named" ] || fail "the advisory database that DAYBOOK_ADVISORIES names cannot be read" \
        "set it to a folder with a clone of $public, or to a URL that git can clone"
    echo "warning: advisories: not checked: the RustSec database is not reachable" >&2
    echo "hint: set DAYBOOK_ADVISORIES to a folder with a clone of $public" >&2
    exit
fi
GIT_TERMINAL_PROMPT=0 git clone --quiet "${named:-$public}" "$folder/$clone" 2>/dev/null ||
    fail "the advisory database answers, but cannot be cloned"
age_days=$((($(date +%s) - $(git -C "$folder/$clone" log -1 --format=%ct)) / 86400))
[ $age_days -le $age_days_max ] || fail "the advisory database is $age_days days old, more than $age_days_max" "update the clone"
ensure_tools cargo-deny
{
    sed '/^\[advisories\]$/q' deny.toml
    echo "db-path = \"$folder\""
    sed '1,/^\[advisories\]$/d' deny.toml
} >"$folder/deny.toml"
cargo deny --offline --config "$folder/deny.toml" check --hide-inclusion-graph advisories
echo "advisories: checked" >&2
