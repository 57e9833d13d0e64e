"""Natural language inference: whether one sentence entails another, by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from polyray.config import Settings
from polyray.errors import ConfigError, MissingPrerequisite
from polyray.models.device import choose_device

if TYPE_CHECKING:
    import numpy as np

__all__ = ["NliModel", "NliSettings"]

ENTAILMENT = "entailment"


class NliSettings(Settings):
    """A sequence classifier with a label ``entailment``: a hub id or a folder.

    ``threshold`` is the least probability of entailment that counts as one.
    """

    model: str = Field(min_length=1)
    revision: str | None = None
    threshold: float = Field(default=0.5, gt=0, lt=1)
    max_length: int = Field(default=256, gt=8)
    batch_size: int = Field(default=32, ge=1)
    device: str = "auto"


class NliModel:
    """A loaded model. Raises :class:`~polyray.errors.MissingPrerequisite` where it cannot be had,
    and :class:`~polyray.errors.ConfigError` where none of its labels is ``entailment``."""

    def __init__(self, settings: NliSettings) -> None:
        from sentence_transformers import CrossEncoder
        from transformers import AutoConfig
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        self._settings = settings
        try:
            config = AutoConfig.from_pretrained(settings.model, revision=settings.revision)
        except (OSError, ValueError) as error:
            raise MissingPrerequisite(f"cannot load model {settings.model!r}: {error}") from error
        labels = {str(name).lower(): int(place) for place, name in config.id2label.items()}
        if ENTAILMENT not in labels:
            raise ConfigError(
                f"model {settings.model!r} has the labels {', '.join(labels)}: one of them has to "
                f"be {ENTAILMENT}"
            )
        self._place = labels[ENTAILMENT]
        self._model = CrossEncoder(
            settings.model,
            device=choose_device(settings.device),
            max_length=settings.max_length,
            revision=settings.revision,
        )

    def entails(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 ``[n]``: the probability that the first sentence of a pair entails the second."""
        import numpy as np

        if not pairs:
            return np.zeros(0, np.float32)
        scores: np.ndarray = self._model.predict(
            list(pairs),
            batch_size=self._settings.batch_size,
            apply_softmax=True,
            show_progress_bar=False,
        )
        return scores[:, self._place]

    def same_meaning(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether each of two sentences entails the other."""
        there = self.entails(pairs)
        back = self.entails([(second, first) for first, second in pairs])
        least = self._settings.threshold
        return [bool(a >= least and b >= least) for a, b in zip(there, back, strict=True)]
