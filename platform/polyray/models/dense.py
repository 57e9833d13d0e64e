"""Dense bi-encoders: one vector a text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.models.device import chosen
from polyray.models.packaged import PREFIX, folder_of, onnx_file_of
from polyray.models.settings import EncoderSettings, Family, family_of

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Encoder",
    "HashingEncoder",
    "OnnxEncoder",
    "TorchEncoder",
    "is_light",
    "load_encoder",
    "resolved",
]


class Encoder(Protocol):
    """A dense encoder; rows are float32 ``[n, dim]``, unit length unless the model is trained
    for inner products of raw vectors."""

    dim: int

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of queries, or of any text in a symmetric task such as CLSD."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of passages."""
        ...

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """How many of the texts are longer than the model reads."""
        ...

    def describe(self) -> dict[str, Any]:
        """All that a figure made with this encoder depends on."""
        ...


def resolved(settings: EncoderSettings) -> EncoderSettings:
    """The same settings with device, precision and batch size chosen for this machine."""
    if is_light(settings.model):
        return settings.model_copy(update={"device": "cpu", "precision": "float32"})
    found = chosen(settings.device, settings.precision, settings.batch_size)
    return settings.model_copy(update=found)


def load_encoder(settings: EncoderSettings | str) -> Encoder:
    """The encoder of the given settings, or of a model name.

    Raises :class:`~polyray.errors.MissingPrerequisite` where the model cannot be had; a model
    that cannot be loaded is never replaced by another.
    """
    wanted = EncoderSettings(model=settings) if isinstance(settings, str) else settings
    if wanted.model.startswith("hashing:"):
        return HashingEncoder(_dimension(wanted.model), wanted)
    if wanted.model == f"{PREFIX}use-multilingual-v3":
        return OnnxEncoder(wanted)
    return TorchEncoder(resolved(wanted))


def is_light(model: str) -> bool:
    """Whether a model runs without torch, on the CPU, and has no tokenizer of its own."""
    return model.startswith("hashing:") or model == f"{PREFIX}use-multilingual-v3"


def _dimension(model: str) -> int:
    number = model.removeprefix("hashing:")
    if not number.isdigit() or int(number) < 8:
        raise ConfigError(f"{model}: write hashing:DIM with a dimension of at least 8")
    return int(number)


def _prompts(settings: EncoderSettings, own: dict[str, str], family: Family) -> tuple[str, str]:
    query, passage = settings.query_prompt, settings.passage_prompt
    if query is None:
        query = own.get("query") or family.query_prompt
    if passage is None:
        passage = own.get("passage") or own.get("document") or family.passage_prompt
    return query, passage


class TorchEncoder:
    """A sentence-transformers model, in length-sorted batches and the chosen precision."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Load the model; the settings must name device, precision and batch size."""
        import torch

        self._settings = settings
        family = family_of(settings.model)
        self._family = family or Family()
        dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
        self._dtype = dtypes[settings.precision]
        self._model = self._load()
        if settings.max_length is not None:
            self._model.max_seq_length = settings.max_length
        self._model.eval()
        own = {k: v for k, v in self._model.prompts.items() if v}
        self.query_prompt, self.passage_prompt = _prompts(settings, own, self._family)
        wanted = settings.normalize
        self.normalize = self._family.normalize if wanted is None else wanted
        self.dim = int(self._model.get_embedding_dimension())
        self.max_length = int(self._model.max_seq_length or 512)

    def _load(self) -> Any:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        settings = self._settings
        on_gpu = settings.device.startswith("cuda")
        weights: dict[str, Any] = {"dtype": self._dtype if on_gpu else torch.float32}
        if settings.model == f"{PREFIX}multilingual-e5-small":
            weights["add_pooling_layer"] = False
        local = settings.model.startswith(PREFIX) or Path(settings.model).is_dir()
        name = str(folder_of(settings.model)) if local else settings.model
        pooling = settings.pooling or self._family.pooling
        try:
            if pooling is None:
                return SentenceTransformer(
                    name,
                    device=settings.device,
                    revision=settings.revision,
                    trust_remote_code=settings.trust_remote_code,
                    model_kwargs=weights,
                )
            backbone = Transformer(name, model_kwargs=weights | {"revision": settings.revision})
            pool = Pooling(backbone.get_embedding_dimension(), pooling_mode=pooling)
            return SentenceTransformer(modules=[backbone, pool], device=settings.device)
        except (OSError, ValueError) as error:
            raise MissingPrerequisite(f"cannot load model {settings.model!r}: {error}") from error

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, dim]`` with the query prompt before every text."""
        return self._encode(texts, self.query_prompt)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, dim]`` with the passage prompt before every text."""
        return self._encode(texts, self.passage_prompt)

    def prompted(self, text: str, *, passages: bool) -> str:
        """The very string that the model reads."""
        return (self.passage_prompt if passages else self.query_prompt) + text

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """Texts that are longer than ``max_length`` with prompt and special tokens."""
        prompt = self.passage_prompt if passages else self.query_prompt
        return sum(length > self.max_length for length in self._lengths(texts, prompt))

    def _lengths(self, texts: Sequence[str], prompt: str) -> list[int]:
        import logging

        quiet = logging.getLogger("transformers.tokenization_utils_base")
        level = quiet.level
        quiet.setLevel(logging.ERROR)
        try:
            ids = self._model.tokenizer(
                [prompt + text for text in texts], truncation=False, return_attention_mask=False
            )["input_ids"]
        finally:
            quiet.setLevel(level)
        return [len(row) for row in ids]

    def _encode(self, texts: Sequence[str], prompt: str) -> np.ndarray:
        import numpy as np
        import torch

        rows: np.ndarray = np.zeros((len(texts), self.dim), np.float32)
        kind = self._settings.device.split(":", maxsplit=1)[0]
        autocast = kind == "cpu" and self._dtype is not torch.float32
        with torch.inference_mode(), torch.autocast(kind, self._dtype, enabled=autocast):
            for batch in self._batches(texts, prompt):
                features = self._model.preprocess([texts[i] for i in batch], prompt=prompt)
                features = {
                    key: value.to(self._settings.device) if hasattr(value, "to") else value
                    for key, value in features.items()
                }
                vectors = self._model(features)["sentence_embedding"].float()
                if self.normalize:
                    vectors = torch.nn.functional.normalize(vectors, dim=1)
                rows[batch] = vectors.cpu().numpy()
        return rows

    def _batches(self, texts: Sequence[str], prompt: str) -> Iterator[list[int]]:
        """Indices in batches of like length, longest first: memory runs out at once or never."""
        lengths = self._lengths(texts, prompt)
        order = sorted(range(len(texts)), key=lambda i: (-lengths[i], i))
        size = self._settings.batch_size or 8
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def describe(self) -> dict[str, Any]:
        """Model, prompts, pooling, precision, device, batch size and lengths."""
        settings = self._settings
        return {
            "model": settings.model,
            "revision": settings.revision,
            "prompt.query": self.query_prompt,
            "prompt.passage": self.passage_prompt,
            "modules": [type(module).__name__ for module in self._model],
            "pooling": next(
                (m.pooling_mode for m in self._model if hasattr(m, "pooling_mode")), None
            ),
            "normalize": self.normalize,
            "dim": self.dim,
            "max_length": self.max_length,
            "device": settings.device,
            "precision": settings.precision,
            "batch_size": settings.batch_size,
        }


