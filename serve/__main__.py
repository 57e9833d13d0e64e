"""The live endpoint: ``python -m serve configs/quickstart.yaml``; ends with Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from polyray.cli import run_guarded
from polyray.cli.arguments import add_config_arguments

_EXAMPLE = """\
curl -s {url}/search -H 'Content-Type: application/json' \\
  -d '{{"query": "Welche Maßnahmen schützen die Küste vor coastal erosion?", "k": 3}}'"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGINT or SIGTERM; exit status 0 after either, 2 after a user's error."""
    parser = argparse.ArgumentParser(prog="python -m serve", description=__doc__)
    add_config_arguments(parser, "configs/quickstart.yaml")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on")
    parser.add_argument("--documents", metavar="CODE", help="language of the documents")
    parser.add_argument("--replicas", type=int, default=1, help="copies of the service")
    given = parser.parse_args(arguments)
    sys.exit(run_guarded(lambda: _serve(given)))


def _serve(given: argparse.Namespace) -> None:
    from rich.console import Console

    from polyray.cluster import started
    from polyray.config import load_config
    from serve.app import build_app, running
    from tasks.mqir.config import MqirConfig

    console = Console(highlight=False, soft_wrap=True)
    config = load_config(given.config, given.overrides, MqirConfig)
    _until_signal(_interrupt)
    try:
        app = build_app(config, given.documents, replicas=given.replicas)
        with started(address=config.workers.address):
            _until_signal(_interrupt)
            console.print("loading the indexes; the first start builds them and takes a minute")
            with running(app, host=given.host, port=given.port) as url:
                console.print(f"ready: {url} (POST /search, GET /systems, GET /healthz)")
                console.print(_EXAMPLE.format(url=url), markup=False)
                stop = threading.Event()
                _until_signal(lambda *_: stop.set())
                stop.wait()
                _until_signal(signal.SIG_IGN)
                console.print("stopping")
    except KeyboardInterrupt:
        console.print("stopped before it was ready")


def _until_signal(handler: Any) -> None:
    """Let SIGINT and SIGTERM do the same; Ray sets its own handlers when it starts."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
