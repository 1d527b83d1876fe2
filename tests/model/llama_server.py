"""llama.cpp's own HTTP server, which the package xllamacpp carries as a library: MODEL PORT CONTEXT THREADS TEMPLATE.

It runs with the Python of .venv-model. The options are those of ``llama-server --jinja``.
"""

import signal
import sys
from pathlib import Path

import xllamacpp


def main(model: str, port: str, context: str, threads: str, template: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    params.chat_template = Path(template).read_text()
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