class OnnxEncoder:
    """The Universal Sentence Encoder (multilingual, v3) as an ONNX graph that reads strings."""

    def __init__(self, settings: EncoderSettings) -> None:
        import onnxruntime
        from onnxruntime_extensions import get_library_path

        self._settings = settings
        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(get_library_path())
        self._session = onnxruntime.InferenceSession(
            str(onnx_file_of(settings.model)), options, providers=["CPUExecutionProvider"]
        )
        self.dim = 512
        self.query_prompt = settings.query_prompt or ""
        self.passage_prompt = settings.passage_prompt or ""

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, 512]``, unit rows."""
        return self._encode([self.query_prompt + text for text in texts])

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, 512]``, unit rows."""
        return self._encode([self.passage_prompt + text for text in texts])

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        rows: np.ndarray = np.zeros((len(texts), self.dim), np.float32)
        for number, text in enumerate(texts):
            # one text a call: the quantised graph scales by the whole batch, so that a vector
            # would depend on its neighbours
            rows[number] = self._session.run(["outputs"], {"inputs": [text]})[0][0]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.maximum(norms, 1e-12)

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """Always 0: the graph has no length limit of its own."""
        return 0

    def describe(self) -> dict[str, Any]:
        """Model, prompts and size."""
        return {
            "model": self._settings.model,
            "prompt.query": self.query_prompt,
            "prompt.passage": self.passage_prompt,
            "normalize": True,
            "dim": self.dim,
            "device": "cpu",
            "precision": "int8 (dynamic)",
            "batch_size": 1,
        }


class HashingEncoder:
    """Character trigrams hashed into ``dim`` buckets: no model, no download, always the same.

    For trying a pipeline and for tests; it knows shared spelling and nothing of meaning.
    """

    def __init__(self, dim: int, settings: EncoderSettings | None = None) -> None:
        self.dim = dim
        self.query_prompt = (settings.query_prompt if settings else None) or ""
        self.passage_prompt = (settings.passage_prompt if settings else None) or ""

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, dim]``, unit rows."""
        return self._encode([self.query_prompt + text for text in texts])

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 ``[n, dim]``, unit rows."""
        return self._encode([self.passage_prompt + text for text in texts])

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        from polyray.text.keys import matching_key

        rows: np.ndarray = np.zeros((len(texts), self.dim), np.float32)
        for number, text in enumerate(texts):
            padded = f" {matching_key(text)} "
            for at in range(max(len(padded) - 2, 1)):
                digest = hashlib.blake2b(padded[at : at + 3].encode(), digest_size=8).digest()
                rows[number, int.from_bytes(digest) % self.dim] += 1
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.maximum(norms, 1e-12)

    def truncated(self, texts: Sequence[str], *, passages: bool) -> int:
        """Always 0: texts of any length are read."""
        return 0

    def describe(self) -> dict[str, Any]:
        """Model, prompts and size."""
        return {
            "model": f"hashing:{self.dim}",
            "prompt.query": self.query_prompt,
            "prompt.passage": self.passage_prompt,
            "normalize": True,
            "dim": self.dim,
            "device": "cpu",
            "precision": "float32",
        }
