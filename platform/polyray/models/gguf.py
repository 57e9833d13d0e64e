"""A language model in GGUF weights as a folder of transformers."""

from __future__ import annotations

from pathlib import Path

__all__ = ["convert"]


def convert(file: Path, folder: Path) -> None:
    """Write a GGUF file's model, in float16, and its tokenizer with the chat template.

    The server of transformers cannot tell the kind of model from the GGUF file alone, and a model
    read from one is not saved as it is, so its weights go into a plain one.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    AutoTokenizer.from_pretrained(**read).save_pretrained(folder)
    packed = AutoModelForCausalLM.from_pretrained(**read, dtype=torch.float32)
    config = packed.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(packed.state_dict())
    plain.half().save_pretrained(folder)
