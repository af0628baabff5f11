"""A pretrained model, used as it was trained: which word stands where [MASK] stands?"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.models.bert import HiddenWords
from jumok.text.tokenizer import Tokenizer

MASK = "[MASK]"


@dataclass(frozen=True)
class Guess:
    """A token for a hidden place, and how likely it is."""

    token: str
    probability: float
    text: str  # the whole, with this token in its place (and the likeliest ones in the others)


class Filler:
    """Guesses hidden words."""

    def __init__(self, model: HiddenWords, tokenizer: Tokenizer, window: int, device: torch.device) -> None:
        self.model, self.tokenizer, self.window, self.device = model, tokenizer, window, device

    @torch.inference_mode()
    def fill(self, text: str, best: int = 5) -> list[list[Guess]]:
        """For each [MASK] of a text the `best` likeliest tokens."""
        parts = text.split(MASK)
        if len(parts) < 2:
            raise BadInput(f"there is no {MASK} in the text: write it where a word should be guessed")
        if best < 1:
            raise BadInput(f"{best} guesses: ask for one at least")
        specials = self.tokenizer.specials
        if specials.mask is None:
            raise BadInput(f"this run's vocabulary (kind {self.tokenizer.kind}) has no {MASK}")
        row = [specials.start]
        places = []
        for number, ids in enumerate(self.tokenizer.encode(parts)):
            if number:
                places.append(len(row))
                row.append(specials.mask)
            row += ids
        row.append(specials.end)
        if len(row) > self.window:
            raise BadInput(f"the text has {len(row)} tokens and the model reads {self.window}: shorten it")
        self.model.eval()
        words = Sequences.pad([row]).to(self.device)
        logits_MV = self.model.head(self.model.reader(words)[0, places]).float()
        special = [id for id in range(self.tokenizer.size) if self.tokenizer.is_special(id)]
        logits_MV[:, special] = -torch.inf  # not a word
        chosen = torch.softmax(logits_MV, dim=-1).topk(min(best, self.tokenizer.size - len(special)), dim=-1)
        likeliest = chosen.indices[:, 0].tolist()
        found: list[list[Guess]] = []
        for number, (ids, shares) in enumerate(zip(chosen.indices.tolist(), chosen.values.tolist(), strict=True)):
            guesses = []
            for id, share in zip(ids, shares, strict=True):
                chosen_ids = [*likeliest[:number], id, *likeliest[number + 1 :]]
                guesses.append(Guess(self.tokenizer.pieces([id])[0], share, self._filled(parts, chosen_ids)))
            found.append(guesses)
        return found

    def _filled(self, parts: list[str], ids: list[int]) -> str:
        """The user's own text with tokens in the gaps; one that goes on with a word is written on to it."""
        text, continues = parts[0], self.tokenizer.continues()
        for number, (id, part) in enumerate(zip(ids, parts[1:], strict=True)):
            word = self.tokenizer.pieces([id])[0]
            if continues[id]:
                text = text.rstrip() + word.removeprefix("##")
            else:  # two gaps side by side are two words
                text += (" " if number and not parts[number] else "") + word
            text += part
        return text
