"""Pretraining (Devlin et al. 2019): running text → hidden words → what stood there.

    loss = −Σ log p(x_i | what is left of the text)   over the hidden places i        (+ how two halves stand)

Only the hidden places go through the vocabulary: of 128 tokens 19, and that is a quarter of the work saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.masked_batch import MaskedBatch
from jumok.data.masked_plan import MaskedPlan, MaskedTexts
from jumok.data.plan import length_batches
from jumok.data.store import default_cache
from jumok.data.text_store import TextStore
from jumok.data.windows import kept_back
from jumok.errors import BadInput
from jumok.layers.loss import IGNORED
from jumok.layers.packed_attention import HAS_TRITON
from jumok.models.bert import Bert, HiddenWords
from jumok.recipe import BertSection, Corpus, Recipe
from jumok.tasks.language import FEWEST, place_of
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.word_loss import word_loss
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
GUESSED_AT_ONCE = 2048  # where nothing is learned
VALIDATION = 12  # what is drawn, part of the key


class PretrainingObjective(Objective):
    """−Σ log p of the hidden words, and −Σ log p of how two halves stand. Of the latter a row has one and of the former
    `row_weight` on the average: so much does it count, that both are means."""

    model: HiddenWords
    counted = "guesses"

    def __init__(
        self, model: HiddenWords, label_smoothing: float = 0.0, loss_chunk: int = 0, row_weight: float = 1.0
    ) -> None:
        super().__init__()
        self.model, self.label_smoothing, self.loss_chunk = model, label_smoothing, loss_chunk
        self.row_weight = row_weight

    def forward(self, batch: MaskedBatch) -> Loss:
        hidden_BTD = self.model.reader(batch.words, batch.segments)
        hidden_KD = hidden_BTD.flatten(0, 1)[batch.places]
        loss, plain = word_loss(self.model, hidden_KD, batch.wanted, self.label_smoothing, self.loss_chunk)
        if self.model.order is None or batch.order is None:
            return Loss(loss, batch.tokens, {"nll": plain})
        weighted = self.row_weight * self.order_loss(hidden_BTD, batch)
        return Loss(loss + weighted, batch.tokens, {"nll": plain, "order": weighted.detach()})

    def order_loss(self, hidden_BTD: Tensor, batch: MaskedBatch) -> Tensor:
        assert batch.order is not None
        scores_B2 = self.order_scores(hidden_BTD, batch)
        return F.cross_entropy(scores_B2.float(), batch.order, ignore_index=IGNORED, reduction="sum")

    def order_scores(self, hidden_BTD: Tensor, batch: MaskedBatch) -> Tensor:
        assert self.model.order is not None
        scores: Tensor = self.model.order(self.model.reader.first(hidden_BTD, batch.words))
        return scores


class PretrainingTask:
    """Everything `jumok train` needs to know about pretraining."""

    objective: PretrainingObjective

    def __init__(
        self, recipe: Recipe, tokenizer: Tokenizer, device: torch.device, say: Say, cache: Path | None = None
    ) -> None:
        assert isinstance(recipe.model, BertSection)
        self.recipe, self.tokenizer, self.device = recipe, tokenizer, device
        data, training, place = recipe.data, recipe.training, cache or default_cache()

        def store(corpus: Corpus, split: str) -> TextStore:
            return TextStore.open_or_build(corpus, corpus.split or split, tokenizer, place, say)

        def texts(store: TextStore, lines: tuple[int, int] | None = None) -> MaskedTexts:
            return MaskedTexts(store, tokenizer, recipe.masking, data.window, data.documents, lines)

        self.stores = [store(corpus, "train") for corpus in data.train]
        held = [store(corpus, "valid") for corpus in data.valid]
        learned = [texts(one) for one in (self.stores if held else self.stores[1:])]
        self.valid = [texts(one) for one in held]
        if not held:
            first = self.stores[0]
            if len(first) < FEWEST or first.lines < 2:
                raise BadInput(
                    f"{place_of(data.train[0])}: {len(first)} tokens in {first.lines} lines are too few to keep any "
                    "back for validation. Add text, or name validation text (--valid-text)."
                )
            line = min(max(1, first.line_at(kept_back(first, data.hold_out))), first.lines - 1)
            learned = [texts(first, (0, line)), *learned]
            self.valid = [texts(first, (line, first.lines))]
            say(f"no validation text given: the last {first.lines - line:,} lines are kept back for it")
        for number, one in enumerate(learned):
            unknown, words = one.store.meta["unknown"], len(one.store) - one.store.lines
            if not len(one.found):
                raise BadInput(f"{place_of(data.train[number])}: there are no words to learn from")
            if unknown == words:
                raise BadInput(
                    f"{place_of(data.train[number])}: none of its {words:,} tokens is in the vocabulary, so there is "
                    "nothing to guess: it was made from other texts"
                )
        if not any(len(one.found) for one in self.valid):
            raise BadInput("the validation text has no words. Name other text (--valid-text)")
        self.held = held
        weights = [corpus.weight for corpus in data.train]
        packed = chooses_packing(recipe, device)
        self.plan = MaskedPlan(learned, weights, training.batch_tokens, recipe.seed, training.accumulate, packed)
        torch.manual_seed(recipe.seed)
        model = HiddenWords(Bert(recipe.model, tokenizer.size), order=recipe.masking.sentences != "none")
        guesses = recipe.masking.rate * float(np.mean([text.lengths.mean() for text in learned]))
        self.objective = PretrainingObjective(model, training.label_smoothing, training.loss_chunk, guesses)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    @property
    def data_keys(self) -> list[str]:
        return [store.key for store in (*self.stores, *(self.held or self.stores[:1]))]

    def sizes(self) -> str:
        tokens, valid = (sum(int(text.lengths.sum()) for text in part) for part in (self.plan.texts, self.valid))
        epoch = f"{self.plan.batches_per_epoch:,} batches an epoch"
        return f"{tokens:,} tokens to learn from, {valid:,} for validation, {epoch}"

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[MaskedBatch]:
        return self.plan.at(update, only)

    def name_batch(self, batch: MaskedBatch) -> str:
        text, corpus = self.plan.texts[batch.corpus], self.recipe.data.train[batch.corpus]
        lines = [text.store.line_at(int(text.found.begin[index])) + 1 for index in batch.indices[:5]]
        more = f" and {len(batch.indices) - 5} more" if len(batch.indices) > 5 else ""
        return f"the texts of {place_of(corpus)} from lines {', '.join(map(str, lines))}{more} on"

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """−log p of a hidden word, and how many are guessed right; always the same words are hidden."""
        self.objective.eval()
        each = [self._measure(text) for text in self.valid if len(text.found)]
        weights = [corpus.weight for corpus in self.recipe.data.valid] or [1]
        weights = [weight for weight, text in zip(weights, self.valid, strict=True) if len(text.found)]
        return {
            name: sum(weight * one[name] for weight, one in zip(weights, each, strict=True)) / sum(weights)
            for name in each[0]
        }

    def _measure(self, text: MaskedTexts) -> dict[str, float]:
        model, sums = self.objective.model, np.zeros(5)
        generator = np.random.default_rng([self.recipe.seed, VALIDATION])
        for chosen in length_batches(
            text.lengths, np.zeros(len(text.lengths), np.int64), self.recipe.training.batch_tokens
        ):
            batch = text.batch(chosen, generator, None, packed=False).to(self.device)
            hidden_BTD = model.reader(batch.words, batch.segments)
            hidden_KD = hidden_BTD.flatten(0, 1)[batch.places]
            for start in range(0, len(hidden_KD), GUESSED_AT_ONCE):
                wanted = batch.wanted[start : start + GUESSED_AT_ONCE]
                logits = model.head(hidden_KD[start : start + GUESSED_AT_ONCE]).float()
                sums[0] += float(F.cross_entropy(logits, wanted, reduction="sum"))
                sums[1] += float((logits.argmax(dim=-1) == wanted).sum())
                sums[2] += len(wanted)
            if batch.order is not None:
                right = self.objective.order_scores(hidden_BTD, batch).argmax(dim=-1) == batch.order
                sums[3:] += float(right.sum()), float((batch.order != IGNORED).sum())
        values = {"loss": sums[0] / sums[2], "accuracy": sums[1] / sums[2]}
        values["perplexity"] = math.exp(min(values["loss"], 700.0))
        return values | ({"order_accuracy": sums[3] / sums[4]} if sums[4] else {})


def chooses_packing(recipe: Recipe, device: torch.device) -> bool:
    """`auto`: on a GPU, where there is a kernel for the attention of packed texts."""
    assert isinstance(recipe.model, BertSection)
    if recipe.training.pack == "auto":
        return device.type == "cuda" and recipe.model.position != "relative" and HAS_TRITON
    return recipe.training.pack
