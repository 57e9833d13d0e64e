"""Teachers: what scores a (query, passage) pair. Plain classes that know no Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from polyray.config import Settings
from polyray.errors import ConfigError, MissingPrerequisite, PolyrayError
from polyray.models.device import chosen
from polyray.models.settings import EncoderSettings, Precision

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "BiEncoderTeacher",
    "CrossEncoderTeacher",
    "MonoT5Teacher",
    "PairScorer",
    "PairTeacher",
    "Teacher",
    "check_scores",
    "load_scorer",
    "resolved_teacher",
]


class _PairSettings(Settings):
    model: str
    revision: str | None = None
    max_length: int = Field(default=512, gt=8)
    batch_size: int | None = Field(default=None, gt=0)
    device: str = "auto"
    precision: Precision = "auto"


class CrossEncoderTeacher(_PairSettings):
    """A sentence-transformers CrossEncoder with one output: a hub id or a folder.

    The score is the logit, whatever activation the model's files name: a distillation's softmax
    needs differences that a sigmoid would flatten. ``max_length`` counts all tokens of a pair.
    """

    kind: Literal["cross-encoder"]


class MonoT5Teacher(_PairSettings):
    """A T5 that answers with one token whether a passage is relevant (Nogueira et al. 2020).

    The score is the log of the softmax over the two answers' logits at the first decoding step,
    at the answer ``true_token``. The answers are pieces of the vocabulary: ``▁true`` and
    ``▁false`` for monoT5, ``▁yes`` and ``▁no`` for the mT5 models trained on mMARCO. A passage
    that is too long is cut, never the end of the prompt.
    """

    kind: Literal["monot5"]
    true_token: str = "▁true"
    false_token: str = "▁false"
    prompt: str = "Query: {query} Document: {passage} Relevant:"


class BiEncoderTeacher(EncoderSettings):
    """A dense encoder: the cosine of query and passage times ``scale``."""

    kind: Literal["bi-encoder"]
    scale: float = Field(default=50.0, gt=0)

    @property
    def encoder(self) -> EncoderSettings:
        """The encoder's own settings."""
        return EncoderSettings(**self.model_dump(include=set(EncoderSettings.model_fields)))


PairTeacher = CrossEncoderTeacher | MonoT5Teacher
Teacher = Annotated[
    CrossEncoderTeacher | MonoT5Teacher | BiEncoderTeacher, Field(discriminator="kind")
]


class PairScorer(Protocol):
    """Scores pairs, each read together."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 ``[n]`` of (query, passage) pairs; a higher score is more relevant."""
        ...

    def truncated(self, pairs: Sequence[tuple[str, str]]) -> int:
        """How many of the pairs are longer than the model reads."""
        ...


def resolved_teacher(settings: PairTeacher) -> PairTeacher:
    """The same settings with device, precision and batch size chosen for this machine.

    T5 overflows in float16: where that would be chosen it reads in float32.
    """
    found = chosen(settings.device, settings.precision, settings.batch_size)
    if isinstance(settings, MonoT5Teacher) and found["precision"] == "float16":
        if settings.precision == "float16":
            raise ConfigError("teacher.precision: T5 overflows in float16; use bfloat16 or float32")
        found["precision"] = "float32"
    return settings.model_copy(update=found)


def load_scorer(settings: PairTeacher) -> PairScorer:
    """The scorer of settings that name device, precision and batch size.

    Raises :class:`~polyray.errors.MissingPrerequisite` where the model cannot be had, and
    :class:`~polyray.errors.ConfigError` where it is not of the kind that the settings say.
    """
    if isinstance(settings, CrossEncoderTeacher):
        return CrossEncoderScorer(settings)
    return MonoT5Scorer(settings)


def _dtype(settings: PairTeacher) -> Any:
    import torch

    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    return kinds[settings.precision]


def _autocast(settings: PairTeacher) -> Any:
    """Autocast on a CPU, where weights stay float32; on a GPU the weights have the precision."""
    import torch

    kind = settings.device.split(":", maxsplit=1)[0]
    dtype = _dtype(settings)
    return torch.autocast(kind, dtype, enabled=kind == "cpu" and dtype is not torch.float32)


def _weights(settings: PairTeacher) -> dict[str, Any]:
    import torch

    on_gpu = settings.device.startswith("cuda")
    return {"dtype": _dtype(settings) if on_gpu else torch.float32}


