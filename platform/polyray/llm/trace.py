"""Every call as an MLflow trace, on demand: messages in, answer out, tokens, cost, seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from polyray.llm.request import Request, body_of
from polyray.llm.store import Answer

if TYPE_CHECKING:
    from polyray.tracking import Tracker

__all__ = ["CallTraces"]


class CallTraces:
    """Logs calls into the experiment of an open tracker."""

    def __init__(self, tracker: Tracker) -> None:
        import mlflow

        # Traces know no client of their own: they go where the process's tracking address says.
        mlflow.set_tracking_uri(tracker.uri)
        self._mlflow: Any = mlflow
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

    def flush(self) -> None:
        """Wait until all traces have been written."""
        self._mlflow.flush_trace_async_logging()
