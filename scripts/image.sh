#!/usr/bin/env bash
# Builds the agents' image: scripts/image.sh TAG [amd64|arm64]. AgentCore takes arm64.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
engine=$(command -v docker || command -v podman) || {
    echo "error: no image builder found" >&2
    echo "hint: install docker with buildx, or podman" >&2
    exit 2
}
"$engine" build --file infra/image/Dockerfile --platform "linux/${2:-arm64}" --tag "$1" .
