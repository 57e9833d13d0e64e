"""Checkpoints of late-interaction models on disk: found, fingerprinted, written as colbert-ai does.

colbert-ai's form is a Hugging Face folder whose architecture is ``HF_ColBERT``: the backbone's
weights under its own prefix, the projection as ``linear.weight``, the tokenizer, and
``artifact.metadata`` (JSON: lengths, marker tokens, punctuation masking). sentence-transformers
reads it, too, so that it serves both.
"""

from __future__ import annotations

import shutil
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.files import read_json, sha256_of, sha256_text, write_json

if TYPE_CHECKING:
    from polyray.models.late import TorchLateEncoder
    from polyray.models.settings import LateSettings

__all__ = [
    "checkpoint_of",
    "colbert_folder",
    "fingerprint",
    "is_colbert",
    "new_folder",
    "quiet_loading",
    "save_colbert",
    "skipped_pieces",
    "write_checkpoint",
]

ARCHITECTURE = "HF_ColBERT"
METADATA = "artifact.metadata"
RUN = "run:"


def checkpoint_of(settings: LateSettings) -> str:
    """The folder or hub id that the settings mean; a new model is made and kept once.

    ``run:<id>/best`` and ``run:<id>/last`` are those of a student that was trained here, ``<id>``
    its run in MLflow. Raises :class:`~polyray.errors.MissingPrerequisite` where it cannot be had.
    """
    if settings.model is not None:
        return _trained(settings.model) if settings.model.startswith(RUN) else settings.model
    from polyray.models.late_new import new_checkpoint

    return str(new_checkpoint(settings))


def _trained(name: str) -> str:
    from polyray.tracking import folder_of_run

    run, slash, which = name.removeprefix(RUN).partition("/")
    if not slash or which not in ("best", "last"):
        raise ConfigError(f"{name}: write run:<id>/best or run:<id>/last")
    folder = folder_of_run(run) / which
    if not folder.is_dir():
        raise MissingPrerequisite(f"{name}: {folder} is not there any more")
    return str(folder)


def colbert_folder(settings: LateSettings) -> dict[str, Any]:
    """A model as colbert-ai's configuration names it: checkpoint, lengths, markers, masking.

    A model in another form is written once in colbert-ai's, into polyray's cache; where that form
    cannot hold it, ``checkpoint`` is None and only polyray can search with it.
    """
    lengths = {"doc_maxlen": settings.doc_maxlen, "query_maxlen": settings.query_maxlen}
    chosen = {name: value for name, value in lengths.items() if value is not None}
    if settings.is_light:
        dim = int(str(settings.model).removeprefix("hashing:"))
        return {"checkpoint": None, "dim": dim, **chosen}
    checkpoint = checkpoint_of(settings)
    if not is_colbert(checkpoint, settings.revision):
        from polyray.models.late import TorchLateEncoder, resolved_late
        from polyray.models.packaged import cache_folder

        encoder = TorchLateEncoder(resolved_late(settings.model_copy(update={"device": "cpu"})))
        key = fingerprint(checkpoint, settings.revision)[:16]
        target = cache_folder() / "models" / f"colbert-form-{key}"
        try:
            checkpoint = str(save_colbert(encoder, target))
        except ConfigError:
            return {"checkpoint": None, "dim": encoder.dim, **chosen}
    metadata = _file_of(checkpoint, METADATA, settings.revision)
    own = read_json(metadata) if metadata is not None else {}
    names = ("dim", "doc_maxlen", "query_maxlen", "mask_punctuation", "attend_to_mask_tokens")
    markers = ("query_token_id", "doc_token_id")
    kept = {name: own[name] for name in (*names, *markers) if name in own}
    return {"checkpoint": checkpoint, **kept, **chosen}


def is_colbert(checkpoint: str, revision: str | None = None) -> bool:
    """Whether a checkpoint is in colbert-ai's form."""
    config = _file_of(checkpoint, "config.json", revision)
    return config is not None and ARCHITECTURE in (read_json(config).get("architectures") or [])


def fingerprint(checkpoint: str, revision: str | None = None) -> str:
    """64 hexadecimal digits of a model's files: the same digits, the same vectors.

    Of a hub model they are made of its id and commit, of a folder of its files' contents.
    """
    if checkpoint.startswith("hashing:"):
        return sha256_text(checkpoint)
    folder = Path(checkpoint)
    if not folder.is_dir():
        config = _file_of(checkpoint, "config.json", revision)
        if config is None:
            raise MissingPrerequisite(f"model {checkpoint!r} is neither a folder nor on the hub")
        return sha256_text(f"{checkpoint}@{config.parent.name}")
    skipped = {".md", ".txt"}
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix not in skipped)
    listed = [f"{p.relative_to(folder).as_posix()} {sha256_of(p)}" for p in files]
    return sha256_text("\n".join(listed))


