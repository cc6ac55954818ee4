#!/usr/bin/env bash
# Builds what people install: scripts/dist.sh TARGET_FOLDER [PROFILE [ARCHITECTURE...]]
#
# The wheels, npm packages, .debs, archives, SBOMs and SHA256SUMS go to TARGET_FOLDER/dist. PROFILE is `release` without one.
# The architectures are x86_64 and aarch64, and that of this machine must be among them. README.md says how to install each.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
source scripts/cross.sh

# The oldest that Rust builds for on both architectures: Debian 8, Ubuntu 14.04, RHEL 7 and what is newer.
glibc=2.17
# As in the agents' image. `embeddings` compares card payments with a model of one's own, and few have one.
features=live

target_folder=$1 profile=${2:-release}
architectures=("${@:3}")
[ ${#architectures[@]} -gt 0 ] || architectures=(x86_64 aarch64)
folder=$target_folder/dist
need readelf binutils
need dpkg-deb dpkg
ensure_tools cargo-zigbuild dist-checks
checks=$tools_dir/dist-checks-$auditwheel_version-$cyclonedx_version/bin

if [ -n "$(git status --porcelain)" ]; then
    echo "warning: the working tree differs from its commit: another build of the commit will not have the same bytes" >&2
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# The program then does not know this machine's paths.
export DAYBOOK_PACKAGED=1

rm -rf "$folder"
mkdir -p "$folder"
programs=()
for architecture in "${architectures[@]}"; do
    triple=$architecture-unknown-linux-gnu
    cross_build "$target_folder" "$triple" $glibc --locked --profile "$profile" --package cli --bin daybook --features $features
    output=$profile
    [ "$profile" != dev ] || output=debug
    program=$target_folder/$triple/$output/daybook
    ! grep -qF "$PWD" "$program" || fail "$program contains the path $PWD"
    programs+=(--program "$architecture=$program")
    python3 scripts/sbom.py "$folder" "$triple" $features
done
quick=()
[ "$profile" = release ] || quick=(--quick)
python3 scripts/dist.py "$folder" "${programs[@]}" "${quick[@]}"

# Judges that did not write them.
"$checks/python" scripts/sbom-check.py "$folder"/*.cdx.json
for wheel in "$folder"/*.whl; do
    ours=$(basename "$wheel" | sed 's/.*-none-manylinux_2_\([0-9]*\)_.*/\1/')
    needs=$("$checks/auditwheel" show "$wheel" | tr '\n' ' ' |
        sed -n 's/.* consistent with the following platform tag: "manylinux_2_\([0-9]*\)_.*/\1/p')
    [ "${needs:-999}" -le "$ours" ] || fail "$wheel needs another platform than its name has" "$checks/auditwheel show $wheel"
done
(cd "$folder" && sha256sum -- * >SHA256SUMS)
echo "$folder/SHA256SUMS"
