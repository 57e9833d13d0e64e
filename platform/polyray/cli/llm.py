"""``polyray llm``: a small real LLM behind a server that speaks OpenAI's chat completions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyray.models.packaged import LANGUAGE_MODEL, PREFIX, folder_of

__all__ = ["MODEL", "llm"]

MODEL = f"{PREFIX}{LANGUAGE_MODEL}"
"""A model small enough for a laptop, and too small to write good distractors."""


def llm(
    model: Annotated[str, typer.Argument(help="A packaged model or a folder of one.")] = MODEL,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8100,
    device: Annotated[str, typer.Option(help="As PyTorch names it: cpu, cuda:0.")] = "cpu",
) -> None:
    """Become ``transformers serve`` with one model; it ends with Ctrl-C.

    Requests call the model by its folder's name, ``SmolLM2-135M-Instruct``.

    Raises :class:`~polyray.errors.ConfigError` for an unknown model and
    :class:`~polyray.errors.MissingPrerequisite` where its package is absent.
    """
    folder = folder_of(model)
    command = [str(Path(sys.executable).with_name("transformers")), "serve", folder.name]
    command += ["--host", host, "--port", str(port), "--device", device]
    if device == "cpu":
        command += ["--dtype", "float32"]
    os.chdir(folder.parent)
    os.execv(command[0], command)
