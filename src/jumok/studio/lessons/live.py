"""What a lesson computes at once, while a slider moves: small real calculations with the house's own layers.

Each is a function of its sliders. What it gives has keys for names; the words are in words.en.yaml and words.ko.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.inspect.positions import formula
from jumok.lab import clipping, long_term_dependency, scaling, shuffled_patches
from jumok.lab.shuffled_patches import LEARNED, NONE, PATCHES, Pictures
from jumok.lab.training import seeded
from jumok.layers.attention import Dot, ScaledDot, attention_weights, build_scorer

Values = Mapping[str, float]
Line = list[tuple[float, float]]
SEED, KEYS, FAR = 1, 16, 60
SCORERS = ("dot", "scaled-dot", "general", "additive", "location")


@dataclass(frozen=True)
class Slider:
    """From `low` to `high`. `power`: it stands for 2 to that power."""

    key: str
    low: float
    high: float
    value: float
    step: float = 1.0
    power: bool = False

    def read(self, given: Values) -> float:
        found = given.get(self.key, self.value)
        if not math.isfinite(found) or not self.low <= found <= self.high:
            raise BadInput(f"{self.key}: give a number from {self.low:g} to {self.high:g}")
        return 2.0 ** round(found) if self.power else found


@dataclass
class Found:
    """Lines over x, or maps; and single numbers beside them."""

    lines: dict[str, Line]
    facts: dict[str, float]
    maps: dict[str, Tensor]
    x: str = ""
    y: str = ""
    log: bool = False
    log_x: bool = False
    dots: bool = False
    range: tuple[float | None, float | None] = (None, None)

    def told(self) -> dict[str, Any]:
        return {**vars(self), "maps": {name: table.tolist() for name, table in self.maps.items()}}


@dataclass(frozen=True)
class Live:
    sliders: tuple[Slider, ...]
    compute: Callable[[Values], Found]

    def __call__(self, given: Values) -> Found:
        unknown = sorted(set(given) - {slider.key for slider in self.sliders})
        if unknown:
            raise BadInput(f'there is no slider "{unknown[0][:40]}" here')
        with torch.no_grad():
            return self.compute({slider.key: slider.read(given) for slider in self.sliders})


def lines(named: Mapping[str, Sequence[float]], first: int = 0, **about: Any) -> Found:
    """Each over first, first + 1, …"""
    drawn = {name: [(float(first + n), float(y)) for n, y in enumerate(values)] for name, values in named.items()}
    return Found(drawn, about.pop("facts", {}), {}, **about)


def drawn_at_random(rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Queries and keys whose numbers have mean 0 and variance 1."""
    generator = torch.Generator().manual_seed(SEED)
    query, key = (torch.randn(rows, width, generator=generator, dtype=torch.float64) for _ in range(2))
    return query, key


def entropy(weights: Tensor) -> float:
    """1: looks everywhere alike, 0: at one place."""
    return float(torch.special.entr(weights).sum(dim=-1).mean()) / math.log(weights.size(-1))


# ---------------------------------------------------------------- lessons


def long_term(values: Values) -> Found:
    """‖∂h_T/∂x_(T-d)‖ against d, relative to d = 0; the RNN's matrix is orthogonal times its norm."""
    networks = {"rnn": ("rnn", None), "lstm": ("lstm", values["bias"]), "attention": ("attention", None)}
    found = {}
    for name, (cell, bias) in networks.items():
        with torch.enable_grad(), seeded(SEED):
            reader = long_term_dependency.Reader(cell, bias).double()
            if name == "rnn":
                weight = next(one for key, one in reader.body.named_parameters() if "weight_hh" in key)
                nn.init.orthogonal_(weight.data, values["norm"])
            x_1LD = 0.3 * torch.randn(1, FAR + 1, long_term_dependency.WIDTH, dtype=torch.float64)
            norms = long_term_dependency.gradient_by_distance(reader, x_1LD)
        found[name] = [norm / norms[0] for norm in norms]
    left = {f"{name} left": found[name][FAR] for name in ("rnn", "lstm")}
    return lines(found, x="distance", y="gradient", log=True, facts=left, range=(1e-12, 1e4))


