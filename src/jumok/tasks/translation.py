"""Translation: pairs → batches, model → objective, translations → metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.data.batch import PairBatch, Sequences
from jumok.data.dealing import Deal
from jumok.data.hashes import Hashes
from jumok.data.layout import IntArray
from jumok.data.links import TokenLinks
from jumok.data.packing import PackedPairs
from jumok.data.plan import Plan, held_out, length_batches
from jumok.data.readers import first_line, read_pairs
from jumok.data.store import TokenStore, default_cache
from jumok.errors import BadInput
from jumok.layers.loss import IGNORED
from jumok.layers.packed_attention import HAS_TRITON
from jumok.layers.tap import Tap
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Corpus, Recipe, TransformerSection
from jumok.tasks.guidance import Guidance
from jumok.tasks.metrics import corpus_scores
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.translator import Translator
from jumok.tasks.word_loss import word_loss, word_r_drop
from jumok.text.dropout import BpeDropout
from jumok.text.tokenizer import Tokenizer

ANNOUNCED = 4  # updates before its own a batch is asked for, where a store is larger than memory
Say = Callable[[str], None]


class TranslationObjective(Objective):
    """−Σ_t log p(y_t | y_<t, x), smoothed: each true word gives ε of its probability to all words.

    With R-Drop each batch goes through the model twice, side by side, and the two predictions are drawn together.
    """

    model: EncoderDecoder

    def __init__(
        self,
        model: EncoderDecoder,
        label_smoothing: float = 0.0,
        teacher_forcing: float = 1.0,
        r_drop: float = 0.0,
        loss_chunk: int = 0,
        guidance: Guidance | None = None,
    ) -> None:
        super().__init__()
        self.model, self.loss_chunk, self.guidance = model, loss_chunk, guidance
        self.label_smoothing, self.teacher_forcing, self.r_drop = label_smoothing, teacher_forcing, r_drop

    def forward(self, batch: PairBatch | PackedPairs) -> Loss:
        if self.training and self.guidance is not None:
            assert isinstance(batch, PairBatch)
            with self.guidance.watching():
                loss = self._of_words(batch)
            guided = self.guidance.loss(batch)
            return replace(
                loss,
                sum=loss.sum + self.guidance.strength * guided,
                parts={**loss.parts, "alignment": guided.detach()},
            )
        return self._of_words(batch)

    def _of_words(self, batch: PairBatch | PackedPairs) -> Loss:
        if self.training and self.r_drop:
            hidden_2ND, target_2N = self._words(batch.twice(), passes=2)
            target_N, options = target_2N[: len(target_2N) // 2], (self.label_smoothing, self.r_drop, self.loss_chunk)
            loss, plain, kl = word_r_drop(self.model, hidden_2ND, target_N, *options)
            return Loss(loss, batch.tokens, {"nll": plain, "kl": kl})
        hidden_ND, target_N = self._words(batch)
        smoothed, plain = word_loss(self.model, hidden_ND, target_N, self.label_smoothing, self.loss_chunk)
        return Loss(smoothed, batch.tokens, {"nll": plain})

    def _words(self, batch: PairBatch | PackedPairs, passes: int = 1) -> tuple[Tensor, Tensor]:
        """For every target position, row after row: the hidden state, and the word that should come."""
        if isinstance(batch, PackedPairs):
            return self._packed_words(batch, passes)
        target_BT = batch.target.ids
        own_words = {"teacher_forcing": self.teacher_forcing} if self.training and self.teacher_forcing < 1 else {}
        hidden_BTD = self.model(batch.source, target_BT[:, :-1], **own_words)
        real_BT = batch.target.mask[:, 1:]
        if real_BT.is_cuda:  # to pick the real ones would have to wait until it is known how many there are
            return hidden_BTD.flatten(0, 1), target_BT[:, 1:].masked_fill(~real_BT, IGNORED).flatten()
        # only real positions go through the vocabulary: padding costs nothing there
        return hidden_BTD[real_BT], target_BT[:, 1:][real_BT]

    def _packed_words(self, batch: PackedPairs, passes: int) -> tuple[Tensor, Tensor]:
        if not self.model.packs:
            raise BadInput("training.pack needs a Transformer: a recurrent model reads padded rows. Leave it at auto.")
        hidden_ND, target_N = self.model(batch.source, batch.target)[0], batch.target.wanted
        if batch.tokens < len(target_N):  # each pass ends in padding
            real = batch.tokens // passes
            hidden_ND, target_N = (x.unflatten(0, (passes, -1))[:, :real].flatten(0, 1) for x in (hidden_ND, target_N))
        return hidden_ND, target_N


@dataclass(frozen=True)
class Held:
    """What is validated on: some pairs of a corpus."""

    corpus: Corpus
    split: str
    store: TokenStore
    rows: IntArray

    def texts(self, count: int) -> tuple[list[str], list[str]]:
        """The first pairs, as they stand in the files."""
        found = self.store.texts(self.rows[:count], lambda: read_pairs(self.corpus, self.split))
        return [source for source, _ in found], [target for _, target in found]


def chooses_packing(recipe: Recipe, device: torch.device) -> bool:
    """`auto`: on a GPU, where the model can and there is a kernel for its attention."""
    section = recipe.model
    if isinstance(section, TransformerSection):
        if section.reader is not None:
            if recipe.training.pack is True:
                raise BadInput("training.pack does not go together with a pretrained encoder (model.reader): use auto")
            return False
        if recipe.training.pack == "auto":
            return not recipe.training.align and device.type == "cuda" and section.position != "relative" and HAS_TRITON
        return recipe.training.pack
    if recipe.training.pack is True:
        raise BadInput("training.pack needs a Transformer: a recurrent model reads padded rows. Leave it at auto.")
    return False


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
        kept_back: dict[int, IntArray] = {}
        if recipe.data.valid:
            stores = [self._store(corpus, "valid", place, say) for corpus in recipe.data.valid]
            self.held = [
                Held(corpus, corpus.split or "valid", store, np.arange(len(store)))
                for corpus, store in zip(recipe.data.valid, stores, strict=True)
            ]
        else:
            kept_back = self._keep_back()
            self.held = [
                Held(corpus, corpus.split or "train", self.stores[number], kept_back[number])
                for number, corpus in enumerate(recipe.data.train)
                if number in kept_back
            ]
            count = sum(len(held.rows) for held in self.held)
            say(f"no validation data given: {count} training pairs are kept back for it")
        self.packed = chooses_packing(recipe, device)
        self.plan = Plan(
            self.stores, weights, training.batch_tokens, recipe.seed, training.accumulate, kept_back, self.packed
        )
        self.dropouts: tuple[BpeDropout, BpeDropout] | None = None
        if training.bpe_dropout:
            source, target = (BpeDropout(tokenizer, training.bpe_dropout) for tokenizer in tokenizers)
            self.dropouts = source, source if self.source is self.target else target
        torch.manual_seed(recipe.seed)
        model = build(recipe.model, self.source.size, self.target.size)
        options = training.label_smoothing, training.teacher_forcing, training.r_drop, training.loss_chunk
        self.objective = TranslationObjective(model, *options, self._guidance(model, place, say))
        self.translator = Translator(model, self.source, self.target, recipe.search, recipe.data.max_length, device)

    def _guidance(self, model: EncoderDecoder, cache: Path, say: Say) -> Guidance | None:
        training, hashes = self.recipe.training, Hashes(cache)
        self.alignments = {
            number: hashes(corpus.alignments)[1]
            for number, corpus in enumerate(self.recipe.data.train)
            if corpus.alignments is not None
        }
        if not training.align:
            return None
        links = {
            number: TokenLinks.open_or_build(
                corpus, corpus.split or "train", self.stores[number], (self.source, self.target), content, say
            )
            for number, content in self.alignments.items()
            for corpus in [self.recipe.data.train[number]]
        }
        taps = [module for module in model.modules() if isinstance(module, Tap) and module.kind == "cross"]
        layer = max(0, len(taps) - 2) if training.align_layer is None else training.align_layer
        return Guidance(taps[layer], links, training.align)

    @property
    def data_keys(self) -> list[str]:
        """What is learned from and validated on, as the keys of the token stores, and the hashes of alignments."""
        stores = [store.key for store in (*self.stores, *(held.store for held in self.held))]
        return [*stores, *self.alignments.values()]

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"source": self.source} | ({} if self.recipe.tokenizer.joint else {"target": self.target})

    def sizes(self) -> str:
        validation = sum(len(held.rows) for held in self.held)
        pairs = sum(len(store) for store in self.stores) - (0 if self.recipe.data.valid else validation)
        batches = self.plan.batches_per_epoch
        return f"{pairs:,} training pairs, {validation:,} for validation, {batches:,} batches an epoch"

    def _store(self, corpus: Corpus, split: str, cache: Path, say: Say) -> TokenStore:
        return TokenStore.open_or_build(
            corpus, corpus.split or split, self.source, self.target, cache, self.recipe.data.max_length, say
        )

    def _keep_back(self) -> dict[int, IntArray]:
        """Pairs to validate on from the first corpus of each tag (without tags: from the first)."""
        tags = [corpus.tag for corpus in self.recipe.data.train]
        first = [number for number, tag in enumerate(tags) if tag not in tags[:number]]
        return {n: held_out(self.stores[n], self.recipe.data.hold_out, self.recipe.seed) for n in first}

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[Any]:
        planned = self.plan.at(update, only)
        if any(store.exceeds_memory for store in self.stores):
            for micro in self.plan.at(update + ANNOUNCED, only):
                self.stores[micro.corpus].announce(micro.indices)
        numbered = zip(planned, range(len(planned)) if only is None else only, strict=True)
        batches = [
            self._cut_anew(self.stores[micro.corpus].batch(micro.indices, micro.corpus), update, number)
            for micro, number in numbered
        ]
        return [self._packed(batch) for batch in batches] if self.packed else batches

    def _packed(self, batch: PairBatch) -> PackedPairs:
        """Rows of the size that all batches of the corpus have; a larger one gets an eighth more, until it fits."""
        layout = self.plan.layouts[batch.corpus]
        assert isinstance(layout, Deal)
        needed = batch.source.tokens, batch.tokens
        sizes = [
            size + max(0, -((size - tokens) // (size // 8))) * (size // 8)
            for size, tokens in zip(layout.budget, needed, strict=True)
        ]
        return PackedPairs.of(batch, (sizes[0], sizes[1]))

    def _cut_anew(self, batch: PairBatch, update: int, micro: int) -> PairBatch:
        """With BPE dropout: other cuts of the same words. The plan stands, on the lengths without it."""
        if self.dropouts is None:
            return batch
        limit = self.recipe.data.max_length
        sides = []
        # a source has <eos> besides its tokens, a target <sos> and <eos>
        for side, (rows, specials) in enumerate(((batch.source, 1), (batch.target, 2))):
            flat, lengths = rows.ids[rows.mask].numpy(), rows.lengths.numpy()
            key = (self.recipe.seed, update, micro, side)
            sides.append(Sequences.of_flat(*self.dropouts[side](flat, lengths, key, limit + specials)))
        return replace(batch, source=sides[0], target=sides[1])

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
    def shown(self) -> list[tuple[list[str], list[str]]]:
        """Of each corpus to validate on, the texts that are translated for the metric."""
        each = -(-self.recipe.training.validate_sentences // len(self.held))
        return [held.texts(each) for held in self.held]

    def validate(self) -> dict[str, float]:
        """The mean over all corpora to validate on, by their weights; of several, each one's numbers too."""
        each = [self._validate(*both) for both in zip(self.held, self.shown, strict=True)]
        weights = [held.corpus.weight for held in self.held]
        values = {
            name: sum(weight * one[name] for weight, one in zip(weights, each, strict=True)) / sum(weights)
            for name in each[0]
        }
        if len(each) == 1:
            return each[0]
        tags = [held.corpus.tag for held in self.held]
        own = [tag if tag and tags.count(tag) == 1 else str(number) for number, tag in enumerate(tags, 1)]
        return values | {f"{name}_{who}": one[name] for who, one in zip(own, each, strict=True) for name in one}

    @torch.no_grad()
    def _validate(self, held: Held, texts: tuple[list[str], list[str]]) -> dict[str, float]:
        """Loss (without smoothing) on all pairs; BLEU and chrF of greedy translations of the first ones."""
        self.objective.eval()
        loss: Tensor = torch.zeros((), dtype=torch.float64)
        count = 0
        lengths = held.store.source_lengths[held.rows], held.store.target_lengths[held.rows]
        for group in length_batches(*lengths, self.recipe.training.batch_tokens):
            batch = held.store.batch(held.rows[group])
            loss += self.objective(batch.to(self.device)).parts["nll"].cpu().double()
            count += batch.tokens
        sources, references = texts
        bleu, chrf = corpus_scores(self.translator.translate(sources, beam=1, tag=held.corpus.tag), references)
        return {"loss": float(loss) / max(1, count), "bleu": bleu.score, "chrf": chrf.score}
