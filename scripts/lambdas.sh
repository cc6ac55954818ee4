#!/usr/bin/env bash
# Builds the three functions for Amazon Linux 2023 and zips them: scripts/lambdas.sh TARGET_FOLDER arm64|x86_64
#
# Each program goes to TARGET_FOLDER/lambdas/ARCHITECTURE/NAME/bootstrap, with NAME.zip beside that folder. The programs
# are linked for the C library of Amazon Linux 2023, whatever this machine has, and the script checks the result.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
source scripts/cross.sh

# Source: AWS, "Amazon Linux 2023 release notes", glibc.
glibc=2.34
names=(invoker poller watchdog)

target_folder=$1 architecture=$2
case $architecture in
    arm64) triple=aarch64-unknown-linux-gnu ;;
    x86_64) triple=x86_64-unknown-linux-gnu ;;
    *) fail "invalid architecture \`$architecture\`" "use arm64 or x86_64" ;;
esac

# zipped FILE ZIP: writes a zip without timestamps, so the same program gives the same zip.
zipped() {
    "$tools_dir/cargo-zigbuild-$cargo_zigbuild_version/bin/python" - "$@" <<'EOF'
import sys
import zipfile

program = zipfile.ZipInfo("bootstrap", (1980, 1, 1, 0, 0, 0))
program.create_system, program.external_attr, program.compress_type = 3, 0o100755 << 16, zipfile.ZIP_DEFLATED
with open(sys.argv[1], "rb") as file, zipfile.ZipFile(sys.argv[2], "w") as archive:
    archive.writestr(program, file.read(), compresslevel=9)
EOF
}

need objdump binutils
cross_build "$target_folder" $triple $glibc --profile lambda --package lambda "${names[@]/#/--bin=}"

for name in "${names[@]}"; do
    folder=$target_folder/lambdas/$architecture
    mkdir -p "$folder/$name"
    cp "$target_folder/$triple/lambda/$name" "$folder/$name/bootstrap"
    needs=$(objdump -T "$folder/$name/bootstrap" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    newest=$(printf '%s\n' "${needs#GLIBC_}" $glibc | sort -V | tail -n 1)
    [ "$newest" = $glibc ] || fail "$name needs $needs, and Amazon Linux 2023 has $glibc"
    zipped "$folder/$name/bootstrap" "$folder/$name.zip"
    echo "$folder/$name.zip ($(stat -c %s "$folder/$name.zip") bytes, $triple, ${needs:-no GLIBC})"
done
