"""Fixtures that all tests share: the real data, the cases, and one Ray for the session."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in several processes, those that need Ray share one, and so one Ray."""
    for item in items:
        needs_ray = "ray_session" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("ray" if needs_ray else item.path.stem))


def _data_root() -> Path | None:
    named = os.environ.get("POLYRAY_DATA")
    root = Path(named) if named else ROOT.parent / "shared" / "data"
    return root if root.is_dir() else None


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real evaluation data."""
    root = _data_root()
    if root is None:
        pytest.skip("no evaluation data: set POLYRAY_DATA to its folder")
    return root


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of small inputs with right results, beside the evaluation data."""
    root = _data_root()
    if root is None or not (root.parent / "cases").is_dir():
        pytest.skip("no cases folder beside the evaluation data")
    return root.parent / "cases"


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One local Ray for all tests that need it."""
    from polyray.cluster import started

    with started(num_cpus=2):
        yield


@pytest.fixture(scope="module")
def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``bert`` or ``xlmr`` to a folder with a two-layer encoder of random weights.

    Its tokenizer is a real one of its kind: WordPiece of a few words, or multilingual e5's.
    """

    @cache
    def made(kind: str) -> Path:
        import torch
        from transformers import (
            AutoTokenizer,
            BertConfig,
            BertModel,
            BertTokenizerFast,
            XLMRobertaConfig,
            XLMRobertaModel,
        )

        folder = tmp_path_factory.mktemp(kind)
        torch.manual_seed(0)
        sizes = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 64,
        }
        if kind == "bert":
            letters = [chr(code) for code in range(33, 127)]
            words = [
                "the",
                "sky",
                "is",
                "blue",
                "der",
                "him",
                "##mel",
                "天",
                "空",
                "。",
                "long",
                "words",
            ]
            special = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
            pieces = special + sorted(
                {*letters, *(f"##{x}" for x in letters if x.isalpha()), *words}
            )
            (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
            tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=512)
            model = BertModel(BertConfig(vocab_size=len(tokenizer), **sizes))
        else:
            from polyray.models.packaged import folder_of

            tokenizer = AutoTokenizer.from_pretrained(folder_of("packaged:multilingual-e5-small"))
            model = XLMRobertaModel(
                XLMRobertaConfig(
                    vocab_size=len(tokenizer),
                    max_position_embeddings=514,
                    pad_token_id=tokenizer.pad_token_id,
                    bos_token_id=tokenizer.bos_token_id,
                    eos_token_id=tokenizer.eos_token_id,
                    type_vocab_size=1,
                    **sizes,
                )
            )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return made
