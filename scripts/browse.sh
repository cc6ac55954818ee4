#!/usr/bin/env bash
# Runs a script that drives the page of a stack in a browser: browse.sh BINARY SCRIPT [ARGUMENTS...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools browser

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
DAYBOOK=$(realpath "$1") FOLDER=$folder HOME=$folder CHROMIUM=$(command -v chromium) \
    PLAYWRIGHT=$tools_dir/browser-$playwright_version-$axe_version \
    "$tools_dir/node-$node_version/bin/node" "scripts/$2" "${@:3}"
