"""Characters as vectors, and vectors as characters. Hangul's 11,172 syllables may be taken as what they are made of.

    p(syllable | h) = p(a syllable | h) · p(first letter | h) · p(vowel | h) · p(last letter or none | h)

So 19 + 21 + 28 classes stand for 11,172, and a syllable that was never seen in training is read from its letters.
Unicode has them in the order of their letters, so these follow from the syllable's number (The Unicode Standard, 3.12):

    id = first_syllable + (lead · 21 + vowel) · 28 + tail
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from jumok.layers.embedding import Embedding
from jumok.layers.linear import for_products, linear
from jumok.layers.loss import wide
from jumok.text.jamo import LEADS, SYLLABLES, TAILS, VOWELS, apart, together
from jumok.text.special import PAD

LETTERS = (len(LEADS), len(VOWELS), len(TAILS))


class CharacterEmbedding(nn.Module):
    """E[y] · √d as words have it (layers/embedding.py); a syllable taken apart is the sum of its letters, / √3 so that
    it is as large as the others. Each place has letters of its own: a last ㄱ is another vector than a first one."""

    def __init__(self, charset_size: int, width: int, first_syllable: int | None, jamo: bool) -> None:
        super().__init__()
        self.first = first_syllable if jamo else None
        rows = charset_size if self.first is None else self.first + sum(LETTERS)
        self.table = Embedding(rows, width, padding=PAD)

    def forward(self, ids: Tensor) -> Tensor:
        """(…, D)"""
        if self.first is None:
            return self.table(ids)
        syllable = ids >= self.first
        starts = accumulate(LETTERS[:-1], initial=self.first)
        letters = [letter + start for letter, start in zip(apart(ids - self.first), starts, strict=True)]
        # one look-up of three rows each; what is no syllable is itself and twice padding, which is the zero vector
        plain = [ids, torch.full_like(ids, PAD), torch.full_like(ids, PAD)]
        rows = torch.stack([torch.where(syllable, *pair) for pair in zip(letters, plain, strict=True)], dim=-1)
        return self.table(rows).sum(dim=-2) * torch.where(syllable, 3**-0.5, 1.0)[..., None]


class CharacterHead(nn.Module):
    """log p of characters given h: softmax(W h + b), or four of them where syllables are taken apart: of kinds (all
    other ids, and "a syllable") and of the letters. The softmax is in float32, whatever the products are in."""

    def __init__(self, width: int, charset_size: int, first_syllable: int | None, jamo: bool) -> None:
        super().__init__()
        self.size = charset_size
        self.first = first_syllable if jamo else None
        if self.first is not None and charset_size != self.first + SYLLABLES:
            raise ValueError(f"syllables come last: {charset_size} characters, the first syllable is {self.first}")
        self.parts = [charset_size] if self.first is None else [self.first + 1, *LETTERS]
        self.map = linear(width, sum(self.parts))

    def scores(self, hidden: Tensor) -> list[Tensor]:
        """Log-probabilities of each part: of all ids, or of kinds, first letters, vowels and last letters."""
        logits = self.map(for_products(hidden))
        return [torch.log_softmax(part, dim=-1, dtype=wide(part.dtype)) for part in logits.split(self.parts, dim=-1)]

    def log_probs(self, hidden: Tensor) -> Tensor:
        """(…, V) of hidden (…, D)."""
        kinds, *letters = self.scores(hidden)
        if self.first is None:
            return kinds
        lead, vowel, tail = letters
        syllables = (kinds[..., self.first :] + lead)[..., None] + vowel[..., None, :]
        syllables = syllables[..., None] + tail[..., None, None, :]
        return torch.cat([kinds[..., : self.first], syllables.flatten(-3)], dim=-1)

    def of(self, hidden_BTD: Tensor, ids_BT: Tensor) -> Tensor:
        """(B, T): log p of the given id at each place."""
        return self._at(self.scores(hidden_BTD), ids_BT[..., None])[..., 0]

    def among(self, hidden_BTD: Tensor, ids_BS: Tensor) -> Tensor:
        """(B, T, S): log p of each of a row's ids, at every place of it."""
        return self._at(self.scores(hidden_BTD), ids_BS[:, None].expand(-1, hidden_BTD.size(1), -1))

    def among_rows(self, hidden_BTD: Tensor, rows_N: Tensor, ids_NS: Tensor) -> Tensor:
        """(N, T, S): the same for texts that are each for one of the rows, whose classes are computed once."""
        place_T = torch.arange(hidden_BTD.size(1), device=hidden_BTD.device)

        def at(part_BTV: Tensor, numbers_N1S: Tensor) -> Tensor:
            return part_BTV[rows_N[:, None, None], place_T[:, None], numbers_N1S]

        return self._by_parts(self.scores(hidden_BTD), ids_NS[:, None], at)

    def _at(self, scores: Sequence[Tensor], ids: Tensor) -> Tensor:
        """log p (…, S) of ids (…, S) by scores (…, part)."""
        return self._by_parts(scores, ids, lambda part, numbers: part.gather(-1, numbers))

    def _by_parts(self, scores: Sequence[Tensor], ids: Tensor, at: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """log p of ids, where `at` finds those of numbers in a part."""
        kinds, *letters = scores
        if self.first is None:
            return at(kinds, ids)
        syllable = ids >= self.first
        found = at(kinds, ids.clamp(max=self.first))
        for part, numbers in zip(letters, apart((ids - self.first).clamp(min=0)), strict=True):
            found = found + at(part, numbers) * syllable
        return found

    @torch.no_grad()
    def best(self, hidden: Tensor, without: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """log p and id of the likeliest character, (…) each; `without` these ids, none of which is a syllable.

        Exact where syllables are taken apart, too: the likeliest one consists of the likeliest letters.
        """
        kinds, *letters = self.scores(hidden)
        for id in without:  # in place: nobody else has them, and nothing is learned from a choice
            kinds[..., id] = float("-inf")
        if self.first is None:
            found = kinds.max(dim=-1)
            return found.values, found.indices
        plain = kinds[..., : self.first].max(dim=-1)
        syllable, numbers = kinds[..., self.first], []
        for part in letters:
            letter = part.max(dim=-1)
            syllable = syllable + letter.values
            numbers.append(letter.indices)
        number = together(*numbers) + self.first
        wins = syllable > plain.values
        return torch.where(wins, syllable, plain.values), torch.where(wins, number, plain.indices)