def _checked(settings: PairTeacher, ending: str) -> None:
    """Refuse a model that was not made for the task: it would get a random head in silence."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(settings.model, revision=settings.revision)
    except (OSError, ValueError) as error:
        raise MissingPrerequisite(f"cannot load model {settings.model!r}: {error}") from error
    kinds = config.architectures or []
    if not any(kind.endswith(ending) for kind in kinds):
        found = ", ".join(kinds) or "nothing"
        raise ConfigError(
            f"teacher {settings.model!r} is {found}; a {settings.kind} is a model {ending}"
        )


class CrossEncoderScorer:
    """Logits of a sentence-transformers CrossEncoder."""

    def __init__(self, settings: CrossEncoderTeacher) -> None:
        from sentence_transformers import CrossEncoder
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        self._settings = settings
        _checked(settings, "ForSequenceClassification")
        self._model = CrossEncoder(
            settings.model,
            device=settings.device,
            max_length=settings.max_length,
            revision=settings.revision,
            model_kwargs=_weights(settings),
        )
        if self._model.num_labels != 1:
            labels = self._model.num_labels
            raise ConfigError(f"teacher {settings.model!r} has {labels} outputs instead of one")

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 ``[n]``: the logit of each pair."""
        import torch

        with _autocast(self._settings):
            scores: np.ndarray = self._model.predict(
                list(pairs),
                batch_size=self._settings.batch_size or 8,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        return scores

    def truncated(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Pairs of more than ``max_length`` tokens."""
        return sum(
            size > self._settings.max_length for size in _lengths(self._model.tokenizer, pairs)
        )


class MonoT5Scorer:
    """Log-probability of the answer "relevant" of a sequence-to-sequence model."""

    def __init__(self, settings: MonoT5Teacher) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        self._settings = settings
        _checked(settings, "ForConditionalGeneration")
        name, revision = settings.model, settings.revision
        self._tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
        model = AutoModelForSeq2SeqLM.from_pretrained(name, revision=revision, **_weights(settings))
        self._model = model.to(settings.device).eval()
        self._answers = [self._piece(settings.true_token), self._piece(settings.false_token)]
        before, _, self._after = settings.prompt.partition("{passage}")
        self._before = before
        if "{query}" not in before:
            raise ConfigError("teacher.prompt: it needs {query}, and {passage} after it")

    def _piece(self, token: str) -> int:
        number = self._tokenizer.convert_tokens_to_ids(token)
        if number is None or number == self._tokenizer.unk_token_id:
            name = self._settings.model
            raise ConfigError(f"teacher {name!r} has no token {token!r} in its vocabulary")
        return int(number)

    def prompted(self, query: str, passage: str) -> str:
        """The very string that the model reads: the passage cut so that the rest fits."""
        before = self._before.replace("{query}", query)
        plain = {"add_special_tokens": False}
        around = len(self._tokenizer(before + self._after, **plain)["input_ids"]) + 1
        room = max(0, self._settings.max_length - around)
        cut = self._tokenizer(passage, **plain, return_offsets_mapping=True)["offset_mapping"]
        if len(cut) > room:
            passage = passage[: cut[room - 1][1]] if room else ""
        return before + passage + self._after

    def truncated(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Pairs whose passage is cut."""
        return sum(passage not in self.prompted(query, passage) for query, passage in pairs)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 ``[n]``, at most 0: the log-probability that each pair is relevant."""
        import numpy as np
        import torch

        settings = self._settings
        texts = [self.prompted(query, passage) for query, passage in pairs]
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
        scores: np.ndarray = np.zeros(len(texts), np.float32)
        size = settings.batch_size or 8
        start = self._model.config.decoder_start_token_id
        with torch.inference_mode(), _autocast(settings):
            for at in range(0, len(order), size):
                batch = order[at : at + size]
                read = self._tokenizer(
                    [texts[i] for i in batch],
                    padding=True,
                    truncation=True,
                    max_length=settings.max_length,
                    return_tensors="pt",
                ).to(settings.device)
                first = torch.full((len(batch), 1), start, device=settings.device)
                logits = self._model(**read, decoder_input_ids=first).logits[:, 0, self._answers]
                chances = torch.log_softmax(logits.float(), dim=1)[:, 0]
                scores[batch] = chances.cpu().numpy()
        return scores


def _lengths(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> list[int]:
    import logging

    quiet = logging.getLogger("transformers.tokenization_utils_base")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        queries, passages = zip(*pairs, strict=True)
        read = tokenizer(list(queries), list(passages), truncation=False)
        return [len(row) for row in read["input_ids"]]
    finally:
        quiet.setLevel(level)


def check_scores(scores: np.ndarray, model: str, precision: str) -> None:
    """Raise :class:`~polyray.errors.PolyrayError` for scores that are not finite."""
    import numpy as np

    if not np.isfinite(scores).all():
        what = f"teacher {model} gave scores that are not finite in {precision}"
        raise PolyrayError(f"{what}: try precision float32")
