"""Conversion of the 4-bit multilingual-e5-small file to a standard BertModel folder.

The file's layout (magic ``E5S1``, little endian): sizes, the vocabulary, a table of tensors, then
their bytes. A tensor is float32, or 4-bit in blocks of 32 values: one float16 scale, then 16 bytes
whose low halves are values 0..15 and whose high halves are values 16..31, each less 8.
The folder that is written loads with transformers and sentence-transformers.
"""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.errors import MissingPrerequisite

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CONVERTER_VERSION", "convert"]

CONVERTER_VERSION = 1
_BLOCK, _BLOCK_BYTES = 32, 18


@dataclass(frozen=True, slots=True)
class _Sizes:
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


class _Reader:
    """Random access to the tensors of one file."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        mapped: Any = np.memmap(path, dtype=np.uint8, mode="r")
        view = memoryview(mapped)
        if bytes(view[:4]) != b"E5S1":
            raise MissingPrerequisite(f"{path} is not a 4-bit e5 file")
        at = 8
        self.sizes = _Sizes(*struct.unpack_from("<7if", view, at))
        at += 28 + 8
        pieces, _bos, _eos, self.padding, _unk, blob = struct.unpack_from("<5iQ", view, at)
        at += 28 + 4 * (pieces + 1) + 4 * pieces + blob
        (normalizer,) = struct.unpack_from("<I", view, at + 4)
        at += 8 + normalizer
        self._table, self._view = {}, view
        (count,) = struct.unpack_from("<i", view, at)
        at += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", view, at)
            name = bytes(view[at + 2 : at + 2 + length]).decode()
            at += 2 + length + 1
            _elements, offset, size = struct.unpack_from("<IQQ", view, at)
            at += 20
            self._table[name] = (offset, size)

    def tensor(self, name: str, *shape: int) -> np.ndarray:
        """The float32 tensor of that name."""
        import numpy as np

        offset, size = self._table[name]
        elements = int(np.prod(shape))
        if size == elements * 4:
            return np.frombuffer(self._view, np.float32, elements, offset).reshape(shape).copy()
        if size != elements // _BLOCK * _BLOCK_BYTES:
            raise MissingPrerequisite(f"tensor {name}: {size} bytes for {elements} values")
        raw = np.frombuffer(self._view, np.uint8, size, offset).reshape(-1, _BLOCK_BYTES)
        scale = raw[:, :2].copy().view(np.float16).astype(np.float32)
        low = (raw[:, 2:] & 15).astype(np.float32) - 8
        high = (raw[:, 2:] >> 4).astype(np.float32) - 8
        return (np.concatenate([low, high], axis=1) * scale).reshape(shape)

    def rows(self, name: str, width: int) -> np.ndarray:
        """A float32 matrix whose number of rows follows from its size."""
        return self.tensor(name, self._table[name][1] // 4 // width, width)


def _weights(reader: _Reader) -> dict[str, np.ndarray]:
    import numpy as np

    size = reader.sizes
    hidden, wide = size.hidden, size.feed_forward
    types: np.ndarray = np.zeros((size.token_types, hidden), np.float32)
    stored = reader.rows("emb.type", hidden)
    types[: len(stored)] = stored
    embeddings = "embeddings."
    found = {
        f"{embeddings}word_embeddings.weight": reader.tensor("emb.word", size.vocabulary, hidden),
        f"{embeddings}position_embeddings.weight": reader.tensor("emb.pos", size.positions, hidden),
        f"{embeddings}token_type_embeddings.weight": types,
        f"{embeddings}LayerNorm.weight": reader.tensor("emb.ln.w", hidden),
        f"{embeddings}LayerNorm.bias": reader.tensor("emb.ln.b", hidden),
    }
    linear = (
        ("q", "attention.self.query", hidden, hidden),
        ("k", "attention.self.key", hidden, hidden),
        ("v", "attention.self.value", hidden, hidden),
        ("ao", "attention.output.dense", hidden, hidden),
        ("fi", "intermediate.dense", wide, hidden),
        ("fo", "output.dense", hidden, wide),
    )
    norms = (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm"))
    for layer in range(size.layers):
        ours, theirs = f"encoder.layer.{layer}.", f"l{layer}."
        for short, name, rows, columns in linear:
            found[f"{ours}{name}.weight"] = reader.tensor(f"{theirs}{short}.w", rows, columns)
            found[f"{ours}{name}.bias"] = reader.tensor(f"{theirs}{short}.b", rows)
        for short, name in norms:
            found[f"{ours}{name}.weight"] = reader.tensor(f"{theirs}{short}.w", hidden)
            found[f"{ours}{name}.bias"] = reader.tensor(f"{theirs}{short}.b", hidden)
    return found


def convert(weights: Path, tokenizer: Path, folder: Path) -> None:
    """Write ``folder`` (which exists) from the 4-bit file and the XLM-R ``tokenizer.json``.

    Values are kept as float16 in ``model.safetensors``; load them as float32.
    """
    import numpy as np
    from safetensors.numpy import save_file

    reader = _Reader(weights)
    size = reader.sizes
    half: dict[str, np.ndarray] = {
        name: value.astype(np.float16) for name, value in _weights(reader).items()
    }
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(tokenizer, folder / "tokenizer.json")

    def write(name: str, value: Any) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")

    write(
        "config.json",
        {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_size": size.hidden,
            "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads,
            "intermediate_size": size.feed_forward,
            "vocab_size": size.vocabulary,
            "max_position_embeddings": size.positions,
            "type_vocab_size": size.token_types,
            "layer_norm_eps": size.epsilon,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
            "initializer_range": 0.02,
            "pad_token_id": reader.padding if reader.padding >= 0 else 1,
            "dtype": "float16",
        },
    )
    special = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "cls_token": "<s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    write("tokenizer_config.json", kind | special)
    write("special_tokens_map.json", special)
    write("sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    write(
        "1_Pooling/config.json",
        {"word_embedding_dimension": size.hidden, "pooling_mode_mean_tokens": True},
    )
    write("2_Normalize/config.json", {})
    write(
        "config_sentence_transformers.json",
        {
            "prompts": {"query": "query: ", "passage": "passage: "},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    steps = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    write(
        "modules.json",
        [
            {
                "idx": number,
                "name": str(number),
                "path": path,
                "type": f"sentence_transformers.models.{step}",
            }
            for number, (path, step) in enumerate(steps)
        ],
    )
