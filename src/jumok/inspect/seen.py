"""What `record` has seen: records in order of time, weights put together, outputs of searches, and pictures of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import START
from jumok.errors import BadInput
from jumok.inspect.attention import Attention
from jumok.inspect.attention_record import AttentionRecord, Look
from jumok.inspect.path import Node, Path, Sentence, Trail, history, largest
from jumok.inspect.tokens import Ids, Read, Vocabulary
from jumok.inspect.view import View
from jumok.layers.tap import Tap
from jumok.models.language import LanguageModel
from jumok.search.events import Hypothesis

MOST_PICTURES, MOST_LONG = 12, 2  # in a notebook


class Seen:
    """`records` in order of time: those of the model's forward as they came, those of a search when a sentence is done.

    `max_difference` is the largest difference between a layer's real output and the recorded weights applied to its
    values; `twin_difference` that between the outputs of a compiled model and of the eager one that was recorded in its
    place (None: nothing was compiled); `notes` say in words what ran otherwise than without the record.
    """

    def __init__(self, model: nn.Module, taps: Sequence[Tap], heads: Sequence[int] | None, words: Vocabulary) -> None:
        self.records: list[AttentionRecord] = []
        self.paths: list[list[Path]] = []  # of each sentence that was searched, in the order given: its n-best
        self.max_difference = 0.0
        self.twin_difference: float | None = None
        self.notes: list[str] = []
        self.trail = Trail(model, self._found)
        self._model, self._taps, self._heads, self._words = model, list(taps), heads, words
        self._call = 0
        self._read: tuple[Read, ...] = ()

    def begin(self, read: Sequence[Read] = ()) -> None:
        """From here on positions count from 0 again: a forward does this, who calls `step()` alone does it by hand."""
        self.trail.pause()
        self._call += 1
        self._read = tuple(read)

    def names(self) -> list[str]:
        """The taps that were seen."""
        return list(dict.fromkeys(record.name for record in self.records))

    # ------------------------------------------------------------ asked by the user

    def weights(self, name: str | None = None) -> Tensor:
        """(B, T, S) or (B, H, T, S): the newest call of one tap, its steps one after another along T."""
        return self._newest(name).weights

    def path(self, sentence: int | str = 0, rank: int = 0) -> Path:
        """The best output of a sentence that was searched inside the block, with all that it had looked at.

        Sentences are numbered as they were given, or named by their text (the newest of that text); `rank` above 0 is
        for those who asked for more than the best (`nbest`). A language model that writes on behind the end of a line,
        or behind its window, begins a new search each time, with a number of its own.
        """
        number = self._named(sentence) if isinstance(sentence, str) else sentence
        if not 0 <= number < len(self.paths):
            searched = f"{len(self.paths)} sentences were searched" if self.paths else "no sentence was searched"
            raise BadInput(f"sentence {number}: {searched} inside the block (they count from 0)")
        outputs = self.paths[number]
        if not outputs:
            raise BadInput(
                f"sentence {number}: nothing was searched for it to the end (it was empty, too long, or given up)"
            )
        if not 0 <= rank < len(outputs):
            raise BadInput(f"sentence {number} has {len(outputs)} outputs; rank {rank} is none of them")
        return outputs[rank]

    def attention(
        self,
        row: int = 0,
        *,
        layer: int | None = None,
        head: int | None = None,
        kind: str | None = None,
        words: bool = True,
    ) -> Attention:
        """A picture of what was recorded last: of one of the sentences that were searched, or of a row of a batch.

        Layers and heads count from 0; without them it is the second to last layer (or the last one recorded) and the
        mean over its heads.
        """
        tap = self._chosen(layer, kind)
        if self._searched:
            return self.path(row).attention(tap.name, head, words)
        picture: Attention = self._newest(tap.name).attention(row, head, words)
        return picture

    @property
    def _searched(self) -> bool:
        """Whether what was recorded last is a search."""
        return bool(self.records) and self.records[-1].sentence is not None

    def __repr__(self) -> str:
        searched = f", {len(self.paths)} sentences searched" if self.paths else ""
        taps = ", ".join(self.names()) or "nothing yet"
        return f"Seen({taps}{searched}, max|Δ| {self.max_difference:.1e})"

    def _repr_html_(self) -> str:
        """In a notebook: each tap's picture, the mean over its heads; of the first sentence, and of others as long as
        there are not too many."""
        from jumok.inspect.html import escape, framed, page
        from jumok.inspect.pictures import is_long, page_of

        if not self.records:
            return "<p>nothing was recorded</p>"
        if self._searched:
            pictures = [path.attention(name) for outputs in self.paths for path in outputs[:1] for name in path.records]
        else:
            newest = [self._newest(name) for name in self.names()]
            pictures = [one.attention(row) for row in range(len(newest[0].weights)) for one in newest]
        long = any(map(is_long, pictures))
        shown = pictures[: MOST_LONG if long else MOST_PICTURES]
        height = 200 + sum(120 + 28 * len(picture.target) for picture in shown)
        said = (
            f"max|Δ| between the layers' outputs and these weights applied to their values: {self.max_difference:.1e}"
        )
        more = f"; {len(pictures) - len(shown)} more pictures: seen.attention(…)" if len(pictures) > len(shown) else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in (*self.notes, said + more))
        pages = [page_of(picture) for picture in shown] if long else [page(shown)]
        return "".join(framed(one, min(height, 900)) for one in pages) + notes

    # ------------------------------------------------------------ told by the hooks

    def add(self, tap: Tap, look: Look) -> None:
        """What a tap has seen now."""
        self.max_difference = largest((self.max_difference, *look.differences))
        if self.trail.under_way:
            self.trail.add(tap, look)
            return
        earlier = self._earlier(tap)
        if earlier is not None and tap.kind != "cross" and look.weights.size(-1) == look.weights.size(-2):
            self.begin()  # it looks at no past: another text begins, though no forward said so
            earlier = None
        step = earlier.step + earlier.weights.size(-2) if earlier is not None else 0
        heads, difference = self._kept(tap), largest(look.differences)
        read = self._read if len(self._read) == len(look.weights) else ()
        self.records.append(
            AttentionRecord(tap.kind, tap.name, self._call, step, look.weights, difference, tap.layer, heads, read)
        )

    def _kept(self, tap: Tap) -> tuple[int, ...] | None:
        """The heads of a tap that are recorded."""
        return None if tap.heads is None else tuple(range(tap.heads) if self._heads is None else self._heads)

    def _earlier(self, tap: Tap) -> AttentionRecord | None:
        """The newest record of this tap in this call."""
        for record in reversed(self.records):
            if record.call != self._call:
                return None
            if record.name == tap.name:
                return record
        return None

    def _found(self, sentence: Sentence, outputs: list[tuple[Hypothesis, Node]]) -> None:
        """A sentence is done: its outputs, and the records of the best."""
        self.paths += [[] for _ in range(sentence.number + 1 - len(self.paths))]
        call = self._call = self._call + 1
        language = isinstance(self._model, LanguageModel)
        found: list[Path] = []
        for output, node in outputs:
            tokens, records = tuple(output.tokens), {}
            ended = language or output.finished  # a text that looks at itself has no row for what comes behind it
            if language:
                read = Read(None, (*sentence.ids, *tokens), self._words)
            else:
                read = Read(sentence.ids, (START, *tokens), self._words, sentence.text, ended=ended)
            for tap, weights, difference in history(sentence, node, ended):
                heads = self._kept(tap)
                records[tap.name] = AttentionRecord(
                    tap.kind, tap.name, call, 0, weights[None], difference, tap.layer, heads, (read,), sentence.number
                )
            found.append(Path(sentence.number, tokens, output.score, output.log_probability, output.finished, records))
        self.paths[sentence.number] += found
        for best in found[:1]:
            self.records += best.records.values()

    def asked(self, texts: Sequence[str | None]) -> None:
        """These sentences will be searched, each once or several times (samples, forms of a required phrase)."""
        self.paths += [[] for _ in range(self.trail.begun + len(texts) - len(self.paths))]
        self.trail.ask(texts)

    def answered(self, outputs: Sequence[Sequence[Ids]]) -> None:
        """What was chosen in the end for each of the sentences asked for, best first: the rest is no answer."""
        for number, answers in enumerate(outputs, len(self.paths) - len(outputs)):
            known = {path.tokens: path for path in reversed(self.paths[number])}
            self.paths[number] = [known[tokens] for tokens in answers if tokens in known]

    # ------------------------------------------------------------ finding what is meant

    def _newest(self, name: str | None) -> AttentionRecord:
        """The newest call of one tap, its steps put together."""
        if not self.records:
            raise BadInput(
                "nothing was recorded: the model has no attention, or it was not run inside the block (where it runs "
                "compiled, or as a recording of the GPU, record what torch.compile gave, or run the model itself)"
            )
        names = self.names()
        if name is None and len(names) > 1:
            raise BadInput(f"several attentions were recorded, name one of: {', '.join(names)}")
        if name is not None and name not in names:
            raise BadInput(f'no attention "{name}" was recorded, only: {", ".join(names)}')
        chosen = [record for record in self.records if record.name == (name or names[0])]
        if chosen[-1].sentence is not None and len(self.paths) > 1:
            raise BadInput(
                f"{len(self.paths)} sentences were searched: seen.path(number)[name] gives the weights of one"
            )
        parts = [record for record in chosen if record.call == chosen[-1].call]
        if len(parts) == 1:
            return parts[0]
        steps = [part.weights for part in parts]
        if _uneven(steps):
            raise BadInput(
                "the rows changed between the steps, as in a beam search by hand, so the steps do not belong together: "
                "search with jumok.search, which tells who descends from whom, and ask seen.path(sentence)"
            )
        longest = steps[-1].size(-1)  # a text that looks at its own past has more to look at in each step
        weights = torch.cat([F.pad(step, (0, longest - step.size(-1))) for step in steps], dim=-2)
        first, difference = parts[0], largest(part.max_difference for part in parts)
        return AttentionRecord(
            first.kind, first.name, first.call, first.step, weights, difference, first.layer, first.heads, first.read
        )

    def _chosen(self, layer: int | None, kind: str | None) -> Tap:
        """The recorded tap that is meant."""
        kinds = list(dict.fromkeys(tap.kind for tap in self._taps))
        if kind is None and kinds:
            kind = "cross" if "cross" in kinds else kinds[0]
        layers = {tap.layer: tap for tap in self._taps if tap.kind == kind}
        if not layers:
            raise BadInput(f'kind "{kind}": of this model {", ".join(kinds) or "no"} attention was recorded')
        if layer is None:
            usual = View(kind=str(kind)).tap(self._model).layer
            layer = usual if usual in layers else max(layers)
        if layer not in layers:
            raise BadInput(f"layer {layer}: the {kind} attention was recorded in {', '.join(map(str, sorted(layers)))}")
        return layers[layer]

    def _named(self, text: str) -> int:
        for number in reversed(range(len(self.paths))):
            for path in self.paths[number][:1]:
                read = next((record.read[0] for record in path.records.values()), None)
                known = None if read is None else read.sides("self")[0]
                if known is not None and known.text.split() == text.split():
                    return number
        raise BadInput(f"no sentence {text!r} was searched inside the block")


def _uneven(steps: Sequence[Tensor]) -> bool:
    return len({step.shape[:-2] for step in steps}) > 1 or any(
        now.size(-1) not in (before.size(-1), before.size(-1) + now.size(-2)) for before, now in pairwise(steps)
    )
