"""A new late-interaction model from any encoder backbone: markers and a projection, from a seed.

The projection is not trained, and the model's label says so wherever a figure is shown.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.files import sha256_of, sha256_text
from polyray.models.late_files import new_folder, quiet_loading, write_checkpoint

if TYPE_CHECKING:
    from polyray.models.settings import LateSettings

__all__ = ["new_checkpoint"]

FORM = 1
"""Raised when the same settings give other weights."""
OLD_MARKERS = ("[unused0]", "[unused1]")
"""What colbert-ai uses; XLM-R has neither and multilingual BERT lacks the first."""
NEW_MARKERS = ("[Q]", "[D]")
DEPARTURES = ("prompts", "expansion", "score_specials")
DOC_MAXLEN, QUERY_MAXLEN = 183, 32
"""180-token passages with [CLS], marker and [SEP]; colbert-ai's queries. Settings go before."""


def new_checkpoint(settings: LateSettings) -> Path:
    """The folder of the model, made once and kept in polyray's cache.

    The same settings and backbone give the same bytes anywhere. Raises
    :class:`~polyray.errors.ConfigError` where the projection does not fit the backbone.
    """
    from polyray.indexes.manifest import settings_key
    from polyray.models.packaged import cache_folder, folder_of

    source = str(settings.backbone)
    folder = folder_of(source)
    names = ("dim", "projection", "seed", "mask_punctuation", "marker_start", *DEPARTURES)
    facts = settings.model_dump(include=set(names)) | {
        "backbone": _identity(source, folder),
        "form": FORM,
    }
    slug = re.sub(r"[^A-Za-z0-9]+", "-", Path(source.split(":")[-1]).name).strip("-")
    target = cache_folder() / "models" / f"colbert-{slug}-{settings.dim}-{settings_key(facts)}"
    if not target.is_dir():
        backbone, tokenizer = _backbone(folder, settings)
        markers = _add_markers(backbone, tokenizer, settings)
        metadata = {
            "doc_maxlen": DOC_MAXLEN,
            "query_maxlen": QUERY_MAXLEN,
            "mask_punctuation": settings.mask_punctuation,
            "attend_to_mask_tokens": False,
            "query_token_id": markers[0],
            "doc_token_id": markers[1],
        }
        with new_folder(target) as temporary:
            plain = settings.prompts is None and settings.expansion and settings.score_specials
            folder = temporary if plain else temporary / "colbert"
            folder.mkdir(exist_ok=True)
            write_checkpoint(folder, backbone, tokenizer, _projection(backbone, settings), metadata)
            if not plain:
                _depart(folder, temporary, settings)
                shutil.rmtree(folder)
    return target


def _depart(colbert: Path, folder: Path, settings: LateSettings) -> None:
    """Write the model that ``colbert`` holds, changed as the settings say, as its library does."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    from polyray.models.late_files import skipped_pieces

    with quiet_loading():
        model = MultiVectorEncoder(str(colbert), device="cpu")
    mask = next(module for module in model if isinstance(module, MultiVectorMask))
    if mask.skiplist_words:
        mask.skiplist_words = skipped_pieces(model.tokenizer)
    if not settings.expansion:
        model[0].query_expansion = None
        model[0].query_length = QUERY_MAXLEN
    if settings.prompts is not None:
        model.prompts = dict(zip(("query", "document"), settings.prompts, strict=True))
    if not settings.score_specials:
        kept = model.tokenizer.mask_token
        specials = [name for name in model.tokenizer.all_special_tokens if name != kept]
        both = MultiVectorMask(specials, skiplist_tasks=["query", "document"])
        model.insert(list(model).index(mask) + 1, both)
    model.save_pretrained(str(folder), create_model_card=False)


def _identity(source: str, folder: Path) -> str:
    """What ties a backbone's name to its weights."""
    if not Path(source).is_dir():
        return f"{source}@{folder.name}"
    files = sorted(p for p in folder.iterdir() if p.suffix in (".safetensors", ".bin", ".json"))
    return sha256_text("\n".join(f"{p.name} {sha256_of(p)}" for p in files))


def _backbone(folder: Path, settings: LateSettings) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    trust = settings.trust_remote_code
    try:
        with quiet_loading():
            model = AutoModel.from_pretrained(folder, dtype=torch.float32, trust_remote_code=trust)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
    except (OSError, ValueError, KeyError) as error:
        raise MissingPrerequisite(f"cannot load {settings.backbone!r}: {error}") from error
    return model, tokenizer


def _add_markers(backbone: Any, tokenizer: Any, settings: LateSettings) -> tuple[str, str]:
    """Two real tokens: unused ones of the vocabulary, else new ones with rows of their own."""
    markers = _named_markers(backbone, tokenizer, settings.seed)
    if settings.marker_start == "prompt":
        import torch

        rows = backbone.get_input_embeddings().weight
        with torch.no_grad():
            for marker, word in zip(markers, ("query", "passage"), strict=True):
                pieces = tokenizer.encode(word, add_special_tokens=False)
                rows[tokenizer.convert_tokens_to_ids(marker)] = rows[pieces].mean(dim=0)
    return markers


def _named_markers(backbone: Any, tokenizer: Any, seed: int) -> tuple[str, str]:
    vocabulary = tokenizer.get_vocab()
    unused = [f"[unused{number}]" for number in range(10) if f"[unused{number}]" in vocabulary]
    if set(OLD_MARKERS) <= vocabulary.keys():
        return OLD_MARKERS
    if len(unused) >= 2:
        return unused[0], unused[1]
    import torch
    from tokenizers import AddedToken

    # rstrip: the space behind a marker that is written as text belongs to the marker
    new = [AddedToken(name, normalized=False, special=True, rstrip=True) for name in NEW_MARKERS]
    tokenizer.add_special_tokens(
        {"additional_special_tokens": new}, replace_extra_special_tokens=False
    )
    old = backbone.get_input_embeddings().weight.detach()
    backbone.resize_token_embeddings(max(len(tokenizer), len(old)), mean_resizing=False)
    rows = backbone.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(NEW_MARKERS), rows.shape[1], generator=generator) * old.std(dim=0)
    numbers = tokenizer.convert_tokens_to_ids(list(NEW_MARKERS))
    with torch.no_grad():
        rows[numbers] = old.mean(dim=0) + noise
    return NEW_MARKERS


def _projection(backbone: Any, settings: LateSettings) -> Any:
    """float32 ``[dim, hidden]``: normally distributed from the seed, or the identity."""
    import torch

    hidden = int(backbone.config.hidden_size)
    if settings.projection == "identity":
        if settings.dim != hidden:
            raise ConfigError(f"projection identity needs dim {hidden}, the backbone's own width")
        return torch.eye(hidden)
    generator = torch.Generator().manual_seed(settings.seed)
    deviation = float(getattr(backbone.config, "initializer_range", 0.02))
    return torch.randn(settings.dim, hidden, generator=generator) * deviation
