"""Function words: a list of English ones, and lists that users bring as files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from polyray.errors import ConfigError, InputError, Problem
from polyray.files import open_text, resolve
from polyray.text.keys import matching_key

__all__ = ["StopWords", "packaged_stop_words", "read_stop_words", "stop_words"]

_ENGLISH = """
a an the this that these those some any no none each every either neither both all half such
what which whose whichever whatever many much more most few fewer fewest little less least
several enough another other others same own

i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one ones oneself
who whom whoever someone somebody something anyone anybody anything everyone everybody
everything nobody nothing

am is are was were be been being have has had having do does did doing done
can could may might must shall should will would ought need dare used cannot

of in on at to from by with without within into onto out off up down over under above below
across along around about after before behind beneath beside besides between beyond during
except for inside outside like near past per since than through throughout till until toward
towards upon via versus despite against among amongst amid unlike underneath as

and or but nor so yet if unless because although though while whilst whereas whether once
lest provided

not never only just also too very quite rather even still already always ever again often
sometimes here there where when why how then thus hence therefore however else almost perhaps
maybe yes well away back

aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shan't
shouldn't wasn't weren't won't wouldn't i'm i've i'll i'd you're you've you'll you'd he's he'll
he'd she's she'll she'd it's it'll we're we've we'll we'd they're they've they'll they'd
that's there's here's what's who's where's how's let's
"""
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


class StopWords(NamedTuple):
    """Function words as matching keys, and where they come from."""

    words: frozenset[str]
    source: str

    def __contains__(self, word: object) -> bool:
        """Whether a word or its matching key is in the list; every apostrophe is the same."""
        return isinstance(word, str) and matching_key(word.translate(_APOSTROPHES)) in self.words


@cache
def packaged_stop_words(language: str) -> StopWords | None:
    """The packaged list of a language (ISO 639-1); only English has one, else None."""
    if language != "en":
        return None
    words = frozenset(map(matching_key, _ENGLISH.split()))
    return StopWords(words, f"packaged English list, {len(words)} words")


def read_stop_words(path: str | Path) -> StopWords:
    """Read one word or phrase a line; ``#`` starts a remark, blank lines are passed over.

    Raises :class:`~polyray.errors.InputError` for a file that cannot be read or has no word.
    """
    target = resolve(path)
    lines = (line.partition("#")[0] for _, line in open_text(target))
    keys = (matching_key(" ".join(line.split()).translate(_APOSTROPHES)) for line in lines)
    words = frozenset(key for key in keys if key)
    if not words:
        raise InputError(Problem(str(path), None, "no words in the file", "write one a line"))
    return StopWords(words, f"{target.name}, {len(words)} words")


def stop_words(language: str, path: str | None = None) -> StopWords:
    """The list in ``path``, or the packaged one of ``language`` where there is no path.

    Raises :class:`~polyray.errors.ConfigError` for a language that has no packaged list.
    """
    if path is not None:
        return read_stop_words(path)
    packaged = packaged_stop_words(language)
    if packaged is None:
        what = f"no list of function words is packaged for {language!r}, only for 'en'"
        raise ConfigError(f"{what}: give one as stop_words, a file with one word a line")
    return packaged
