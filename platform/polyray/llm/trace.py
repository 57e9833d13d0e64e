"""Every call as an MLflow trace, on demand: messages in, answer out, tokens, cost, seconds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from polyray.llm.request import Request, body_of
from polyray.llm.store import Answer

if TYPE_CHECKING:
    from polyray.tracking import Tracker

__all__ = ["CallTraces"]

_ADDRESS = "MLFLOW_TRACKING_URI"
"""Set by MLflow, too, whenever the process's address is: it alone is what was there before."""


class CallTraces:
    """Logs calls into the experiment of an open tracker; close it when all calls are logged."""

    def __init__(self, tracker: Tracker) -> None:
        import mlflow

        self._mlflow: Any = mlflow
        # Traces know no client of their own: they go where the process's tracking address says.
        self._before = os.environ.get(_ADDRESS)
        mlflow.set_tracking_uri(tracker.uri)
        self._experiment = tracker.experiment_id
        self._run = tracker.run_id

    def __call__(self, request: Request, answer: Answer) -> None:
        """Log one call that has been answered, with the time that it took."""
        from mlflow.entities import SpanType

        ended = time.time_ns()
        facts = {
            "polyray.key": answer.key,
            "polyray.prompt": request.prompt,
            "polyray.sample": request.sample,
            "polyray.retake": request.retake,
            "finish_reason": answer.finish_reason or "",
            "usd": answer.usd if answer.usd is not None else "",
            "mlflow.chat.tokenUsage": {
                "input_tokens": answer.input_tokens,
                "output_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
            },
        }
        span = self._mlflow.start_span_no_context(
            name=request.prompt or "chat",
            span_type=SpanType.CHAT_MODEL,
            inputs=body_of(request),
            attributes=facts,
            metadata={"mlflow.sourceRun": self._run} if self._run else None,
            experiment_id=self._experiment,
            start_time_ns=ended - int(answer.seconds * 1e9),
        )
        span.end(outputs={"content": answer.content, "refusal": answer.refusal}, end_time_ns=ended)

    def close(self) -> None:
        """Wait until all traces have been written; the process's tracking address is as before."""
        self._mlflow.flush_trace_async_logging()
        self._mlflow.set_tracking_uri(None)
        if self._before is not None:
            os.environ[_ADDRESS] = self._before
