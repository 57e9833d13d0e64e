"""Training curves as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from polyray.evaluation.plots import PALETTE
from polyray.files import atomic_path

__all__ = ["plot_losses"]

LINES = ("-", "--", ":", "-.")


def plot_losses(path: Path, histories: Mapping[str, Sequence[Mapping[str, float]]]) -> Path:
    """Loss by step of each student, validation beside it where there is one; returns ``path``."""
    from matplotlib.figure import Figure

    shown = {"loss": "loss", "eval_ndcg_at_10": "nDCG@10 of the held-out pool"}
    names = [n for n in shown if any(n in line for found in histories.values() for line in found)]
    figure = Figure(figsize=(6.4 * max(1, len(names)), 4.2), layout="constrained")
    for place, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), place + 1)
        for number, (student, lines) in enumerate(histories.items()):
            points = [(line["step"], line[name]) for line in lines if name in line]
            style = LINES[number // len(PALETTE) % len(LINES)]
            axes.plot(
                [step for step, _ in points],
                [value for _, value in points],
                style,
                color=PALETTE[number % len(PALETTE)],
                label=student,
            )
        axes.set_xlabel("step")
        axes.set_ylabel(shown[name])
        axes.grid(alpha=0.3)
        if place == 0:
            axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=144)
    return path
