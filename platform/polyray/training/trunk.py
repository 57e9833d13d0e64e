"""Frozen layers, computed once a text: what they give is kept until the training ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["FrozenTrunk"]


class FrozenTrunk:
    """Stands for the lowest ``layers`` of an encoder whose embeddings are frozen, too.

    A text's hidden states are computed by themselves, in their own length, so that they depend
    neither on the batch nor on what was computed before; at most ``most_bytes`` of them are kept.
    The model's modules and weights stay what they are. ``computed`` counts texts.
    """

    def __init__(self, backbone: Any, layers: int, padding: int, most_bytes: int) -> None:
        own = getattr(backbone, "encoder", backbone).layer[:layers]
        self._forwards = [layer.forward for layer in own]
        self._padding, self._room = padding, most_bytes
        self._ids: torch.Tensor | None = None
        self._known: dict[bytes, torch.Tensor] = {}
        self.computed = 0
        backbone.embeddings.register_forward_pre_hook(self._remember, with_kwargs=True)
        for place, layer in enumerate(own):
            layer.forward = self._forward if place == 0 else _as_it_is

    def _remember(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._ids = named["input_ids"] if "input_ids" in named else given[0]

    def _forward(
        self,
        hidden: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *given: Any,
        **named: Any,
    ) -> torch.Tensor:
        """float ``[batch, tokens, width]``: zeros where a text is padded."""
        if self._ids is None or self._ids.shape != hidden.shape[:2]:
            raise RuntimeError("the frozen layers were called without their token ids")
        lengths = self._lengths(self._ids)
        found: list[torch.Tensor] = []
        for row, length in enumerate(lengths):
            ids, mask = self._ids[row, :length], _own_part(attention_mask, row, length)
            key = _key(ids, mask)
            states = self._known.get(key)
            if states is None:
                states = self._computed(hidden[row : row + 1, :length], mask, given, named)
                self._keep(key, states)
            found.append(states)
        out = found[0].new_zeros(hidden.shape)  # under autocast not of the embeddings' type
        for row, length in enumerate(lengths):
            out[row, :length] = found[row]
        return out

    def _computed(
        self,
        states: torch.Tensor,
        mask: torch.Tensor | None,
        given: tuple[Any, ...],
        named: dict[str, Any],
    ) -> torch.Tensor:
        import torch

        self.computed += 1
        with torch.no_grad():
            for forward in self._forwards:
                states = forward(states, mask, *given, **named)
        return states[0].clone()

    def _keep(self, key: bytes, states: torch.Tensor) -> None:
        size = states.numel() * states.element_size()
        if size <= self._room:
            self._room -= size
            self._known[key] = states

    def _lengths(self, ids: torch.Tensor) -> list[int]:
        """Tokens of each row up to the last that is no padding."""
        import torch

        places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        last = (ids.ne(self._padding) * places).amax(dim=1)
        return [int(length) for length in last.clamp(min=1)]


def _as_it_is(hidden: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return hidden


def _own_part(mask: torch.Tensor | None, row: int, length: int) -> torch.Tensor | None:
    """A row's part of ``[batch, tokens]`` or ``[batch, heads, tokens, tokens]``; None: see all."""
    if mask is None:
        return None
    mask = mask[row : row + 1, ..., :length]
    if mask.dim() == 4:
        mask = mask[:, :, :length]
    return mask if _hidden(mask).any() else None


def _hidden(mask: torch.Tensor) -> torch.Tensor:
    """bool ``[tokens]``: what is not attended to; the first token always is."""
    first = mask.reshape(-1, mask.shape[-1])[0]
    return first.ne(first[0])


def _key(ids: torch.Tensor, mask: torch.Tensor | None) -> bytes:
    """A text's tokens, and which of them are not attended to."""
    seen = b"" if mask is None else _hidden(mask).cpu().numpy().tobytes()
    return ids.cpu().numpy().tobytes() + b"|" + seen
