"""A word hidden in its sentence: found from both sides, or from the left alone.

    masked   p(x_t | x_<t, x_>t)        causal   p(x_t | x_<t)

BERT sees both sides because it is not asked for the next word: 15 % of the words are hidden from it (80 % of these
behind [MASK], 10 % behind another word, 10 % not at all), and it guesses them. "A deep bidirectional model is strictly
more powerful than […] a left-to-right model" (Devlin et al. 2019, section 3.1). The price: it learns from 15 % of the
words that it reads, a language model from all of them.

Here both are the same network, weight for weight at the start, and read the same batches; only the mask of the
attention and what they are asked for differ. A causal model knows the right side too, in a roundabout way:

    p(x_t | x_<t, x_>t) ∝ p(x_t | x_<t) · p(x_>t | x_≤t)

so that it may weigh whole sentences, one for each word that might stand there. That is measured as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

import matplotlib
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data import grammar
from jumok.data.batch import END, START, UNKNOWN, Sequences
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train
from jumok.models.bert import Bert, HiddenWords
from jumok.recipe import BertSection

SENTENCES, TESTED, UPDATES, BATCH, LEARNING_RATE = 20_000, 300, 1800, 48, 0.004
WIDTH, PAPER_WIDTH = 64, 768
HIDDEN, MASKED, SWAPPED = 0.15, 0.8, 0.1  # of all words; of the hidden ones behind [MASK], behind another word
MASK = max(START, END) + 1  # [CLS] and [SEP] are START and END
FIRST_WORD = MASK + 1
PLACES = 8  # words of a sentence that are told apart
FREQUENT = 60  # the most frequent words: articles, pronouns, auxiliaries, prepositions, numbers
WEIGHED, CANDIDATES = 100, 40  # sentences, and words that the causal model tries in each place
MOMENTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the training, when it is looked at, besides its end
BOTH, CAUSAL, LEFT, FREQUENCY = "both sides", "causal", "both sides, right cut off", "word frequencies"
WAYS = (BOTH, CAUSAL, LEFT, FREQUENCY)


@dataclass(frozen=True)
class Network:
    """The same for both: nothing but the mask of its attention differs."""

    reader: Bert
    words: HiddenWords

    @classmethod
    def build(cls, vocabulary: int, causal: bool) -> Network:
        section = BertSection(
            width=WIDTH, heads=4, layers=2, feed_forward=128, norm="pre", position="rotary", segments=0, dropout=0.0,
            attention_dropout=0.0, norm_epsilon=1e-5,
        )  # fmt: skip
        reader = Bert(section, vocabulary)
        reader.encoder.causal = causal
        words = HiddenWords(reader)
        # weights start as they do in the paper for its width: left at 0.02, with which the causal model does as well,
        # the masked one may read for most of its time before it finds out that words depend on each other
        with torch.no_grad():
            for weight in words.parameters():
                if weight.dim() > 1:
                    weight.mul_((PAPER_WIDTH / WIDTH) ** 0.5)
        return cls(reader, words)

    def log_probabilities(self, rows: Sequences, asked: Any, never_V: Tensor | None = None) -> Tensor:
        """(…, V) at the places that `asked` chooses of (B, T), of all words but those that are `never` meant."""
        logits = self.words.head(self.reader(rows)[asked])
        return (logits if never_V is None else logits.masked_fill(never_V, float("-inf"))).log_softmax(dim=-1)


# ---------------------------------------------------------------- sentences


class Text:
    """Sentences of the embedded grammar in words and marks, each between [CLS] and [SEP]."""

    def __init__(self, seed: int, effort: float) -> None:
        learned = _sentences("train", max(400, round(SENTENCES * effort)), seed)
        held = _sentences("test", max(40, round(TESTED * effort)), seed)
        self.counts = Counter(word for sentence in learned for word in sentence)
        self.ids = {word: FIRST_WORD + number for number, (word, _) in enumerate(self.counts.most_common())}
        self.vocabulary = FIRST_WORD + len(self.ids)
        self.learned = Sequences.pad([self.row(sentence) for sentence in learned])
        self.places = [
            Place(self.row(sentence), column, number, index, number == len(words) - 1)
            for index, sentence in enumerate(held)
            for words in [[column for column, word in enumerate(sentence, 1) if _is_word(word)]]
            for number, column in enumerate(words)
            if sentence[column - 1] in self.ids
        ]

    def row(self, sentence: Sequence[str]) -> list[int]:
        return [START, *(self.ids.get(word, UNKNOWN) for word in sentence), END]

    @property
    def marks(self) -> Tensor:
        """(V,) what is no word: marks and special tokens. Who is asked for a word need not weigh them."""
        marks_V = torch.ones(self.vocabulary, dtype=torch.bool)
        marks_V[[number for word, number in self.ids.items() if _is_word(word)]] = False
        return marks_V

    def frequencies(self) -> Tensor:
        """(V,) log p of each word by itself."""
        counts_V = torch.zeros(self.vocabulary)
        counts_V[list(self.ids.values())] = torch.tensor([float(self.counts[word]) for word in self.ids])
        counts_V[self.marks] = 0
        return (counts_V / counts_V.sum()).log()


class Place(NamedTuple):
    """A word of a held-out sentence, to be hidden."""

    row: list[int]
    column: int  # of the row
    number: int  # among the words of the sentence, from 0
    sentence: int
    last: bool

    @property
    def word(self) -> int:
        return self.row[self.column]


def _sentences(split: str, count: int, seed: int) -> list[list[str]]:
    pairs = grammar.pairs("en", "fr", split, count, seed)
    return [re.findall(r"[\w'-]+|[^\w\s]", pair.source.lower()) for pair in pairs]


def _is_word(token: str) -> bool:
    return token[0].isalnum()


class Batches:
    """Sentences of like lengths side by side, so that little is padding; the same ones for the same seed."""

    def __init__(self, rows: Sequences, seed: int) -> None:
        self.rows, self.random = rows, torch.Generator().manual_seed(seed)
        self.waiting: list[Tensor] = []

    def next(self) -> Sequences:
        if not self.waiting:
            drawn = torch.randint(len(self.rows), (16 * BATCH,), generator=self.random)
            by_length = drawn[self.rows.lengths[drawn].argsort(stable=True)].view(16, BATCH)
            self.waiting = list(by_length[torch.randperm(16, generator=self.random)])
        chosen = self.waiting.pop()
        lengths = self.rows.lengths[chosen]
        return Sequences(self.rows.ids[chosen, : int(lengths.max())], lengths)


def hide(words: Sequences, vocabulary: int) -> tuple[Sequences, Tensor]:
    """Some words hidden, and (B, T) which: chosen among words and marks, never among [CLS], [SEP] and padding."""
    ids_BT = words.ids
    asked_BT = (ids_BT >= FIRST_WORD) & (torch.rand(ids_BT.shape) < HIDDEN)
    fate_BT = torch.rand(ids_BT.shape)
    shown_BT = ids_BT.masked_fill(asked_BT & (fate_BT < MASKED), MASK)
    others_BT = torch.randint(FIRST_WORD, vocabulary, ids_BT.shape)
    swapped_BT = asked_BT & (fate_BT >= MASKED) & (fate_BT < MASKED + SWAPPED)
    return Sequences(torch.where(swapped_BT, others_BT, shown_BT), words.lengths), asked_BT


# ---------------------------------------------------------------- learning


def learn(text: Text, causal: bool, seed: int, updates: int) -> tuple[Network, list[float]]:
    """A network, and how many of the words of some held-out sentences it found at the moments of its training."""
    with seeded(seed):
        network = Network.build(text.vocabulary, causal)
        batches, looked = Batches(text.learned, seed), [place for place in text.places if place.sentence < WEIGHED]
        moments = moments_of(updates)[:-1]
        found: list[float] = []

        def loss_of(update: int) -> Tensor:
            for _ in range(moments.count(update)):
                network.words.eval()
                found.append(_share(found_by(network, looked, CAUSAL if causal else BOTH, text.marks)[0]))
                network.words.train()
            words = batches.next()
            if causal:
                asked_BT = words.mask[:, 1:]
                hidden_ND, target_N = network.reader(words)[:, :-1][asked_BT], words.ids[:, 1:][asked_BT]
            else:
                shown, asked_BT = hide(words, text.vocabulary)
                hidden_ND, target_N = network.reader(shown)[asked_BT], words.ids[asked_BT]
            return F.cross_entropy(network.words.head(hidden_ND), target_N)

        train(network.words, loss_of, updates, LEARNING_RATE)
        found.append(_share(found_by(network, looked, CAUSAL if causal else BOTH, text.marks)[0]))
    return network, found


def moments_of(updates: int) -> list[int]:
    return [*(round(updates * part) for part in MOMENTS), updates]


# ---------------------------------------------------------------- finding


def question(place: Place, way: str) -> tuple[list[int], int]:
    """What the network reads, and in which column it answers."""
    left, right = place.row[: place.column], place.row[place.column + 1 :]
    if way == CAUSAL:  # the word after the last one
        return left, place.column - 1
    return ([*left, MASK, *right] if way == BOTH else [*left, MASK]), place.column


@torch.inference_mode()
def found_by(network: Network, places: Sequence[Place], way: str, marks_V: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) whether the likeliest word is the hidden one, and −log p of the hidden one."""
    found, losses = [], []
    for first in range(0, len(places), 256):
        part = places[first : first + 256]
        rows, columns = zip(*(question(place, way) for place in part), strict=True)
        asked = torch.arange(len(part)), torch.tensor(columns)
        log_p_NV = network.log_probabilities(Sequences.pad(rows), asked, marks_V)
        right_N = torch.tensor([place.word for place in part])
        found.append(log_p_NV.argmax(dim=-1) == right_N)
        losses.append(-log_p_NV.gather(1, right_N[:, None])[:, 0])
    return torch.cat(found), torch.cat(losses)