def teacher_forcing(values: Values) -> Found:
    """p^t: that all words before are right; with a share ε of true words (ε + (1 − ε) p)^t."""
    right, shown = values["right"] / 100, values["shown"] / 100
    mixed = shown + (1 - shown) * right
    found = {"own": [right**t for t in range(31)], "mixed": [mixed**t for t in range(31)], "true": [1.0] * 31}
    return lines(found, x="word", y="past", facts={"own": right**20, "mixed": mixed**20}, range=(0, 1.02))


def score_functions(values: Values) -> Found:
    width = int(values["width"])
    query, key = (values["size"] * each for each in drawn_at_random(KEYS, width))
    found = {}
    for name in SCORERS:
        with seeded(SEED):
            scorer = build_scorer(name, width, width, width, KEYS).double()
        found[name] = attention_weights(query[None, :1], scorer.prepare(key[None]), None, scorer)[0, 0]
    facts = {name: entropy(weights) for name, weights in found.items()}
    named = {name: weights.tolist() for name, weights in found.items()}
    return lines(named, 1, x="key", y="weight", dots=True, facts=facts, range=(0, 1.02))


def why_scaling(values: Values) -> Found:
    width = int(values["width"])
    query, key = drawn_at_random(64, width)
    key = key[:KEYS]
    found = {}
    facts = {}
    for name, kind in (("raw", Dot), ("scaled", ScaledDot)):
        scorer = kind(width, width, width, 0)
        weights = attention_weights(query[None], key[None], None, scorer)[0]
        found[name] = weights[0].sort(descending=True).values.tolist()
        facts[f"{name} spread"] = float(scorer(query[None], key[None]).std())
        facts[f"{name} entropy"] = entropy(weights)
        facts[f"{name} gradient"] = float(scaling.jacobian_norm(weights).median())
    return lines(found, 1, x="key", y="weight", dots=True, facts=facts, range=(0, 1.02))


def projections(values: Values) -> Found:
    """x · x / √d beside (W^Q x) · (W^K x) / √d, with fresh matrices."""
    words, width = int(values["words"]), int(values["width"])
    generator = torch.Generator().manual_seed(SEED)
    x_TD = torch.randn(words, width, generator=generator, dtype=torch.float64)
    x_TD = x_TD / x_TD.norm(dim=-1, keepdim=True) * math.sqrt(width)
    one, other = (torch.randn(width, width, generator=generator, dtype=torch.float64) / math.sqrt(width) for _ in "qk")
    scorer = ScaledDot(width, width, width, 0)
    maps = {
        "raw": attention_weights(x_TD[None], x_TD[None], None, scorer)[0],
        "projected": attention_weights((x_TD @ one)[None], (x_TD @ other)[None], None, scorer)[0],
    }
    return Found({}, {name: float(table.diagonal().mean()) for name, table in maps.items()}, maps)


def causal_mask(values: Values) -> Found:
    words = int(values["words"])
    query, key = drawn_at_random(words, 16)
    scorer = ScaledDot(16, 16, 16, 0)
    maps = {
        name: attention_weights(query[None], key[None], None, scorer, causal=causal)[0]
        for name, causal in (("open", False), ("masked", True))
    }
    facts = {f"{name} future": float(table.triu(1).sum(dim=-1).mean()) for name, table in maps.items()}
    return Found({}, facts, maps)


def positions(values: Values) -> Found:
    """The cosine of the vectors of t and s, for all s."""
    place, width = int(values["place"]), int(values["width"])
    named = {kind: formula(kind, width, 128, 128).similarity[place].tolist() for kind in ("sinusoidal", "learned")}
    return lines(named, x="place", y="similarity", range=(-1.05, 1.05))


def parallelism(values: Values) -> Found:
    """Operations of a layer (Vaswani et al. 2017, table 1): n d² in a recurrent one, n² d in self-attention."""
    width = values["width"]
    lengths = [2**power for power in range(4, 13)]
    named = {
        "recurrent": [(float(n), n * width**2) for n in lengths],
        "attention": [(float(n), n**2 * width) for n in lengths],
    }
    return Found(named, {"equal": width}, {}, x="length", y="operations", log=True, log_x=True, dots=True)


