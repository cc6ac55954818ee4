#!/usr/bin/env bash
# The steps of the image's build stage, which can also be run by hand:
#
#   infra/image/image.sh build amd64|arm64 FOLDER    compiles `agent` and `daybook` for a platform into FOLDER
#   infra/image/image.sh lay FOLDER ROOT             installs the image's files in ROOT

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
    echo "error: $1" >&2
    exit 2
}

case ${1:-} in
    build)
        case $2 in
            amd64) triple=x86_64-unknown-linux-gnu gcc=x86_64-linux-gnu-gcc package=gcc-x86-64-linux-gnu libc=libc6-dev-amd64-cross ;;
            arm64) triple=aarch64-unknown-linux-gnu gcc=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu libc=libc6-dev-arm64-cross ;;
            *) fail "unknown platform \`$2\`: expected amd64 or arm64" ;;
        esac
        packages=(ca-certificates cmake)
        linker=()
        if [ "$(rustc --print host-tuple)" != $triple ]; then
            rustup target add $triple
            packages+=($package $libc)
            name=${triple//-/_}
            linker=("CARGO_TARGET_$(tr '[:lower:]' '[:upper:]' <<<"$name")_LINKER=$gcc" "CC_$name=$gcc")
        else
            packages+=(gcc libc6-dev)
        fi
        apt-get update
        apt-get install --yes --no-install-recommends "${packages[@]}"
        cd "$here/../.."
        env "${linker[@]}" cargo build --locked --release --target $triple -p agent -p cli \
            --bin agent --bin daybook --features agent/container,cli/live
        mkdir -p "$3"
        cp target/$triple/release/agent target/$triple/release/daybook "$3" ;;
    lay)
        built=$2 root=$3
        # Readable and executable by all users, writable by root only: the container runs as an unprivileged user.
        install -d -m 0755 "$root/usr/local/bin" "$root/etc/daybook" "$root/etc/ssl/certs"
        install -m 0755 "$built/agent" "$built/daybook" "$root/usr/local/bin"
        install -m 0644 "$here/servers.json" "$root/etc/daybook/servers.json"
        install -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt" ;;
    *) fail "expected build or lay" ;;
esac
