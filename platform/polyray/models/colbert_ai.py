"""colbert-ai, made to load: what has to be done before anything of it is used.

Under transformers 5 its wrapper of a Hugging Face model lacks the call of ``post_init``; a model
that it cannot load it replaces by bert-base-uncased without a word; it writes to standard output;
its four C++ extensions are compiled at first use. :func:`prepare` sees to all of it and leaves
colbert-ai's files untouched::

    from polyray.models.colbert_ai import prepare
    prepare()
    from colbert import Searcher

The set-up compiles the extensions (:mod:`polyray.indexes.plaid.engine`).
"""

from __future__ import annotations

import contextlib
import io
import sys
from functools import cache
from typing import Any

from polyray.compiled import compiler
from polyray.errors import MissingPrerequisite

__all__ = ["on_processor", "prepare", "quiet"]

REPLACEMENT = "bert-base-uncased"
"""What colbert-ai takes when a model cannot be loaded."""


@cache
def prepare() -> None:
    """Make colbert-ai's models load under transformers 5, and never another model instead; load
    its C++ extensions, also for a GPU where one is, and compile them unless that is done.

    Raises :class:`~polyray.errors.MissingPrerequisite` where there is no compiler.
    """
    _mend_models()
    _load_extensions()


def _mend_models() -> None:
    from colbert.modeling import base_colbert, hf_colbert
    from colbert.modeling.tokenization import doc_tokenization, query_tokenization

    original = hf_colbert.class_factory

    def class_factory(name: str) -> Any:
        failed = sys.exc_info()[1]
        if failed is not None and name == REPLACEMENT:
            raise MissingPrerequisite(f"colbert-ai cannot load a model: {failed}") from failed
        made = original(name)
        begin = made.__init__

        def __init__(self: Any, *given: Any, **named: Any) -> None:
            begin(self, *given, **named)
            self.post_init()

        made.__init__ = __init__
        return made

    for module in (hf_colbert, base_colbert, doc_tokenization, query_tokenization):
        module.class_factory = class_factory


@contextlib.contextmanager
def quiet() -> Any:
    """Without what colbert-ai writes to standard output and error while it loads."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


@contextlib.contextmanager
def on_processor() -> Any:
    """What colbert-ai loads inside the block stays on the processor, GPU or not."""
    from colbert.infra.config.settings import RunSettings

    kept = RunSettings.total_visible_gpus
    RunSettings.total_visible_gpus = 0
    try:
        yield
    finally:
        RunSettings.total_visible_gpus = kept


def _load_extensions() -> None:
    import torch
    from colbert.indexing.codecs.residual import ResidualCodec
    from colbert.modeling.colbert import ColBERT
    from colbert.search.index_storage import IndexScorer
    from colbert.search.strided_tensor import StridedTensor

    with quiet(), compiler("late interaction"):
        for kind in (ColBERT, IndexScorer, StridedTensor):
            kind.try_load_torch_extensions(False)
        if torch.cuda.is_available():
            ResidualCodec.try_load_torch_extensions(True)
