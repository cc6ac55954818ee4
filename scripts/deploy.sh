#!/usr/bin/env bash
# Deploys or removes one stage in the account of the current credentials.
#
#   scripts/deploy.sh deploy TARGET_FOLDER STAGE [NAME=VALUE]...    creates the image's repository, the image, then the rest
#   scripts/deploy.sh diff TARGET_FOLDER STAGE [NAME=VALUE]...      prints what a deployment would change
#   scripts/deploy.sh api-key TARGET_FOLDER STAGE [NAME=VALUE]...   asks for the MCP servers' API key if the parameter does not exist
#   scripts/deploy.sh destroy TARGET_FOLDER STAGE [drop]            removes everything but the journal; with `drop` the journal too
#
# DEPLOYMENT.md lists the permissions that the credentials need.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools awscli
command=$1 target=$2 stage=$3
shift 3
[[ $stage =~ ^[a-z][a-z0-9-]{0,19}$ ]] || fail "invalid stage \`$stage\`" "use 1 to 20 characters of a-z, 0-9 and -, starting with a letter: STAGE=dev"
stack=daybook-$stage table=daybook-$stage-journal

aws() { "$tools_dir/awscli-$awscli_version/bin/aws" "$@"; }
# looked MISSING COMMAND...: prints the output of `aws COMMAND`, or `none` if it fails with the error MISSING. Any other
# error stops the script, because a resource that seems absent is not protected.
looked() {
    local missing=$1 problem
    shift
    { problem=$(aws "$@" --output text 2>&1 >&3); } 3>&1 && return
    [[ $problem == *"$missing"* ]] || fail "aws $1 $2: ${problem##*$'\n'}"
    echo none
}
cdk() { "$tools_dir/cdk-cli-$cdk_cli_version/node_modules/.bin/cdk" --app "$target/cdk.out" "$@"; }

# A template cannot create a SecureString, so the script asks for it once. The value is never an argument or in a file.
ask_for_api_key() {
    local name=$1 key
    if aws ssm get-parameter --name "$name" --query Parameter.Name --output text >/dev/null 2>&1; then
        return
    fi
    IFS= read -rsp "API key of your MCP servers, for the SSM parameter $name (empty: none): " key || true
    echo >&2
    if [ -z "$key" ]; then
        echo "the parameter $name does not exist: agents have no API key" >&2
        return
    fi
    printf '%s' "$key" |
        aws ssm put-parameter --name "$name" --type SecureString --value file:///dev/stdin >/dev/null
}

push_image() {
    local repository engine
    repository=$(aws ecr describe-repositories --repository-names "$stack-agent" \
        --query 'repositories[0].repositoryUri' --output text)
    if aws ecr describe-images --repository-name "$stack-agent" --image-ids imageTag="$1" >/dev/null 2>&1; then
        return
    fi
    bash scripts/image.sh "$repository:$1"
    engine=$(command -v docker || command -v podman)
    aws ecr get-login-password | "$engine" login --username AWS --password-stdin "${repository%%/*}"
    "$engine" push "$repository:$1"
}

# choice NAME CHOICES...: prints the choice for NAME, if any.
choice() {
    local name=$1 given
    shift
    for given in "$@"; do [[ $given != "$name="* ]] || { echo "${given#*=}"; return; }; done
}

parameter=$(choice mcpApiKeyParameter "$@")
parameter=${parameter:-/incident-response/mcp-api-key}

case $command in
    api-key) ask_for_api_key "$parameter" ;;
    deploy)
        ensure_tools cdk-cli
        architecture=$(choice architecture "$@")
        bash scripts/lambdas.sh "$target" "${architecture:-arm64}"
        bash scripts/cdk.sh synth "$target" "stage=$stage" "functions=$target/lambdas/${architecture:-arm64}" "$@" >/dev/null
        cdk deploy "$stack-image" --require-approval never
        tag=$(choice imageTag "$@")
        push_image "${tag:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}"
        ask_for_api_key "$parameter"
        cdk deploy "$stack"
        echo "export DAYBOOK_TARGET=aws DAYBOOK_STAGE=$stage    # then: daybook doctor" ;;
    diff)
        ensure_tools cdk-cli
        bash scripts/cdk.sh synth "$target" "stage=$stage" "$@" >/dev/null
        cdk diff "$stack-image" "$stack" ;;
    destroy)
        protected=$(looked ResourceNotFoundException dynamodb describe-table --table-name "$table" \
            --query Table.DeletionProtectionEnabled)
        if [ "${1:-}" != drop ] && [ "$protected" = False ]; then
            fail "the journal $table is not protected and would be deleted with the stack" \
                "deploy with protect=true to keep it, or drop it: make destroy STAGE=$stage JOURNAL=drop"
        fi
        ensure_tools cdk-cli
        bash scripts/cdk.sh synth "$target" "stage=$stage" >/dev/null
        held=$(looked "does not exist" cloudformation describe-stacks --stack-name "$stack" \
            --query 'Stacks[0].EnableTerminationProtection')
        # The caller names the stage explicitly, so deletion protection is switched off.
        if [ "$held" = True ]; then
            aws cloudformation update-termination-protection --stack-name "$stack" \
                --no-enable-termination-protection >/dev/null
        fi
        cdk destroy "$stack" --force
        cdk destroy "$stack-image" --force
        if [ "$protected" = none ]; then
            exit
        elif [ "${1:-}" = drop ]; then
            aws dynamodb update-table --table-name "$table" --no-deletion-protection-enabled >/dev/null 2>&1 || true
            aws dynamodb wait table-exists --table-name "$table"
            aws dynamodb delete-table --table-name "$table" >/dev/null
            echo "the journal $table is deleted"
        else
            echo "the journal $table is kept; to delete it: make destroy STAGE=$stage JOURNAL=drop"
        fi ;;
    *) fail "expected deploy, diff, api-key or destroy" ;;
esac
