"""Late interaction (ColBERT, Khattab & Zaharia 2020): one vector a token, compared by MaxSim.

Models are sentence-transformers' ``MultiVectorEncoder``; they come from a colbert-ai checkpoint
(hub id or folder), from PyLate or sentence-transformers, or are made new from any encoder backbone
(:mod:`polyray.models.late_new`). Tokens go in as colbert-ai has them: the marker is put behind the
first special token after the text was cut to one token less, queries are filled up with [MASK],
and the punctuation of documents has no vectors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from polyray.errors import ConfigError, MissingPrerequisite, PolyrayError
from polyray.models.device import chosen
from polyray.models.settings import LateSettings

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LateEncoder",
    "TorchLateEncoder",
    "load_late",
    "resolved_late",
]


QUERIES_A_PASSAGE = 8
"""Queries that are encoded together for each passage that would be: they are that much shorter."""


class LateEncoder(Protocol):
    """A late-interaction encoder; each text becomes float32 ``[tokens, dim]`` with unit rows."""

    dim: int

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Vectors of queries, [MASK] augmentation included where the model has it."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Vectors of passages, without those of punctuation where the model leaves them out."""
        ...

    def query_tokens(self, text: str) -> list[str]:
        """The vocabulary's pieces that the rows of a query's matrix stand for."""
        ...

    def passage_tokens(self, text: str) -> list[str]:
        """The vocabulary's pieces that the rows of a passage's matrix stand for."""
        ...

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """How many of the texts are longer than the model reads."""
        ...

    def describe(self) -> dict[str, Any]:
        """All that a figure made with this encoder depends on."""
        ...


def resolved_late(settings: LateSettings) -> LateSettings:
    """The same settings with device, precision and batch size chosen for this machine."""
    if settings.is_light:
        return settings.model_copy(update={"device": "cpu", "precision": "float32"})
    found = chosen(settings.device, settings.precision, settings.batch_size)
    return settings.model_copy(update=found)


def load_late(settings: LateSettings) -> LateEncoder:
    """The encoder of the given settings.

    Raises :class:`~polyray.errors.MissingPrerequisite` where the model cannot be had; a model
    that cannot be loaded is never replaced by another.
    """
    if settings.is_light:
        from polyray.models.late_hashing import HashingLateEncoder

        return HashingLateEncoder(settings)
    return TorchLateEncoder(resolved_late(settings))


