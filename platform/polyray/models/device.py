"""Where and in which precision a model runs, chosen once and written down."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "choose_batch_size",
    "choose_device",
    "choose_precision",
    "chosen",
    "precision_notes",
    "probe_bfloat16",
]

WORTHWHILE = 1.25
"""bfloat16 on a CPU is chosen where it is at least this many times as fast as float32."""


def choose_device(wanted: str = "auto") -> str:
    """``cuda`` where there is one, else ``cpu``; anything but ``auto`` is taken as it is."""
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def choose_batch_size(wanted: int | None, device: str) -> int:
    """Sequences in a batch: 8 on a CPU (measured best for length-sorted passages), 256 on a GPU."""
    return wanted if wanted is not None else 256 if device.startswith("cuda") else 8


def chosen(device: str, precision: str, batch_size: int | None) -> dict[str, Any]:
    """Device, precision and batch size of a model on this machine, by the names of its settings."""
    found = choose_device(device)
    return {
        "device": found,
        "precision": choose_precision(precision, found),
        "batch_size": choose_batch_size(batch_size, found),
    }


def choose_precision(wanted: str, device: str) -> str:
    """bfloat16 where the device gains by it, else float32.

    On a CPU this is measured, since processors without the instructions emulate them slowly.
    """
    if wanted != "auto":
        return wanted
    import torch

    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if probe_bfloat16() >= WORTHWHILE else "float32"


def precision_notes(described: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """A note for each name whose model, as it describes itself, ran in half precision.

    Figures then differ a little from those of a machine on which float32 was chosen.
    """
    found = {name: facts["precision"] for name, facts in described if "precision" in facts}
    return [
        f"{name}: computed in {precision}, so that figures differ a little from those of "
        "precision: float32"
        for name, precision in found.items()
        if precision in ("bfloat16", "float16")
    ]


def probe_bfloat16(repeats: int = 5) -> float:
    """Time of a float32 linear layer over the same under bfloat16 autocast, on this CPU.

    The layer is one of a small encoder's (512 tokens, 384 to 1536); the best of ``repeats``
    timings of each is compared, interleaved.
    """
    import torch

    layer = torch.nn.Linear(384, 1536)
    tokens = torch.randn(512, 384)
    best = {True: float("inf"), False: float("inf")}
    with torch.inference_mode():
        for _ in range(repeats + 1):
            for half in (False, True):
                with torch.autocast("cpu", torch.bfloat16, enabled=half):
                    start = time.perf_counter()
                    layer(tokens)
                    best[half] = min(best[half], time.perf_counter() - start)
    return best[False] / best[True]
