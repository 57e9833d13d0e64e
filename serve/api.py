"""The HTTP side of a search service: routes, limits, and errors as JSON. Knows no Ray."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from serve.messages import SearchRequest, SearchResponse
from serve.service import SearchService, UnknownSystem

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MAX_BODY", "create_api"]

MAX_BODY = 64 * 1024
"""Longest request body, in bytes."""
_LOG = logging.getLogger(__name__)


def create_api(service: SearchService) -> FastAPI:
    """``POST /search``, ``GET /systems`` and ``GET /healthz`` over a service that is loaded.

    Every error is ``{"error": "..."}``: 404 for a path or a system that there is not, 413 for a
    body of more than 64 KiB, 422 for a request that is not right, 500 for what went wrong here
    (its traceback is logged and not sent).
    """
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    api = FastAPI(title="polyray", docs_url=None, redoc_url=None)
    api.add_middleware(_BodyLimit)

    def search(request: SearchRequest) -> SearchResponse:
        return service.search(request)

    def systems() -> dict[str, Any]:
        return {"documents": service.documents, "systems": service.systems()}

    def healthz() -> dict[str, Any]:
        return {"status": "ok", "systems": [system["name"] for system in service.systems()]}

    api.add_api_route("/search", search, methods=["POST"])
    api.add_api_route("/systems", systems, methods=["GET"])
    api.add_api_route("/healthz", healthz, methods=["GET"])
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(UnknownSystem, _unknown)
    api.add_exception_handler(HTTPException, _refused)
    api.add_exception_handler(Exception, _failed)
    return api


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    body = json.dumps({"error": message})
    return Response(body, status, headers, "application/json")


def _invalid(_request: Request, error: Any) -> Response:
    lines = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"][1:])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "json_invalid":
            place, message = "", "the body is not JSON"
        if problem["type"] == "model_attributes_type":
            message = "send a JSON object with Content-Type: application/json"
        lines.append(f"{place}: {message}" if place else message)
    return _error(422, "; ".join(lines))


def _unknown(_request: Request, error: Exception) -> Response:
    return _error(404, str(error))


def _refused(_request: Request, error: Any) -> Response:
    return _error(error.status_code, str(error.detail), error.headers)


def _failed(_request: Request, error: Exception) -> Response:
    _LOG.error("a request failed", exc_info=error)
    return _error(500, "the search failed; the service's log has the reason")


class _BodyLimit:
    """Refuses bodies of more than :data:`MAX_BODY` bytes, announced or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []
        size = _announced(scope)
        more = size <= MAX_BODY
        while more:
            messages.append(await receive())
            size = max(size, sum(len(message.get("body", b"")) for message in messages))
            more = messages[-1].get("more_body", False) and size <= MAX_BODY
        if size > MAX_BODY:
            await _error(413, f"the body is longer than {MAX_BODY} bytes")(scope, receive, send)
            return
        waiting = iter(messages)

        async def replay() -> Message:
            return next(waiting, None) or await receive()

        await self._app(scope, replay, send)


def _announced(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0