class TorchLateEncoder:
    """A multi-vector model in length-sorted batches and the chosen precision."""

    def __init__(self, settings: LateSettings) -> None:
        """Load the model; the settings must name device, precision and batch size."""
        import torch

        from polyray.models.late_files import checkpoint_of

        self._settings = settings
        dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
        self._dtype = dtypes[settings.precision]
        self.checkpoint = checkpoint_of(settings)
        self.model = _load(self.checkpoint, settings, self._dtype)
        self.model.eval()
        self._tokenizer = self.model.tokenizer
        self.dim = int(self.model.get_embedding_dimension())
        self._reads = _Reading.of(self.model, settings)

    @property
    def settings(self) -> LateSettings:
        """What the encoder was loaded with."""
        return self._settings

    @property
    def doc_maxlen(self) -> int:
        """Tokens of a passage that are read, specials and marker included."""
        return self._reads.doc_maxlen

    @property
    def query_maxlen(self) -> int:
        """Tokens of a query that are read, specials and marker included."""
        return self._reads.query_maxlen

    def lengths_of(self, settings: LateSettings) -> tuple[int, int]:
        """Tokens of a query and of a passage that this model reads under other settings."""
        reads = _Reading.of(self.model, settings)
        return reads.query_maxlen, reads.doc_maxlen

    @property
    def markers(self) -> tuple[str | None, str | None]:
        """The marker tokens of queries and passages; ``None`` where a prompt stands instead."""
        names = [
            None if number is None else str(self._tokenizer.convert_ids_to_tokens(number))
            for number in (self._reads.marker(False), self._reads.marker(True))
        ]
        return names[0], names[1]

    @property
    def masks_punctuation(self) -> bool:
        """Whether pieces of passages, punctuation as a rule, have no vectors."""
        return bool(self.model[_mask_place(self.model)].skiplist_words)

    @property
    def _scores_specials(self) -> bool:
        first = self._tokenizer.all_special_tokens[0]
        return not any(
            first in (getattr(module, "skiplist_words", None) or ()) for module in self.model
        )

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """float32 ``[query_maxlen, dim]`` a query where queries are filled up with [MASK]."""
        return self._encode(self._ids(texts, passages=False), passages=False)

    def encode_passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        """float32 ``[tokens, dim]`` a passage; punctuation that the model skips has no row."""
        return self._encode(self._ids(texts, passages=True), passages=True)

    def query_tokens(self, text: str) -> list[str]:
        """Pieces of a query, [MASK] included: one a row."""
        return self._pieces(text, passages=False)

    def passage_tokens(self, text: str) -> list[str]:
        """Pieces of a passage that have a row."""
        return self._pieces(text, passages=True)

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """Texts that have more tokens than are read, specials and marker counted."""
        limit = self.doc_maxlen if passages else self.query_maxlen
        marked = int(self._reads.marker(passages) is not None)
        with _quiet_tokenizer():
            rows = self._tokenizer(
                [self._reads.prompt(passages) + text for text in texts],
                truncation=False,
                return_attention_mask=False,
            )["input_ids"]
        return sum(len(row) + marked > limit for row in rows)

    def features(self, texts: Sequence[str], *, passages: bool) -> dict[str, Any]:
        """Padded ids and masks of some texts, as the model's modules take them in training, too."""
        return self._features(self._ids(texts, passages=passages), passages=passages)

    def _ids(self, texts: Sequence[str], *, passages: bool) -> list[list[int]]:
        if not texts:
            return []
        reads = self._reads
        limit, marker = (
            (reads.doc_maxlen if passages else reads.query_maxlen),
            reads.marker(passages),
        )
        with _quiet_tokenizer():
            rows: list[list[int]] = self._tokenizer(
                [reads.prompt(passages) + text for text in texts],
                truncation=True,
                max_length=limit - (marker is not None),
                return_attention_mask=False,
            )["input_ids"]
        if marker is not None:
            rows = [[*row[:1], marker, *row[1:]] for row in rows]
        return rows

    def _features(self, rows: Sequence[list[int]], *, passages: bool) -> dict[str, Any]:
        """Padded ids and masks as the model's modules take them."""
        import torch

        reads = self._reads
        expand = not passages and reads.expand
        width = max(map(len, rows))
        if expand:
            width = max(width, reads.query_maxlen)
        fill = reads.mask_id if expand else self._tokenizer.pad_token_id
        ids = torch.full((len(rows), width), fill, dtype=torch.long)
        real = torch.zeros((len(rows), width), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
            real[number, : len(row)] = 1
        features: dict[str, Any] = {"input_ids": ids, "attention_mask": real, "modality": "text"}
        if expand:
            features["query_expansion_positions"] = real == 0
            if reads.attend:
                features["attention_mask"] = torch.ones_like(real)
        return features

    def _encode(self, rows: list[list[int]], *, passages: bool) -> list[np.ndarray]:
        import torch

        vectors: list[Any] = [None] * len(rows)
        device = self._settings.device
        kind = device.split(":", maxsplit=1)[0]
        autocast = kind == "cpu" and self._dtype is not torch.float32
        task = "document" if passages else "query"
        with torch.inference_mode(), torch.autocast(kind, self._dtype, enabled=autocast):
            for batch in self._batches(rows, 1 if passages else QUERIES_A_PASSAGE):
                features = self._features([rows[i] for i in batch], passages=passages)
                on_device = {
                    key: value.to(device) if hasattr(value, "to") else value
                    for key, value in features.items()
                }
                out = self.model(on_device, task=task)
                found = torch.nn.functional.normalize(out["token_embeddings"].float(), dim=-1)
                kept = out["attention_mask"].bool()
                for place, number in enumerate(batch):
                    vectors[number] = found[place][kept[place]].cpu().numpy()
        return vectors

    def _batches(self, rows: Sequence[list[int]], times: int) -> Iterator[list[int]]:
        """Indices in batches of like length, longest first: memory runs out at once or never."""
        order = sorted(range(len(rows)), key=lambda i: (-len(rows[i]), i))
        size = times * (self._settings.batch_size or 8)
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def _pieces(self, text: str, *, passages: bool) -> list[str]:
        rows = self._ids([text], passages=passages)
        features = self._features(rows, passages=passages)
        masked = dict(features)
        for module in self.model:
            if hasattr(module, "skiplist_words"):
                masked = module(masked, task="document" if passages else "query")
        kept = masked["attention_mask"]
        ids = features["input_ids"][0][kept[0].bool()].tolist()
        pieces: list[str] = self._tokenizer.convert_ids_to_tokens(ids)
        return pieces

    def describe(self) -> dict[str, Any]:
        """Model, markers, lengths, expansion, precision, device and batch size."""
        settings, reads = self._settings, self._reads
        return {
            "model": settings.label,
            "revision": settings.revision,
            "projection": settings.projection if settings.backbone else "the checkpoint's own",
            "dim": self.dim,
            "doc_maxlen": reads.doc_maxlen,
            "query_maxlen": reads.query_maxlen,
            "query_expansion": reads.expand,
            "attend_to_mask_tokens": reads.attend,
            "score_specials": self._scores_specials,
            "markers": " ".join(str(marker) for marker in self.markers),
            "prompts": f"{reads.prompt(False)!r} {reads.prompt(True)!r}",
            "device": settings.device,
            "precision": settings.precision,
            "batch_size": settings.batch_size,
        }


class _Reading:
    """How texts become ids: markers or prompts, lengths, expansion."""

    def __init__(self) -> None:
        self._markers: tuple[int | None, int | None] = (None, None)
        self._prompts = ("", "")
        self.doc_maxlen = self.query_maxlen = 0
        self.expand = self.attend = False
        self.mask_id: int | None = None

    @classmethod
    def of(cls, model: Any, settings: LateSettings) -> _Reading:
        """What a loaded model says, with the settings' lengths before its own."""
        reads = cls()
        tokenizer, transformer = model.tokenizer, model[0]
        expansion = transformer.query_expansion
        reads.expand = expansion is not None
        reads.attend = bool(expansion and expansion["attend"])
        own_query = expansion["length"] if expansion else transformer.query_length
        reads.query_maxlen = settings.query_maxlen or own_query or 32
        reads.doc_maxlen = settings.doc_maxlen or transformer.document_length or 183
        most = int(model.max_seq_length or 512)
        for name, length in (("doc", reads.doc_maxlen), ("query", reads.query_maxlen)):
            if length > most:
                raise ConfigError(
                    f"{name}_maxlen is {length}; {settings.label} reads {most} tokens"
                )
        token = expansion.get("token") if expansion else None
        reads.mask_id = tokenizer.convert_tokens_to_ids(token) if token else tokenizer.mask_token_id
        if reads.expand and reads.mask_id is None:
            raise ConfigError(f"{settings.label} has no [MASK] token to fill queries up with")
        prompts = (model.prompts.get("query") or "", _document_prompt(model.prompts))
        special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_encoder.values())
        ids = [tokenizer.convert_tokens_to_ids(prompt.strip()) for prompt in prompts]
        reads._markers = tuple(  # type: ignore[assignment]
            number
            if prompt.strip() and number in special and number != tokenizer.unk_token_id
            else None
            for prompt, number in zip(prompts, ids, strict=True)
        )
        reads._prompts = tuple(  # type: ignore[assignment]
            "" if marker is not None else prompt
            for marker, prompt in zip(reads._markers, prompts, strict=True)
        )
        return reads

    def marker(self, passages: bool) -> int | None:
        return self._markers[int(passages)]

    def prompt(self, passages: bool) -> str:
        return self._prompts[int(passages)]


