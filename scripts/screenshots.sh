#!/usr/bin/env bash
# Takes the pictures that README and docs show anew: screenshots.sh BINARY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools browser

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p docs/pictures
DAYBOOK=$(realpath "$1") FOLDER=$folder HOME=$folder CHROMIUM=$(command -v chromium) \
    PLAYWRIGHT=$tools_dir/browser-$playwright_version-$axe_version \
    "$tools_dir/node-$node_version/bin/node" scripts/screenshots.mjs "$PWD" docs/pictures
