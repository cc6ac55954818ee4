#!/usr/bin/env bash
# Commands that need the packages of the AWS CDK.
#
#   scripts/cdk.sh synth TARGET_FOLDER [NAME=VALUE]...    writes the templates to TARGET_FOLDER/cdk.out
#   scripts/cdk.sh bindings                               regenerates infra/src/cdk

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools aws-cdk
cdk=$tools_dir/aws-cdk-$aws_cdk_version

case ${1:-} in
    synth)
        target=$2
        shift 2
        functions=$target/lambdas/arm64
        context=()
        for choice in "$@"; do
            context+=(--context "$choice")
            [[ $choice != functions=* ]] || functions=
        done
        if [ -n "$functions" ]; then
            if [ ! -e "$functions/invoker/bootstrap" ]; then
                echo "the functions are not built: the templates are complete, but their assets are placeholders" >&2
                functions=$target/lambdas/none
                for name in invoker poller watchdog; do
                    mkdir -p "$functions/$name"
                    echo "not built" >"$functions/$name/bootstrap"
                done
            fi
            context+=(--context "functions=$functions")
        fi
        rm -rf "$target/cdk.out"
        cargo run --quiet -p infra -- --packages "$cdk" --out "$target/cdk.out" "${context[@]}"
        ls "$target"/cdk.out/*.template.json ;;
    bindings)
        cargo run --quiet -p jsii-codegen -- --selection infra/bindings.toml --out infra/src/cdk \
            "$cdk/constructs.jsii" "$cdk/aws-cdk-lib.jsii" ;;
    *) fail "expected synth or bindings" ;;
esac
