#!/usr/bin/env bash
# Builds the agents' image: scripts/image.sh TAG [amd64|arm64]. AgentCore takes arm64.
#
#   scripts/image.sh --pin    writes the digests that the base images' tags have now into infra/image/bases; needs docker
#   scripts/image.sh --tag    prints the tag of this source's image: the version, and a digest of what is compiled

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bases=infra/image/bases

if [ "${1:-}" = --pin ]; then
    while read -r argument image rest; do
        case $argument in
            '#'*) echo "$argument $image $rest" ;;
            *) echo "$argument $image $(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')" ;;
        esac
    done <$bases >$bases.new
    mv $bases.new $bases
    exit
fi
if [ "${1:-}" = --tag ]; then
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
    digest=$(find Cargo.toml Cargo.lock rust-toolchain.toml infra/image agent crates invoker journal packs poller sdk/rust \
        toolkits/asl toolkits/tlog \( -name tests -o -name benches -o -name target \) -prune -o -type f -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
    echo "$version-${digest:0:12}"
    exit
fi
engine=$(command -v docker || command -v podman) || {
    echo "error: no image builder found" >&2
    echo "hint: install docker with buildx, or podman" >&2
    exit 2
}
pinned=()
while read -r argument image digest; do
    case $digest in
        sha256:*) pinned+=(--build-arg "$argument=$image@$digest") ;;
        unpinned)
            echo "warning: the base image $image is not pinned by digest: its publisher can change what the tag means" >&2
            echo "hint: scripts/image.sh --pin" >&2 ;;
        *) echo "error: $bases: $argument has no digest" >&2; exit 2 ;;
    esac
done < <(grep -v '^#' $bases)
"$engine" build --file infra/image/Dockerfile --platform "linux/${2:-arm64}" "${pinned[@]}" --tag "$1" .
