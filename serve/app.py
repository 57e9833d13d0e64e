"""The Ray Serve deployment around a search service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyray.config import load_config
from polyray.errors import PolyrayError
from tasks.mqir.config import MqirConfig

__all__ = ["APP", "build_app", "last_error", "running"]

APP = "polyray"
"""The application's name in Ray Serve."""
ONGOING, QUEUED = 8, 64
"""Requests that a replica holds at once, and that may wait before it; more are answered 503."""
TIMEOUT = 60.0
"""Seconds after which a request is given up."""


class _Search:
    """One replica: a service, and the HTTP routes over it once it is loaded."""

    def __init__(self, config: MqirConfig, documents: str | None) -> None:
        from serve.service import SearchService

        self._service = SearchService(config, documents)

    def __serve_build_asgi_app__(self) -> Any:
        from serve.api import create_api

        return create_api(self._service)


def build_app(
    config: MqirConfig | str | Path,
    documents: str | None = None,
    overrides: Sequence[str] = (),
    replicas: int = 1,
) -> Any:
    """The ``ray.serve`` application for a config or its file.

    Inputs are checked here, so that a user's error shows before anything starts. A replica
    reserves no CPU: it has to leave room for the encoding of documents where an index is built.
    """
    from polyray.cluster import quiet_environment
    from serve.service import prepare

    if not isinstance(config, MqirConfig):
        config = load_config(config, overrides, MqirConfig)
    config = config.model_copy(update={"output": str(Path(config.output).absolute())})
    prepare(config, documents)
    quiet_environment()
    from ray import serve

    deployment = serve.deployment(
        name="Search",
        num_replicas=replicas,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=ONGOING,
        max_queued_requests=QUEUED,
        max_constructor_retry_count=1,
        graceful_shutdown_timeout_s=5,
        health_check_timeout_s=60,
        logging_config={"enable_access_log": False},
    )
    return deployment(serve.ingress()(_Search)).bind(config, documents)


@contextmanager
def running(app: Any, *, host: str = "127.0.0.1", port: int = 8000) -> Iterator[str]:
    """Deploy an application in the Ray of this process for the length of a block; its URL.

    Waits until all indexes are loaded. Raises :class:`~polyray.errors.PolyrayError` where the
    port is taken or the replica cannot start. Serve is shut down at the end, Ray is not.
    """
    import logging

    from ray import serve

    _check_port(host, port)
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    try:
        options = {"host": host, "port": port, "request_timeout_s": TIMEOUT}
        serve.start(proxy_location="HeadOnly", http_options=options)
        try:
            serve.run(app, name=APP, route_prefix="/")
        except RuntimeError as error:
            raise PolyrayError(f"the service did not start: {_reason(error)}") from error
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        serve.shutdown()


def _check_port(host: str, port: int) -> None:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise PolyrayError(f"cannot listen on {host}:{port}: {error}; use another") from None


def _reason(error: RuntimeError) -> str:
    """What stopped the replica, from the status that Serve keeps of it."""
    from ray import serve

    found = serve.status().applications.get(APP)
    messages = [deployment.message for deployment in found.deployments.values()] if found else []
    return last_error("\n".join(messages) or str(error))


def last_error(text: str) -> str:
    """The message at the end of a printed traceback; all of it if it is one of polyray's errors.

    >>> last_error("Traceback ...\\n  File ...\\npolyray.errors.ConfigError: no such model")
    'no such model'
    """
    parts = re.split(r"^polyray\.errors\.\w+: ", text, flags=re.MULTILINE)
    lines = parts[-1].strip().splitlines()
    return "\n".join(lines if len(parts) > 1 else lines[-1:])