def clipped(values: Values) -> Found:
    """‖∂h_T/∂h_(T-d)‖ where the recurrent matrix stretches by `gain`; then at most c long."""
    gain, most = values["gain"], values["clip"]
    growth = clipping.growth(gain, SEED)
    short = [min(size, most) for size in growth]
    facts = {"before": growth[-1], "after": short[-1]}
    return lines({"before": growth, "after": short}, x="distance", y="gradient", log=True, facts=facts)


def forget_gate(values: Values) -> Found:
    """f^d with f = σ(b): what is left of c after d steps in which nothing is added."""
    gate = 1 / (1 + math.exp(-values["bias"]))
    named = {"chosen": gate, "usual": 0.5, "large": 1 / (1 + math.exp(-5.0))}
    steps = int(values["span"])
    half = math.inf if gate == 1 else math.log(0.5) / math.log(gate)
    found = {name: [one**d for d in range(FAR + 1)] for name, one in named.items()}
    facts = {"gate": gate, "left": gate**steps, "half": half}
    return lines(found, x="distance", y="left", facts=facts, range=(0, 1.02))


def study_notes(values: Values) -> Found:
    width = int(values["width"])
    query, key = drawn_at_random(64, width)
    scores = query @ key[:KEYS].T
    found = {
        "root": torch.softmax(scores / math.sqrt(width), dim=-1),
        "width": torch.softmax(scores / width, dim=-1),
        "late": torch.softmax(scores, dim=-1) / math.sqrt(width),
    }
    facts = {f"{name} sum": float(weights[0].sum()) for name, weights in found.items()}
    named = {name: weights[0].sort(descending=True).values.tolist() for name, weights in found.items()}
    return lines(named, 1, x="key", y="weight", dots=True, facts=facts, range=(0, None))


@cache
def _image_models() -> dict[str, nn.Module]:
    """Before training: positions change the scores of such a model too."""
    with seeded(SEED):
        return {name: shuffled_patches.build(way).eval() for name, way in (("with", LEARNED), ("without", NONE))}


def shuffled(values: Values) -> Found:
    """By how much the scores of one picture change, against the largest, when some of its patches change places."""
    random = torch.Generator().manual_seed(SEED)
    picture = Pictures.of("test", 1, SEED).images
    named: dict[str, list[float]] = {"with": [], "without": []}
    for moved in range(2, int(values["moved"]) + 1):
        order = shuffled_patches.orders(1, moved, random)
        other = shuffled_patches.reordered(picture, order)
        for name, model in _image_models().items():
            before, after = (shuffled_patches.scores(model, one) for one in (picture, other))  # type: ignore[arg-type]
            named[name].append(float((after - before).abs().max() / before.abs().max()))
    facts = {name: each[-1] for name, each in named.items()}
    return lines(named, 2, x="moved", y="change", dots=True, log=True, facts=facts, range=(1e-8, 10))


LIVE: dict[str, Live] = {
    "long-term-dependency": Live((Slider("norm", 0.2, 1.6, 0.9, 0.05), Slider("bias", -2, 6, 1, 0.5)), long_term),
    "teacher-forcing": Live((Slider("right", 50, 100, 90), Slider("shown", 0, 100, 50, 5)), teacher_forcing),
    "score-functions": Live((Slider("width", 1, 8, 5, power=True), Slider("size", 0.25, 3, 1, 0.25)), score_functions),
    "scaling": Live((Slider("width", 1, 10, 6, power=True),), why_scaling),
    "projections": Live((Slider("words", 3, 12, 8), Slider("width", 1, 7, 5, power=True)), projections),
    "causal-mask": Live((Slider("words", 3, 14, 8),), causal_mask),
    "position": Live((Slider("place", 0, 127, 20), Slider("width", 2, 8, 7, power=True)), positions),
    "parallelism": Live((Slider("width", 4, 11, 7, power=True),), parallelism),
    "clipping": Live((Slider("gain", 0.5, 2, 1.5, 0.05), Slider("clip", 0.5, 20, 1, 0.5)), clipped),
    "forget-gate": Live((Slider("bias", -3, 6, 1, 0.25), Slider("span", 1, 60, 14)), forget_gate),
    "study-notes": Live((Slider("width", 1, 10, 6, power=True),), study_notes),
    "shuffled-patches": Live((Slider("moved", 2, PATCHES, PATCHES),), shuffled),
}
