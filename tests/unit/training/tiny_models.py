"""Tiny, randomly initialised teachers in the files that the real ones come in."""

from __future__ import annotations

from pathlib import Path

WORDS = ["the", "a", "of", "old", "new", "house", "river", "bank", "green", "tree", "sea", "query"]


def save_cross_encoder(folder: Path, labels: int = 1, head: bool = True) -> Path:
    """A BertForSequenceClassification (or, without its head, a BertModel) with a tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertModel,
        PreTrainedTokenizerFast,
    )

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS, "?", "."])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    names |= {"sep_token": "[SEP]", "mask_token": "[MASK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=1.0,
    )
    kind = BertForSequenceClassification if head else BertModel
    kind(config).save_pretrained(folder)
    return folder


def save_mono_t5(folder: Path, answers: tuple[str, str] = ("▁true", "▁false")) -> Path:
    """A T5ForConditionalGeneration with a Unigram tokenizer that has the answers as pieces."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    special = ["<pad>", "</s>", "<unk>"]
    words = [f"▁{word}" for word in (*WORDS, "Query:", "Document:", "Relevant:")]
    letters = [*"abcdefghijklmnopqrstuvwxyz:?.▁"]
    pieces = [*special, *answers, *words, *letters]
    scored = [(piece, -1.0 if len(piece) > 1 else -9.0) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(2)
    config = T5Config(
        vocab_size=len(pieces),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        initializer_factor=1.0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