@torch.inference_mode()
def weighed(network: Network, places: Sequence[Place], marks_V: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) whether the sentence that the causal model finds likeliest has the hidden word, of those with each of its
    best words in that place; and whether it was among them."""
    found, listed = [], []
    for place in places:
        left, right = place.row[: place.column], place.row[place.column + 1 :]
        last_V = network.log_probabilities(Sequences.pad([left]), (0, -1), marks_V)
        candidates = last_V.topk(CANDIDATES).indices.tolist()
        rows = Sequences.pad([[*left, word, *right] for word in candidates])
        log_p_BTV = network.log_probabilities(rows, (slice(None), slice(place.column - 1, -1)))
        whole_B = log_p_BTV.gather(2, rows.ids[:, place.column :, None]).sum(dim=(1, 2))
        found.append(candidates[int(whole_B.argmax())] == place.word)
        listed.append(place.word in candidates)
    return torch.tensor(found), torch.tensor(listed)


def _share(found: Tensor) -> float:
    return float(found.float().mean()) if len(found) else 0.0


# ---------------------------------------------------------------- measured


def measure(seed: int, effort: float) -> Numbers:
    text = Text(seed, effort)
    updates = max(2, round(UPDATES * effort))
    both, while_both = learn(text, False, seed, updates)
    causal, while_causal = learn(text, True, seed, updates)
    words_N = torch.tensor([place.word for place in text.places])
    likeliest_V = text.frequencies()
    answers = {
        BOTH: found_by(both, text.places, BOTH, text.marks),
        CAUSAL: found_by(causal, text.places, CAUSAL, text.marks),
        LEFT: found_by(both, text.places, LEFT, text.marks),
        FREQUENCY: (words_N == likeliest_V.argmax(), -likeliest_V[words_N]),
    }
    number_N = torch.tensor([place.number for place in text.places])
    last_N = torch.tensor([place.last for place in text.places])
    often_N = words_N < FIRST_WORD + FREQUENT  # ids go by frequency
    some_N = torch.tensor([place.sentence for place in text.places]) < max(4, round(WEIGHED * effort))
    some = [place for place, chosen in zip(text.places, some_N, strict=True) if chosen]
    by_whole, listed = weighed(causal, some, text.marks)
    networks = {BOTH: both, CAUSAL: causal}
    return {
        "updates": updates,
        "parameters": {way: sum(one.numel() for one in net.words.parameters()) for way, net in networks.items()},
        "vocabulary": text.vocabulary,
        "words asked": len(text.places),
        "found": {way: _share(found) for way, (found, _) in answers.items()},
        "nats": {way: float(nats.mean()) for way, (_, nats) in answers.items()},
        "by place": {
            way: [_share(found[number_N == place]) for place in range(PLACES)] for way, (found, _) in answers.items()
        },
        "last word": {way: _share(found[last_N]) for way, (found, _) in answers.items()},
        "frequent words": {way: _share(found[often_N]) for way, (found, _) in answers.items()},
        "other words": {way: _share(found[~often_N]) for way, (found, _) in answers.items()},
        "whole sentence": {
            "words asked": int(some_N.sum()),
            "found": _share(by_whole),
            "among the candidates": _share(listed),
            **{way: _share(answers[way][0][some_N]) for way in (BOTH, CAUSAL)},
        },
        "while learning": {BOTH: while_both, CAUSAL: while_causal},
    }


# ---------------------------------------------------------------- the verdicts


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    def mean(*keys: str) -> float:
        values: Any = numbers
        for key in keys:
            values = [each[key] for each in values]
        return fmean(values)

    gaps = [each["found"][BOTH] - each["found"][CAUSAL] for each in numbers]
    gap, spread = fmean(gaps), stdev(gaps) if len(gaps) > 1 else 0.0
    places = [fmean(each["by place"][BOTH][n] - each["by place"][CAUSAL][n] for each in numbers) for n in range(PLACES)]
    first = {way: fmean(each["by place"][way][0] for each in numbers) for way in (BOTH, CAUSAL)}
    others = ", ".join(f"{100 * one:+.0f}".replace("-", "−") for one in places[1:])
    last = mean("last word", BOTH) - mean("last word", CAUSAL)
    sizes = [numbers[0]["parameters"][way] for way in (BOTH, CAUSAL)]
    whole, part_both, part_causal = (mean("whole sentence", key) for key in ("found", BOTH, CAUSAL))
    early = [
        fmean(each["while learning"][BOTH][n] - each["while learning"][CAUSAL][n] for each in numbers)
        for n in range(len(MOMENTS) + 1)
    ]
    ahead = next((n for n in range(len(early)) if min(early[n:]) > 0), None)
    when = "at no time" if ahead is None else f"after {moments_of(numbers[0]['updates'])[ahead]} updates"
    return [
        Verdict(
            "With context from both sides the masked word is found more often than by a causal model of the same size.",
            gap > max(0.02, 2 * spread) and sizes[0] == sizes[1],
            f"{mean('found', BOTH):.1%} of the words against {mean('found', CAUSAL):.1%} (the most frequent word: "
            f"{mean('found', FREQUENCY):.1%}); {mean('nats', BOTH):.2f} nats a word against "
            f"{mean('nats', CAUSAL):.2f}. Both have {sizes[0]:,} parameters"
            + (f"; the gap of {gap:.1%} varies by {spread:.1%} over seeds." if len(gaps) > 1 else "."),
        ),
        Verdict(
            "The gap is largest at the first word, of which a causal model knows nothing.",
            places[0] > 0.02 and places[0] == max(places),
            f"The first word is found in {first[BOTH]:.0%} against {first[CAUSAL]:.0%}: {100 * places[0]:+.0f} points; "
            f"at the words after it {others}.",
        ),
        Verdict(
            "At the last word, with nothing but the mark behind it, both sides are one side: the gap is gone.",
            gap > 0.02 and abs(last) < gap / 2,
            f"{mean('last word', BOTH):.1%} against {mean('last word', CAUSAL):.1%}, a gap of {last:+.1%}; over all "
            f"words it is {gap:+.1%}.",
        ),
        Verdict(
            "The masked model is no language model: with the right side cut off it finds less than the causal one.",
            gap > 0.02 and mean("found", LEFT) < mean("found", CAUSAL) - 0.02,
            f"{mean('found', LEFT):.1%} of the words, the causal model {mean('found', CAUSAL):.1%}, both sides "
            f"{mean('found', BOTH):.1%}.",
        ),
        Verdict(
            "Asked for 15 % of the words, the masked model learns more slowly, yet is ahead almost at once.",
            ahead is not None and ahead <= 1,
            f"It is ahead for good {when} of {numbers[0]['updates']}.",
        ),
        Verdict(
            "A causal model that weighs whole sentences makes up more than half of the gap.",
            part_both > part_causal and whole - part_causal > 0.5 * (part_both - part_causal),
            f"With {CANDIDATES} sentences read for each word it finds {whole:.1%}, from the left alone "
            f"{part_causal:.1%}; both sides, read once, {part_both:.1%} of the same words.",
        ),
    ]


# ---------------------------------------------------------------- the figure

LOOKS = {
    BOTH: ("#4477aa", "-", "o"),
    CAUSAL: ("#d9596b", "--", "s"),
    LEFT: ("#7fa8d1", ":", "^"),
    FREQUENCY: ("#8c8c8c", ":", ""),
}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    figure.set_layout_engine("constrained")
    places, bars, curves = figure.subplots(1, 3, width_ratios=(1.35, 1.25, 1))
    columns = range(1, PLACES + 1)
    for way in (BOTH, CAUSAL):
        colour, line, marker = LOOKS[way]
        found = torch.tensor([each["by place"][way] for each in numbers])
        places.plot(columns, found.mean(dim=0), color=colour, linestyle=line, marker=marker, markersize=4, label=way)
        places.fill_between(columns, found.amin(dim=0), found.amax(dim=0), color=colour, alpha=0.18, linewidth=0)
    places.set(xlabel="place of the hidden word in its sentence", ylabel="hidden words found", xticks=list(columns))
    places.set_ylim(0, 1.15 * max(max(each["by place"][BOTH] + each["by place"][CAUSAL]) for each in numbers))
    places.legend(fontsize=9, frameon=False)
    ink = matplotlib.rcParams["text.color"]  # light on dark paper
    rows = [(way, LOOKS[way][0], [each["found"][way] for each in numbers]) for way in WAYS]
    rows.insert(2, ("causal, weighing\nwhole sentences", "#e9a0a9", [e["whole sentence"]["found"] for e in numbers]))
    for place, (_, colour, values) in enumerate(rows):
        bars.barh([place], [fmean(values)], 0.66, color=colour)
        bars.plot(values, [place] * len(values), ".", color=ink, markersize=4)
        bars.annotate(f"{fmean(values):.1%}", (max(values), place), (6, 0), textcoords="offset points", va="center")
    bars.set_yticks(range(len(rows)), [name.replace(", right", ",\nright") for name, _, _ in rows])
    bars.invert_yaxis()
    bars.set(
        xlabel=f"found (dots: seeds; weighing: {WEIGHED} sentences)",
        xlim=(0, 1.3 * max(max(values) for _, _, values in rows)),
    )
    moments = moments_of(numbers[0]["updates"])
    for way in (BOTH, CAUSAL):
        colour, line, marker = LOOKS[way]
        for each in numbers:
            curves.plot(
                moments, each["while learning"][way], color=colour, linestyle=line, marker=marker, markersize=3,
                linewidth=1.1,
            )  # fmt: skip
    curves.set(xlabel="updates", ylabel="hidden words found", ylim=(0, None))
    for axes in (places, bars, curves):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8.5)


EXPERIMENT = Experiment(
    number=17,
    name="both-sides",
    title="A hidden word, found from both sides or from the left alone",
    source="Devlin et al. 2019, sections 3.1 and 5.1, appendix C.1",
    about="The same small Transformer learns sentences of the embedded grammar twice: as BERT does, guessing hidden "
    "words from both sides, and as a causal language model. Then one word of each held-out sentence after the other is "
    "hidden, and either says which it is.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.5, 3.7),
)