def _file_of(checkpoint: str, name: str, revision: str | None) -> Path | None:
    folder = Path(checkpoint)
    if folder.is_dir():
        return folder / name if (folder / name).is_file() else None
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(checkpoint, name, revision=revision))
    except Exception:  # the hub's client raises many kinds: loading says what is wrong
        return None


def skipped_pieces(tokenizer: Any) -> list[str]:
    """The pieces that colbert-ai leaves out of documents: the first of each punctuation mark.

    In a SentencePiece vocabulary that is often the mark with the sign of a word's start, or that
    sign alone; what counts is that the two agree.
    """
    first = [tokenizer.encode(mark, add_special_tokens=False)[:1] for mark in string.punctuation]
    numbers = sorted({number for ids in first for number in ids})
    return [str(piece) for piece in tokenizer.convert_ids_to_tokens(numbers)]


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Without transformers' report that projection and pooler are not the backbone's own."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that takes the name ``target`` when the block ends well."""
    import os

    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        try:
            temporary.rename(target)
        except OSError:  # another process was first
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_checkpoint(
    folder: Path, backbone: Any, tokenizer: Any, projection: Any, metadata: dict[str, Any]
) -> None:
    """Write colbert-ai's form into an empty folder.

    ``backbone`` is a transformers encoder, ``projection`` float32 ``[dim, hidden]``; ``metadata``
    names ``doc_maxlen``, ``query_maxlen``, ``mask_punctuation``, ``attend_to_mask_tokens``,
    ``query_token_id`` and ``doc_token_id`` (token strings, as colbert-ai calls them).
    """
    import torch
    from safetensors.torch import save_file

    prefix = backbone.base_model_prefix
    weights = {
        f"{prefix}.{name}": value.detach().to("cpu", torch.float32).contiguous()
        for name, value in backbone.state_dict().items()
        if not name.startswith("pooler.")
    }
    weights["linear.weight"] = projection.detach().to("cpu", torch.float32).contiguous()
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    config = backbone.config.to_dict()
    config["architectures"] = [ARCHITECTURE]
    for name in ("_name_or_path", "auto_map", "dtype", "torch_dtype"):
        config.pop(name, None)
    write_json(folder / "config.json", config)
    write_json(folder / METADATA, {**metadata, "dim": int(projection.shape[0])})


def save_colbert(
    encoder: TorchLateEncoder, folder: Path, lengths: tuple[int, int] | None = None
) -> Path:
    """Write a loaded model as colbert-ai's folder; returns it. A folder that is there is kept.

    ``lengths`` are those of queries and passages, where they are not the encoder's.

    Raises :class:`~polyray.errors.ConfigError` for what that form cannot hold: prompts that are
    not one marker token, more than one projection, one with a bias or a non-linearity.
    """
    if (folder / METADATA).is_file():
        return folder
    model, reads = encoder.model, encoder.describe()
    projections = [module for module in model if hasattr(module, "linear")]
    if len(projections) != 1 or projections[0].linear.bias is not None:
        raise ConfigError(f"{reads['model']}: colbert-ai has one projection without a bias")
    if type(getattr(projections[0], "activation_function", None)).__name__ != "Identity":
        raise ConfigError(f"{reads['model']}: colbert-ai's projection is linear")
    if not reads["score_specials"]:
        raise ConfigError(f"{reads['model']}: colbert-ai scores special tokens, too")
    markers = encoder.markers
    if None in markers or not reads["query_expansion"]:
        raise ConfigError(f"{reads['model']}: colbert-ai needs marker tokens and [MASK] expansion")
    query_maxlen, doc_maxlen = lengths or (encoder.query_maxlen, encoder.doc_maxlen)
    metadata = {
        "doc_maxlen": doc_maxlen,
        "query_maxlen": query_maxlen,
        "mask_punctuation": encoder.masks_punctuation,
        "attend_to_mask_tokens": reads["attend_to_mask_tokens"],
        "query_token_id": markers[0],
        "doc_token_id": markers[1],
    }
    with new_folder(folder) as temporary:
        write_checkpoint(
            temporary, model[0].model, model.tokenizer, projections[0].linear.weight, metadata
        )
    return folder
