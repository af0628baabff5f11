"""Why queries, keys and values are projected by W^Q, W^K and W^V of their own.

Attention from the word vectors themselves scores x_t · x_s. Where all norms are alike, nothing fits a vector as well
as itself (x_t · x_s ≤ ‖x_t‖ ‖x_s‖), so each word looks at itself. With q = W^Q x and k = W^K x what a word looks for is
not what it offers, and it may look anywhere. Measured: the weight on itself, the diagonal of the attention matrix,
before and after; and whether a word can learn to look elsewhere: to name the word that stands before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok import api
from jumok.data import grammar
from jumok.inspect.record import record
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.training import seeded, train
from jumok.layers.attention import ScaledDot, attention_weights
from jumok.layers.block import Block
from jumok.layers.multihead import MultiHeadAttention

WIDTH, LENGTH, WORDS = 64, 12, 32
UPDATES, RATES = 300, (0.003, 0.01)  # each variant is trained with both learning rates, the better one counts
VARIANTS = ("raw vectors", "Q = K = V", "Q = K", "Q, K, V")


def measure(seed: int, effort: float) -> Numbers:
    with seeded(seed):
        vectors = (
            F.normalize(torch.randn(200, LENGTH, WIDTH), dim=-1) * WIDTH**0.5
        )  # of one norm, that of unit variance
        random = {name: on_itself(_fresh_weights(name, vectors)) for name in VARIANTS}
    return {
        "random vectors": random,
        "word vectors": _word_vectors(seed, max(2, round(200 * effort))),
        "trained": {name: _trained(name, seed, effort) for name in VARIANTS},
    }


def project_with(attention: MultiHeadAttention, variant: str) -> None:
    """Leave out, or share, what a variant does without."""
    if variant == "raw vectors":
        attention.query, attention.key, attention.value = (nn.Identity() for _ in range(3))  # type: ignore[assignment]
    if variant in ("Q = K", "Q = K = V"):
        attention.key = attention.query
    if variant == "Q = K = V":
        attention.value = attention.query


def on_itself(weights_BTT: Tensor) -> Numbers:
    """How much each word looks at itself, and how often at nothing else as much."""
    own_BT = weights_BTT.diagonal(dim1=1, dim2=2)
    return {
        "weight on itself": float(own_BT.mean()),
        "looks at itself most": float((own_BT >= weights_BTT.amax(dim=-1)).float().mean()),
    }


def _fresh_weights(variant: str, x_BTD: Tensor) -> Tensor:
    attention = MultiHeadAttention(WIDTH, heads=1, groups=1, dropout=0.0, kind="self", name="fresh.0.self")
    project_with(attention, variant)
    with torch.no_grad():
        return attention_weights(attention.query(x_BTD), attention.key(x_BTD), None, attention.scorer)


def _word_vectors(seed: int, sentences: int) -> Numbers:
    """The vectors of the packaged translator, which learned their norms as it liked; each word of a sentence once."""
    translator = api.load_translator(device="cpu")
    embedding = translator.model.get_submodule("encoder.embedding")
    measured = []
    for pair in islice(grammar.pairs("en", "fr", "test", sentences, seed), sentences):
        ids = list(dict.fromkeys(translator.source.encode([pair.source])[0]))
        with torch.no_grad():
            x_1TD = embedding(torch.tensor([ids]))
            width = x_1TD.size(-1)
            weights = attention_weights(x_1TD, x_1TD, None, ScaledDot(width, width, width, 0))
        norm_T = x_1TD[0].norm(dim=-1)
        measured.append(on_itself(weights) | {"spread of the norms": float(norm_T.std(correction=0) / norm_T.mean())})
    return {name: fmean(each[name] for each in measured) for name in measured[0]}


def _trained(variant: str, seed: int, effort: float) -> Numbers:
    """One head, one layer: which word stands before this one?"""
    tried = [_trained_at(rate, variant, seed, effort) for rate in RATES]
    return max(tried, key=lambda each: float(each["accuracy"]))


def _trained_at(rate: float, variant: str, seed: int, effort: float) -> Numbers:
    with seeded(seed):
        model = Labeller(WORDS + 1, WORDS + 1, width=WIDTH, heads=1, layers=1, feed_forward=128, position="sinusoidal")
        block = model.encoder.blocks[0]
        assert isinstance(block, Block)
        project_with(block.attention, variant)

        def logits_and_labels(rows: int) -> tuple[Tensor, Tensor]:
            ids_BT = torch.randint(1, WORDS + 1, (rows, LENGTH))
            return model.head(model(ids_BT)[:, 1:]), ids_BT[:, :-1]

        def loss_of(update: int) -> Tensor:
            logits, labels = logits_and_labels(64)
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

        train(model, loss_of, max(2, round(UPDATES * effort)), rate)
        with torch.no_grad(), record(model) as seen:
            logits, labels = logits_and_labels(500)
    weights_BTT = seen.records[0].weights[:, 0]
    return on_itself(weights_BTT) | {
        "accuracy": float((logits.argmax(dim=-1) == labels).float().mean()),
        "weights": [[round(weight, 4) for weight in row] for row in weights_BTT.mean(dim=0).tolist()],
    }


# ---------------------------------------------------------------- the verdicts


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    def mean(*path: str) -> float:
        return fmean(_at(each, path) for each in numbers)

    raw, own = VARIANTS[0], VARIANTS[-1]
    top, weight = "looks at itself most", "weight on itself"
    accuracy = {name: mean("trained", name, "accuracy") for name in VARIANTS}
    learned = {name: mean("trained", name, weight) for name in VARIANTS}
    return [
        Verdict(
            "With raw vectors of like norms a word attends to itself most.",
            mean("random vectors", raw, top) > 0.95 and mean("word vectors", top) > 0.5,
            f"Of random vectors of one norm {mean('random vectors', raw, top):.0%} do, with weight "
            f"{mean('random vectors', raw, weight):.2f} (alike would be {1 / LENGTH:.2f}); of a trained translator's "
            f"word vectors, whose norms differ by {mean('word vectors', 'spread of the norms'):.0%}, "
            f"{mean('word vectors', top):.0%}, with weight {mean('word vectors', weight):.2f}.",
        ),
        Verdict(
            "With projections it need not.",
            mean("random vectors", own, weight) < 2 / LENGTH and learned[own] < 0.5 and accuracy[own] > 0.9,
            f"With fresh W^Q and W^K the weight on itself is {mean('random vectors', own, weight):.2f}, and "
            f"{learned[own]:.2f} once trained to look at the word before.",
        ),
        Verdict(
            "Without projections a word cannot learn to look elsewhere.",
            accuracy[own] > 0.9 and accuracy[raw] < 2 / WORDS,
            f"The word before is named rightly by {accuracy[raw]:.0%} (a guess: {1 / WORDS:.0%}), by "
            f"{accuracy[own]:.0%} with W^Q, W^K, W^V; the weight on itself stays {learned[raw]:.2f} against "
            f"{learned[own]:.2f}.",
        ),
        Verdict(
            "Queries and keys need maps of their own: with one map for both it cannot be learned.",
            accuracy["Q = K"] < accuracy[own] - 0.1,
            f"With W^Q = W^K the accuracy is {accuracy['Q = K']:.0%}, though the weight on itself is "
            f"{learned['Q = K']:.2f} instead of {learned[own]:.2f}; with one map for all three it is "
            f"{accuracy['Q = K = V']:.0%} and {learned['Q = K = V']:.2f}.",
        ),
    ]


def _at(numbers: Any, path: Sequence[str]) -> float:
    for name in path:
        numbers = numbers[name]
    return float(numbers)


# ---------------------------------------------------------------- the figure


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    figure.set_layout_engine("constrained")
    first, second, bars = figure.subplots(1, 3, width_ratios=[1, 1, 1.6])
    for axes, name in ((first, VARIANTS[0]), (second, VARIANTS[-1])):
        matrices = torch.tensor([each["trained"][name]["weights"] for each in numbers])
        image = axes.imshow(matrices.mean(dim=0), cmap="cividis", vmin=0, vmax=1)
        axes.set_title(f"{name}, trained", fontsize=10)
        axes.set_xlabel("key →")
        axes.set_ylabel("query ↓ looks at")
        axes.set_xticks([0, LENGTH - 1], ["1", str(LENGTH)])
        axes.set_yticks([0, LENGTH - 1], ["1", str(LENGTH)])
    figure.colorbar(image, ax=second, label="attention weight", shrink=0.8)
    shown = (("weight on itself", "#b3560a", ""), ("accuracy", "#3a78c9", "///"))
    for shift, (what, colour, hatch) in zip((-0.2, 0.2), shown, strict=True):
        heights = [fmean(each["trained"][name][what] for each in numbers) for name in VARIANTS]
        places = [place + shift for place in range(len(VARIANTS))]
        drawn = bars.bar(places, heights, 0.38, color=colour, hatch=hatch, label=what)
        bars.bar_label(drawn, [f"{height:.2f}" for height in heights], fontsize=8)
    bars.set_xticks(range(len(VARIANTS)), VARIANTS, fontsize=9)
    bars.set_ylim(0, 1.35)
    bars.set_ylabel("trained to name the word before")
    bars.legend(loc="upper left", fontsize=8, framealpha=0, ncols=2)


EXPERIMENT = Experiment(
    number=6,
    name="projections",
    title="Why queries, keys and values have projections of their own",
    source="Vaswani et al. 2017, section 3.2.2: W^Q, W^K, W^V; study notes on self-attention",
    about=(
        "How much does a word look at itself when attention compares raw vectors, and when it compares projections, "
        f"fresh or learned? One head learns to name the word before each word, in texts of {LENGTH} of {WORDS} random "
        "words: with raw vectors, with one map shared by all of Q, K and V or by Q and K, and with three."
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.0, 3.4),
)
