"""What happens beside the training steps: reports, the mark of a whole checkpoint, the stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyray.errors import TrainingFailed
from polyray.files import write_json

__all__ = ["watcher"]


def watcher(batch_size: int, report: Callable[[dict[str, float]], None] | None) -> Any:
    """A trainer's callback.

    It passes every logged line on, with ``step`` and ``examples_per_second``; stops at a loss that
    is not finite; marks a checkpoint whole when every rank has written its part.
    """
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):
        """See :func:`watcher`."""

        def __init__(self) -> None:
            self._at: tuple[int, float] | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self._at = (state.global_step, time.perf_counter())

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            loss = logs.get("loss")
            if loss is not None and not math.isfinite(loss):
                raise TrainingFailed(
                    f"step {state.global_step}: the loss is {loss}: lower the learning rate, raise "
                    "warmup_steps or train in float32"
                )
            if loss is not None and self._at is not None:
                step, when = self._at
                now = time.perf_counter()
                done = (state.global_step - step) * batch_size
                logs["examples_per_second"] = round(done / max(now - when, 1e-9), 3)
                self._at = (state.global_step, now)
            if report is not None and "train_runtime" not in logs:
                numbers = {k: float(v) for k, v in logs.items() if isinstance(v, int | float)}
                report({"step": float(state.global_step), **numbers})

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            import torch.distributed as dist

            workers = 1
            if dist.is_available() and dist.is_initialized():
                dist.barrier()
                workers = dist.get_world_size()
            if state.is_world_process_zero:
                folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                write_json(folder / "whole.json", {"step": state.global_step, "workers": workers})

    return Watcher()
