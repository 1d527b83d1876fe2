"""llama.cpp's own HTTP server, which the package xllamacpp carries as a library: MODEL and options as JSON.

It runs with the Python of .venv-model. What the options leave open is as in ``llama-server --jinja``.
"""

import json
import signal
import sys
from typing import Any

import xllamacpp


def main(model: str, options: dict[str, Any]) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {options.pop("alias")}
    params.hostnames = ["127.0.0.1"]
    threads = options.pop("threads")
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    for name, value in options.items():
        setattr(params, name, value)
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
