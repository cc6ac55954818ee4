#!/usr/bin/env bash
# Deploys or removes one stage in the account of the current credentials.
#
#   scripts/deploy.sh deploy TARGET_FOLDER STAGE [NAME=VALUE]...    creates the journal, the image's repository, the image, then the rest
#   scripts/deploy.sh diff TARGET_FOLDER STAGE [NAME=VALUE]...      prints what a deployment would change
#   scripts/deploy.sh api-key TARGET_FOLDER STAGE [NAME=VALUE]...   asks for the MCP servers' API key if the parameter does not exist
#   scripts/deploy.sh destroy TARGET_FOLDER STAGE [drop]            removes everything but the journal and the images; with `drop` the journal too
#
# Each command can be repeated after it failed. With APPROVAL=never, `deploy` asks nothing, as a CI service needs; APPROVAL
# has the values of `cdk deploy --require-approval`; the stacks of the journal and of the repository are deployed without
# a question. DEPLOYMENT.md lists the permissions that the credentials need, and what
# to do when a deployment stops.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools awscli
command=$1 target=$2 stage=$3
shift 3
[[ $stage =~ ^[a-z][a-z0-9-]{0,19}$ ]] || fail "invalid stage \`$stage\`" "use 1 to 20 characters of a-z, 0-9 and -, starting with a letter: STAGE=dev"
stack=daybook-$stage table=daybook-$stage-journal
approval=${APPROVAL:-broadening}
case $approval in
    never | any-change | broadening) ;;
    *) fail "invalid APPROVAL \`$approval\`" "use never, any-change or broadening" ;;
esac

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
    local name=$1 key there
    there=$(looked ParameterNotFound ssm get-parameter --name "$name" --query Parameter.Name)
    [ "$there" = none ] || return 0
    if [ "$approval" = never ]; then
        echo "the parameter $name does not exist: agents have no API key (scripts/deploy.sh api-key stores one)" >&2
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
    local repository engine there
    repository=$(aws ecr describe-repositories --repository-names "$stack-agent" \
        --query 'repositories[0].repositoryUri' --output text)
    there=$(looked ImageNotFoundException ecr describe-images --repository-name "$stack-agent" --image-ids imageTag="$1" \
        --query 'length(imageDetails)')
    if [ "$there" = 1 ]; then
        return
    fi
    bash scripts/image.sh "$repository:$1"
    engine=$(command -v docker || command -v podman)
    aws ecr get-login-password | "$engine" login --username AWS --password-stdin "${repository%%/*}"
    "$engine" push "$repository:$1"
}

# AgentCore creates the agent's log group, without a retention, unless it exists.
keep_agent_logs() {
    local days=$1 runtime group
    runtime=$(aws cloudformation describe-stacks --stack-name "$stack" \
        --query "Stacks[0].Outputs[?OutputKey=='AgentRuntimeArn'].OutputValue" --output text)
    group=/aws/bedrock-agentcore/runtimes/${runtime##*/}-DEFAULT
    looked ResourceAlreadyExistsException logs create-log-group --log-group-name "$group" >/dev/null
    aws logs put-retention-policy --log-group-name "$group" --retention-in-days "$days"
}

release() {
    aws cloudformation update-termination-protection --stack-name "$1" --no-enable-termination-protection >/dev/null
}

# The CDK protects a stack before it creates it, and replaces one whose creation has failed only if that is not protected.
release_failed() {
    local status
    status=$(looked "does not exist" cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].StackStatus')
    case $status in
        CREATE_FAILED | ROLLBACK_COMPLETE | ROLLBACK_FAILED | REVIEW_IN_PROGRESS) release "$1" ;;
    esac
}

# The caller names the stage explicitly, so deletion protection is switched off.
destroy() {
    local held
    held=$(looked "does not exist" cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].EnableTerminationProtection')
    if [ "$held" = True ]; then release "$1"; fi
    cdk destroy "$1" --exclusively --force
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
        # The functions and the image are of one source, so that they belong together, unless the caller names others.
        tag=$(choice imageTag "$@")
        tag=${tag:-$(bash scripts/image.sh --tag)}
        if [ -z "$(choice functions "$@")" ]; then
            bash scripts/lambdas.sh "$target" "${architecture:-arm64}"
            set -- "functions=$target/lambdas/${architecture:-arm64}" "$@"
        fi
        bash scripts/cdk.sh synth "$target" "stage=$stage" "imageTag=$tag" "$@" >/dev/null
        # What an earlier stage of this name has left is taken over: its journal and its images.
        for part in journal image; do
            release_failed "$stack-$part"
            cdk deploy "$stack-$part" --exclusively --require-approval never --import-existing-resources
        done
        push_image "$tag"
        ask_for_api_key "$parameter"
        release_failed "$stack"
        cdk deploy "$stack" --exclusively --require-approval "$approval"
        days=$(choice logRetentionDays "$@")
        keep_agent_logs "${days:-90}"
        echo "export DAYBOOK_TARGET=aws DAYBOOK_STAGE=$stage    # then: daybook doctor" ;;
    diff)
        ensure_tools cdk-cli
        tag=$(choice imageTag "$@")
        bash scripts/cdk.sh synth "$target" "stage=$stage" "imageTag=${tag:-$(bash scripts/image.sh --tag)}" "$@" >/dev/null
        cdk diff "$stack-journal" "$stack-image" "$stack" ;;
    destroy)
        # Before anything is removed: a journal that cannot be looked at is not absent.
        there=$(looked ResourceNotFoundException dynamodb describe-table --table-name "$table" --query Table.TableStatus)
        ensure_tools cdk-cli
        bash scripts/cdk.sh synth "$target" "stage=$stage" >/dev/null
        destroy "$stack"
        destroy "$stack-image"
        if [ "${1:-}" != drop ]; then
            [ "$there" = none ] || echo "the journal $table is kept; to delete it: make destroy STAGE=$stage JOURNAL=drop"
            exit
        fi
        destroy "$stack-journal"
        # The stack leaves a protected table.
        there=$(looked ResourceNotFoundException dynamodb describe-table --table-name "$table" --query Table.TableStatus)
        if [ "$there" != none ]; then
            looked ValidationException dynamodb update-table --table-name "$table" --no-deletion-protection-enabled >/dev/null
            aws dynamodb wait table-exists --table-name "$table"
            aws dynamodb delete-table --table-name "$table" >/dev/null
        fi
        echo "the journal $table is deleted" ;;
    *) fail "expected deploy, diff, api-key or destroy" ;;
esac
