"""Language modelling: running text → windows, model → objective, perplexity → metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import torch

from jumok.data.shuffle import IntArray
from jumok.data.store import default_cache
from jumok.data.text_store import TextStore, read_text
from jumok.data.windows import TextBatch, WindowPlan, kept_back
from jumok.errors import BadInput
from jumok.models.language import LanguageModel, build_language_model
from jumok.recipe import Corpus, Recipe
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.perplexity import text_loss
from jumok.tasks.word_loss import word_loss
from jumok.text.tokenizer import Tokenizer, train_tokenizer

Say = Callable[[str], None]
FEWEST = 40  # tokens: below, there is nothing to keep back


class LanguageObjective(Objective):
    """−Σ_t log p(y_t | y_<t), smoothed as for translation."""

    model: LanguageModel

    def __init__(self, model: LanguageModel, label_smoothing: float = 0.0, loss_chunk: int = 0) -> None:
        super().__init__()
        self.model, self.label_smoothing, self.loss_chunk = model, label_smoothing, loss_chunk

    def forward(self, batch: TextBatch) -> Loss:
        hidden_ND, target_N = self.model(batch.ids).flatten(0, 1), batch.targets.flatten()
        smoothed, plain = word_loss(self.model, hidden_ND, target_N, self.label_smoothing, self.loss_chunk)
        return Loss(smoothed, batch.tokens, {"nll": plain})


class LanguageTask:
    """Everything `jumok train` needs to know about language models."""

    objective: LanguageObjective

    def __init__(
        self, recipe: Recipe, tokenizer: Tokenizer, device: torch.device, say: Say, cache: Path | None = None
    ) -> None:
        self.recipe, self.tokenizer, self.device = recipe, tokenizer, device
        data, training, place = recipe.data, recipe.training, cache or default_cache()

        def store(corpus: Corpus, split: str) -> TextStore:
            return TextStore.open_or_build(corpus, corpus.split or split, tokenizer, place, say)

        self.stores = [store(corpus, "train") for corpus in data.train]
        lengths = [len(text) for text in self.stores]
        self.valid = [store(corpus, "valid") for corpus in data.valid]
        self.valid_ids: list[IntArray] = [text.ids for text in self.valid]
        if not self.valid:
            if lengths[0] < FEWEST:
                raise BadInput(
                    f"{place_of(data.train[0])}: {lengths[0]} tokens are too few to keep any back for validation. "
                    "Add text, or name validation text (--valid-text)."
                )
            lengths[0] = kept_back(self.stores[0], data.hold_out)
            self.valid_ids = [self.stores[0].ids[lengths[0] :]]
            say(f"no validation text given: the last {len(self.valid_ids[0]):,} tokens are kept back for it")
        weights = [corpus.weight for corpus in data.train]
        self.plan = WindowPlan(
            self.stores, lengths, weights, data.window, training.batch_tokens, recipe.seed, training.accumulate
        )
        torch.manual_seed(recipe.seed)
        model = build_language_model(recipe.model, tokenizer.size)
        self.objective = LanguageObjective(model, training.label_smoothing, training.loss_chunk)

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    @property
    def data_keys(self) -> list[str]:
        return [store.key for store in (*self.stores, *(self.valid or self.stores[:1]))]

    def sizes(self) -> str:
        tokens, valid = (sum(map(len, texts)) for texts in (self.plan.texts, self.valid_ids))
        return (
            f"{tokens:,} tokens of training text, {valid:,} for validation, "
            f"{self.plan.batches_per_epoch:,} batches an epoch"
        )

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[TextBatch]:
        return self.plan.at(update, only)

    def name_batch(self, batch: TextBatch) -> str:
        store, corpus = self.stores[batch.corpus], self.recipe.data.train[batch.corpus]
        lines = [store.line_at(start) + 1 for start in batch.starts[:5]]
        more = f" and {len(batch) - 5} more" if len(batch) > 5 else ""
        return f"the windows of {place_of(corpus)} from lines {', '.join(map(str, lines))}{more} on"

    def validate(self) -> dict[str, float]:
        """−log p of a token of the validation text (the mean by weight, when there are several), and perplexity."""
        model, window = self.objective.model, self.recipe.data.window
        losses = [text_loss(model, ids, window, self.device) / len(ids) for ids in self.valid_ids]
        weights = [corpus.weight for corpus in self.recipe.data.valid] or [1]
        loss = sum(weight * one for weight, one in zip(weights, losses, strict=True)) / sum(weights)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    def opening(self, lines: int = 200) -> list[str]:
        """The first lines of the validation text, as they stand in the file: what a sample may begin with."""
        if self.recipe.data.valid:
            corpus, split, first = self.recipe.data.valid[0], "valid", 0
        else:
            corpus, split = self.recipe.data.train[0], "train"
            first = self.stores[0].line_at(len(self.plan.texts[0]))
        return list(islice(read_text(corpus, corpus.split or split), first, first + lines))


def place_of(corpus: Corpus) -> str:
    return f"the grammar ({corpus.grammar})" if corpus.grammar else ", ".join(corpus.text)


def text_tokenizer(recipe: Recipe, say: Say) -> Tokenizer:
    """The recipe's tokenizer: loaded where it names a folder, else trained on the training text."""
    section = recipe.tokenizer
    if section.source:
        return Tokenizer.load(Path(section.source))
    say(f"training the tokenizer ({section.kind}, at most {section.vocabulary} tokens)")
    corpora = recipe.data.train
    total = sum(corpus.pairs if corpus.grammar else sum(1 for _ in read_text(corpus)) for corpus in corpora)
    stride = -(-total // section.sample)
    lines = (line for corpus in corpora for line in islice(read_text(corpus, corpus.split or "train"), 0, None, stride))
    return train_tokenizer(lines, section.kind, section.vocabulary, section.lowercase)
