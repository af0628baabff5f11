"""Translation: pairs → batches, model → objective, translations → metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.data.plan import Plan, held_out, length_batches
from jumok.data.readers import first_line, read_pairs
from jumok.data.store import TokenStore, default_cache
from jumok.layers.loss import smoothed_cross_entropy
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Corpus, Recipe
from jumok.tasks.metrics import corpus_scores
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]


class TranslationObjective(Objective):
    """−Σ_t log p(y_t | y_<t, x), smoothed: each true word gives ε of its probability to all words."""

    model: EncoderDecoder

    def __init__(self, model: EncoderDecoder, label_smoothing: float = 0.0, teacher_forcing: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing, self.teacher_forcing = label_smoothing, teacher_forcing

    def forward(self, batch: PairBatch) -> Loss:
        target_BT = batch.target.ids
        own_words = {"teacher_forcing": self.teacher_forcing} if self.training and self.teacher_forcing < 1 else {}
        hidden_BTD = self.model(batch.source, target_BT[:, :-1], **own_words)
        real_BT = batch.target.mask[:, 1:]
        # only real positions go through the vocabulary: padding costs nothing there
        logits_NV = self.model.head(hidden_BTD[real_BT])
        smoothed, plain = smoothed_cross_entropy(logits_NV, target_BT[:, 1:][real_BT], self.label_smoothing)
        return Loss(smoothed, batch.tokens, {"nll": plain})


class TranslationTask:
    """Everything `jumok train` needs to know about translation."""

    objective: TranslationObjective

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: tuple[Tokenizer, Tokenizer],
        device: torch.device,
        say: Say,
        cache: Path | None = None,
    ) -> None:
        self.recipe, self.device = recipe, device
        self.source, self.target = tokenizers
        training = recipe.training
        place = cache or default_cache()
        self.stores = [self._store(corpus, "train", place, say) for corpus in recipe.data.train]
        weights = [corpus.weight for corpus in recipe.data.train]
        if recipe.data.valid is not None:
            self.valid = self._store(recipe.data.valid, "valid", place, say)
            self.valid_rows = range(len(self.valid))
            kept_back = None
        else:
            self.valid = self.stores[0]
            kept_back = held_out(self.valid, recipe.data.hold_out, recipe.seed)
            self.valid_rows = kept_back.tolist()
            say(f"no validation data given: {len(kept_back)} training pairs are kept back for it")
        self.plan = Plan(
            self.stores, weights, training.batch_tokens, recipe.seed, training.accumulate, exclude=kept_back
        )
        torch.manual_seed(recipe.seed)
        model = build(recipe.model, self.source.size, self.target.size)
        self.objective = TranslationObjective(model, training.label_smoothing, training.teacher_forcing)
        self.translator = Translator(model, self.source, self.target, recipe.search, recipe.data.max_length, device)

    @property
    def data_keys(self) -> list[str]:
        """What is learned from and validated on, as the keys of the token stores."""
        return [store.key for store in (*self.stores, self.valid)]

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"source": self.source} | ({} if self.recipe.tokenizer.joint else {"target": self.target})

    def sizes(self) -> str:
        pairs = sum(len(store) for store in self.stores) - (len(self.valid_rows) if self.valid in self.stores else 0)
        batches = self.plan.batches_per_epoch
        return f"{pairs:,} training pairs, {len(self.valid_rows):,} for validation, {batches:,} batches an epoch"

    def _store(self, corpus: Corpus, split: str, cache: Path, say: Say) -> TokenStore:
        return TokenStore.open_or_build(
            corpus, corpus.split or split, self.source, self.target, cache, self.recipe.data.max_length, say
        )

    def batches(self, update: int) -> list[PairBatch]:
        return [self.stores[micro.corpus].batch(micro.indices, micro.corpus) for micro in self.plan.at(update)]

    def name_batch(self, batch: PairBatch) -> str:
        corpus = self.recipe.data.train[batch.corpus]
        place = corpus.grammar or ", ".join([*corpus.source, *corpus.file])
        shards = max(len(corpus.source), len(corpus.file))
        # over several shards only the number of the pair is known, in one file it is a line
        unit, first = ("pairs", 1) if shards > 1 else ("lines", first_line(corpus))
        lines = [self.stores[batch.corpus].line(index) + first for index in batch.indices[:5]]
        more = f" and {len(batch.indices) - 5} more" if len(batch.indices) > 5 else ""
        return f"the batch of {place} {unit} {', '.join(map(str, lines))}{more}"

    @cached_property
    def shown(self) -> tuple[list[str], list[str]]:
        """The texts, as they stand in the files, of the validation pairs that are translated for the metric."""
        corpus, split = (
            self.recipe.data.valid or self.recipe.data.train[0],
            "valid" if self.recipe.data.valid else "train",
        )
        rows = sorted(self.valid_rows)[: self.recipe.training.validate_sentences]
        wanted = {self.valid.line(row) for row in rows}
        pairs = enumerate(read_pairs(corpus, corpus.split or split))
        found = [pair for line, pair in islice(pairs, max(wanted) + 1) if line in wanted]
        return [source for source, _ in found], [target for _, target in found]

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Loss (without smoothing) on all validation pairs; BLEU and chrF of greedy translations of the first ones."""
        self.objective.eval()
        loss: Tensor = torch.zeros((), dtype=torch.float64)
        count = 0
        rows = torch.tensor(list(self.valid_rows)).numpy()
        lengths = self.valid.source_lengths[rows], self.valid.target_lengths[rows]
        for group in length_batches(*lengths, self.recipe.training.batch_tokens):
            batch = self.valid.batch(rows[group])
            loss += self.objective(batch.to(self.device)).parts["nll"].cpu().double()
            count += batch.tokens
        sources, references = self.shown
        bleu, chrf = corpus_scores(self.translator.translate(sources, beam=1), references)
        return {"loss": float(loss) / max(1, count), "bleu": bleu.score, "chrf": chrf.score}