def _document_prompt(prompts: dict[str, str]) -> str:
    return next(
        (prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), ""
    )


def _mask_place(model: Any) -> int:
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    for place, module in enumerate(model):
        if isinstance(module, MultiVectorMask):
            return place
    raise ConfigError("the model has no module that masks tokens: it is no late-interaction model")


def _load(name: str, settings: LateSettings, dtype: Any) -> Any:
    import torch
    from sentence_transformers import MultiVectorEncoder

    from polyray.models.late_files import is_colbert, quiet_loading, skipped_pieces

    on_gpu = settings.device.startswith("cuda")
    try:
        with quiet_loading():
            model = MultiVectorEncoder(
                name,
                device=settings.device,
                revision=settings.revision,
                trust_remote_code=settings.trust_remote_code,
                model_kwargs={"dtype": dtype if on_gpu else torch.float32},
            )
    except (OSError, ValueError, KeyError) as error:
        raise MissingPrerequisite(f"cannot load model {settings.label!r}: {error}") from error
    mask = model[_mask_place(model)]
    if is_colbert(name, settings.revision) and mask.skiplist_words:
        mask.skiplist_words = skipped_pieces(model.tokenizer)
        mask.resolve_with_tokenizer(model.tokenizer)
    if not any(hasattr(module, "linear") for module in model):
        raise ConfigError(
            f"{settings.label} has no projection of its tokens: make a new model of it"
        )
    return model


@contextmanager
def _quiet_tokenizer() -> Iterator[None]:
    """Without the warning that a text is longer than the model reads: it is counted instead."""
    logger = logging.getLogger("transformers.tokenization_utils_base")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def check_rows(vectors: Sequence[np.ndarray], encoder: LateEncoder) -> None:
    """Raise :class:`~polyray.errors.PolyrayError` for NaN, infinity or a text without a vector."""
    import numpy as np

    facts = encoder.describe()
    for rows in vectors:
        if not len(rows):
            raise PolyrayError(f"{facts['model']} gave a text no vector at all")
        if not np.isfinite(rows).all():
            raise PolyrayError(
                f"{facts['model']} gave vectors that are not finite in {facts['precision']}: "
                "try precision float32"
            )
