# Builds for any Linux: source this file after tools.sh.

# cross_build TARGET_FOLDER TRIPLE GLIBC ARGUMENT...: `cargo build` for a Linux with this version of the C library or a newer
# one, whatever this machine has.
cross_build() {
    local target_folder=$1 triple=$2 glibc=$3 zig=$tools_dir/cargo-zigbuild-$cargo_zigbuild_version cargo=${CARGO_HOME:-$HOME/.cargo}
    shift 3
    ensure_tools cargo-zigbuild
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ]; then
        { command -v rustup >/dev/null && rustup target add "$triple"; } ||
            fail "Rust has no standard library for $triple here" "rustup target add $triple"
    fi
    mkdir -p "$target_folder"
    target_folder=$(realpath "$target_folder")
    # Remapped paths make the build reproducible in any folder. The encoded form allows spaces in paths. The last mapping that
    # fits is used, so the build's folder comes after the source's, in which it may be.
    local flags
    printf -v flags '%s\x1f%s\x1f%s' "--remap-path-prefix=$cargo=cargo" "--remap-path-prefix=$PWD=daybook" \
        "--remap-path-prefix=$target_folder=target"
    # Zig is a Python package and runs on the first Python in PATH.
    PATH=$zig/bin:$PATH CARGO_ENCODED_RUSTFLAGS=$flags CFLAGS="${CFLAGS:-} -ffile-prefix-map=$cargo=cargo" \
        cargo zigbuild --quiet --target-dir "$target_folder" --target "$triple.$glibc" "$@"
}
