"""Which source words a translation depends on, asked in several ways, and whether the answers agree.

Attention says where a model looked, which need not be what its answer hangs on (Jain and Wallace 2019, "Attention is
not Explanation"). So beside it, for the log-probability of every target word y_t:

    occlusion              log p(y_t | x) − log p(y_t | x without word s): put another token in the word's place and see
    integrated gradients   (e_s − ē) · ∫_0^1 ∂ log p(y_t) / ∂e_s at ē + a (e − ē) da   (Sundararajan et al. 2017)
    rollout                attention followed through all layers (inspect/rollout.py; Transformers)

ē is the vector of the token that occlusion uses: an unknown word, or padding. Over all source words integrated
gradients add up to log p(y_t | x) − log p(y_t | nothing but ē); `gap` says by how much `steps` points miss that.
(Padding is the vector 0, where a Transformer's normalisation jumps: an unknown word is the better nothing there.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END, PAD, START, UNKNOWN, Sequences
from jumok.errors import BadInput, did_you_mean
from jumok.inspect.agreement import Agreement, rank_agreement
from jumok.inspect.attention import Attention, merged
from jumok.inspect.forced import forced_views
from jumok.inspect.healthy import require_numbers
from jumok.inspect.rollout import rollout, rolls
from jumok.inspect.view import View
from jumok.models.encoder import reading_order
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.tasks.translator import Translator

ABSENT = {"unknown": UNKNOWN, "padding": PAD}  # what stands in the place of a word
STEPS = 64
BATCH = 256  # rows of one forward
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attribution:
    """values[method][t, s]: what source word s did for target word t. Only attention and rollout are shares."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    log_probabilities: tuple[float, ...]  # of the target words
    values: dict[str, Values]
    absent: str
    gap: float  # of integrated gradients, the largest over the target tokens

    @property
    def methods(self) -> list[str]:
        return list(self.values)

    def ranking(self, method: str, row: int) -> list[int]:
        """Source words by what they did for a target word, for or against it, the most first."""
        return [int(place) for place in np.argsort(-np.abs(self.values[method][row]), kind="stable")]

    def agreements(self) -> dict[tuple[str, str], Agreement]:
        """How alike two methods rank the source words, the mean over the target words."""
        return {
            (one, other): rank_agreement(np.abs(self.values[one]), np.abs(self.values[other]))
            for one, other in combinations(self.values, 2)
        }

    def pictures(self) -> list[Attention]:
        """Each method as shares of a row, so that they can be drawn alike: |value| over the sum of all."""
        drawn = []
        for method, values in self.values.items():
            size = np.abs(values)
            shares = size / np.maximum(size.sum(axis=1, keepdims=True), 1e-30)
            drawn.append(Attention(self.source, self.target, shares.astype(np.float32), None, "cross", method))
        return drawn

    def _repr_html_(self) -> str:
        """In a notebook: the interactive pictures, in a frame of their own so that their styles stay there."""
        from jumok.inspect.attribution_picture import page
        from jumok.inspect.html import framed

        return framed(page(self), 620 + len(self.values) * (260 + 28 * len(self.target)))

    def to_json(self) -> str:
        agreements = [
            {"methods": list(pair), "kendall": one.kendall, "spearman": one.spearman, "rows": one.rows}
            for pair, one in self.agreements().items()
        ]
        content = {
            "format": 1,
            "source": self.source,
            "target": self.target,
            "log_probabilities": self.log_probabilities,
            "values": {method: values.tolist() for method, values in self.values.items()},
            "absent": self.absent,
            "gap": self.gap,
            "agreement": agreements,
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"


def attribute(
    translator: Translator,
    sentence: str,
    target: str | Sequence[int] | None = None,
    view: View | None = None,
    absent: str = "unknown",
    steps: int = STEPS,
) -> Attribution:
    """Of a translation (the model's own, where none is given), by words: attention, integrated gradients, occlusion."""
    view = view or View()
    if absent not in ABSENT:
        raise BadInput(f'"{absent}" is nothing to put in the place of a word.{did_you_mean(absent, ABSENT)}')
    if steps < 1:
        raise BadInput(f"{steps} steps are too few: integrated gradients need 1 or more")
    view.tap(translator.model)
    if not sentence.strip():
        raise BadInput("there is nothing to attribute: the sentence is empty")
    require_numbers(translator.model)
    ended = True
    if target is None:
        best = translator.nbest([sentence])[0][0]
        target, ended = best.ids, best.finished
    keys, queries, weights = forced_views(translator, sentence, target, [view], ended)
    if not queries.tokens:
        raise BadInput("there is nothing to attribute: the translation is empty")
    written = translator.target.encode([target])[0] if isinstance(target, str) else [int(one) for one in target]
    read = [*translator.before, *translator.source.encode([sentence.strip()])[0]]
    question = Question(translator.model.eval(), [*read, END], [START, *written, END], ABSENT[absent])
    gradients = question.integrated_gradients(steps)
    log_probs = question.log_probs([question.source])[0]
    nothing = question.log_probs([[question.absent] * len(question.source)])[0]
    rows = len(queries.tokens)  # without <eos> where the translation was cut
    gap = float((gradients.sum(dim=1) - (log_probs - nothing)).abs().max())

    def by_words(values_TS: NDArray[Any]) -> Values:
        """Summed over the pieces of words, on both sides."""
        found = merged(values_TS.astype(np.float64), keys.words, queries.words).astype(np.float64)
        return found * np.array([[size] for size in sizes])

    sizes = _sizes(queries.words)
    groups = np.cumsum([0, *_sizes(keys.words)])
    places = [list(range(first, last)) for first, last in pairwise(groups)]
    picture = Attention(tuple(keys.tokens), tuple(queries.tokens), weights[0]).merge(
        keys.words, queries.words, keys.texts, queries.texts
    )
    values = {"attention": picture.weights.astype(np.float64)}
    if rolls(translator):
        values["rollout"] = rollout(translator, sentence, target, ended=ended).weights.astype(np.float64)
    values["integrated gradients"] = by_words(gradients.cpu().numpy()[:rows])
    starts = np.cumsum([0, *sizes[:-1]])
    occluded = question.occlusion(places).cpu().numpy().astype(np.float64)[:rows]
    values["occlusion"] = np.add.reduceat(occluded, starts)
    words = np.add.reduceat(log_probs.double().cpu().numpy()[:rows], starts)
    return Attribution(picture.source, picture.target, tuple(map(float, words)), values, absent, gap)


def _sizes(words: Sequence[int | None]) -> list[int]:
    """How many neighbouring pieces each word has."""
    sizes: list[int] = []
    for place, word in enumerate(words):
        if place and word is not None and word == words[place - 1]:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes


class Question:
    """One source and one target, as token ids with their special tokens: what log p of each target token depends on."""

    def __init__(self, model: EncoderDecoder, source: list[int], target: list[int], absent: int = UNKNOWN) -> None:
        self.model, self.source, self.target, self.absent = model, source, target, absent
        self.device = next(model.parameters()).device

    def log_probs(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """(rows, T) log p(y_t | y_<t, source) for several sources of the one target."""
        with torch.no_grad():
            return torch.cat(
                [self._log_probs(sources[start : start + BATCH]) for start in range(0, len(sources), BATCH)]
            )

    def _log_probs(self, sources: Sequence[Sequence[int]]) -> Tensor:
        batch = Sequences.pad(sources).to(self.device)
        target_BT = torch.tensor([self.target], device=self.device).expand(len(sources), -1)
        hidden_BTD = self.model(batch, target_BT[:, :-1])
        log_probs = F.log_softmax(self.model.head(hidden_BTD).float(), dim=-1)
        return log_probs.gather(2, target_BT[:, 1:, None])[..., 0]

    def occlusion(self, groups: Sequence[Sequence[int]]) -> Tensor:
        """(T, groups): how far log p(y_t) falls when the tokens at these places are not there."""
        rows = [list(self.source)]
        for places in groups:
            rows.append([self.absent if place in set(places) else id for place, id in enumerate(self.source)])
        whole, *without = self.log_probs(rows)
        return torch.stack([whole - one for one in without], dim=1)

    def integrated_gradients(self, steps: int = STEPS) -> Tensor:
        """(T, S) by tokens; the integral by Gauss and Legendre's rule, whose points lie closer at the ends."""
        nodes, shares = np.polynomial.legendre.leggauss(steps)
        points = torch.tensor((nodes + 1) / 2, dtype=torch.float32, device=self.device)
        weights = torch.tensor(shares / 2, dtype=torch.float32, device=self.device)
        total = torch.zeros(len(self.target) - 1, len(self.source), device=self.device)
        for start in range(0, steps, BATCH):
            total += self._gradients(points[start : start + BATCH], weights[start : start + BATCH])
        return total

    def _gradients(self, part: Tensor, weights: Tensor) -> Tensor:
        """(T, S) summed over some points of the way from nothing (0) to the source (1), each by its weight."""
        points: list[Tensor] = []
        ways: list[Tensor] = []

        def along(vectors_BSD: Tensor) -> Tensor:
            """Rows are the source over and over, and once nothing but absent tokens."""
            here, nothing = vectors_BSD[:-1].detach(), vectors_BSD[-1:].detach()
            points.append((nothing + part[:, None, None] * (here - nothing)).requires_grad_())
            ways.append((here - nothing)[0])
            return torch.cat((points[0], nothing))

        rows = [self.source] * len(part) + [[self.absent] * len(self.source)]
        # cuDNN's recurrent layers have no gradient outside of training
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False), source_vectors(self.model, along):
            log_probs = self._log_probs(rows)[:-1]
            found = [
                torch.einsum("p,psd->sd", weights, torch.autograd.grad(one, points[0], retain_graph=True)[0])
                for one in log_probs.sum(dim=0)
            ]
        values_TS = (torch.stack(found) * ways[0]).sum(dim=-1)
        return values_TS if self._order is None else values_TS[:, self._order]

    @property
    def _order(self) -> Tensor | None:
        """Where an encoder that reads backwards has put each token."""
        if not isinstance(self.model, Seq2Seq) or not self.model.encoder.reverse:
            return None
        return reading_order(Sequences.pad([self.source]))[0].to(self.device)


@contextmanager
def source_vectors(model: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Inside the block the source's word vectors are what `change` makes of them.

    Where both languages share one table it is asked for both: for the source first.
    """
    assert isinstance(model, Transformer | Seq2Seq)
    table = model.source_embedding if isinstance(model, Transformer) else model.encoder.embedding
    fresh = True

    def begin(module: nn.Module, inputs: Any) -> None:
        nonlocal fresh
        fresh = True

    def after(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        nonlocal fresh
        is_source, fresh = fresh, False
        return change(output) if is_source else output

    handles = [model.register_forward_pre_hook(begin), table.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
