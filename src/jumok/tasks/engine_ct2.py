"""Searches run by CTranslate2, for Transformers whose files `interop/ctranslate2.py` has made.

Its beam search is ours: candidates are ranked by log-probability, an `<eos>` among the `beam` best finishes, the `beam`
best of the others live on, and a row is done with `patience × beam` finished ones. Where `<eos>` is given back with the
tokens, it counts in their length as it does with us, so scores agree as well:

    score(y) = log p(y | x) / |y|^α

Three things are different, and none is passed over:

- What may not come next is made impossible before the softmax there, after it here. Options that forbid much (phrases,
  n-grams, early ends) would change every score, so they are refused. The few tokens that never come are left alone;
  should one come after all, its row is searched again here.
- One longest length holds for a whole batch, and a hypothesis that reaches it is cut without `<eos>`. All that have
  finished are asked for, not just the n-best: if the longest of them is as long as its row may be, the search went to
  that limit, and the row is searched again here.
- Positions beyond the table in its files are searched here.

Rows are sorted by length and cut into batches by tokens, and the batches wait in a queue that never runs dry: while it
computes, what it has found is turned into text.
"""

from __future__ import annotations

import importlib
import json
import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from jumok.data.batch import END
from jumok.errors import BadInput, Failure
from jumok.layers.packed import known_precision
from jumok.layers.tap import Tap
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.transformer import Transformer
from jumok.search import Hypothesis, SearchOptions
from jumok.search.options import normalised
from jumok.search.watching import WATCHERS
from jumok.tasks.engine import Engine, Found, Row

ABOUT = "jumok.json"  # beside CTranslate2's own files: what they were made from
BATCH_CPU, BATCH_ROUNDED, BATCH_NARROW, BATCH_GPU = 64, 32, 16, 256  # sentences at once; ROUNDED: in int8
NARROW = 256  # a model less wide than this has weights that stay in the cache: small batches do too
GATHERED = 4096  # sentences that are sorted together
USUAL = 32  # tokens of a source: a batch of `size` longer ones would take more memory than it should
OF_RECIPES = ("coverage_penalty", "no_repeat_ngram")  # what is forbidden there, and may come from a recipe
WAITING = 2  # batches in the queue for each that is computed


class Asked(NamedTuple):
    """What has to be the same for all rows of a call."""

    beam: int
    length_penalty: float
    finished: int  # hypotheses after which a row is done


class Batch(NamedTuple):
    places: list[int]
    asked: Asked
    limit: int


class CTranslate2Engine(Engine):
    name = "ct2"
    ahead = 2  # one is computed while another is prepared

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        device: torch.device,
        folder: Path,
        precision: str = "float32",
        threads: int | None = None,
    ) -> None:
        """`folder`: the model as CTranslate2 has it (`interop.ctranslate2.engine_folder`); `models`: the one it was
        made from. `threads`: of the CPU, all together; None: as many as PyTorch has."""
        refuse_together(models)
        if device.type not in ("cpu", "cuda"):
            raise BadInput(
                f"--device {device.type}: CTranslate2 computes on cpu or cuda. Choose one, or --engine torch"
            )
        super().__init__(models, device, fast=True)
        self.precision = known_precision(precision)
        self.here = Engine(models, device, fast=True)
        self.folder, self.compute_type = folder, precision
        self.threads = threads or torch.get_num_threads()
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        self.positions: int | None = about["positions"]
        self.source, self.names = (vocabulary(folder, side) for side in ("source", "target"))
        self.ids = {name: id for id, name in enumerate(self.names)}
        self.opened: dict[int, Any] = {}  # by batches at a time
        self.opening, self.searching = threading.Lock(), threading.Lock()
        self.left: list[int] = []  # rows of the last search that were searched here

    @property
    def batch(self) -> int:
        if self.device.type == "cuda":
            return BATCH_GPU
        (model,) = self.models
        assert isinstance(model, Transformer)
        if model.section.width < NARROW:
            return BATCH_NARROW
        return BATCH_ROUNDED if self.compute_type == "int8" else BATCH_CPU

    @property
    def gathered(self) -> int:
        return GATHERED // self.batch

    def search(self, rows: Sequence[Row], size: int, sentences: Sequence[int] = ()) -> Found:
        self._refuse_watchers()
        limits = [options.limit(len(source) + 1) for source, options in rows]
        checked = {options: asked_of(options) for options in {id(o): o for _, o in rows}.values()}
        asked = [checked[options] for _, options in rows]
        room = self.positions or max(limits, default=0)
        fits = [
            bool(source) and len(source) < room and limit <= room
            for (source, _), limit in zip(rows, limits, strict=True)
        ]
        again = [place for place, fitting in enumerate(fits) if not fitting]
        chosen = [place for place, fitting in enumerate(fits) if fitting]
        if self.device.type == "cpu":  # enough batches for all threads, and short ones at the end
            size = min(size, max(1, len(chosen) // (2 * self.threads)))
        batches = list(self._batches(rows, chosen, asked, limits, size))
        forbidden = {options.forbidden for options in checked}
        never = {ids: frozenset(self.names[id] for id in ids) for ids in forbidden}
        for batch, results in self._translated(rows, batches):
            for place, result in zip(batch.places, results, strict=True):
                options = rows[place][1]
                found = self._hypotheses(result, options, limits[place], never[options.forbidden])
                if found is None:
                    again.append(place)
                else:
                    yield place, found
        self.left = again
        if again:
            with self.searching:  # one at a time: PyTorch has all threads for itself
                found_here = list(self.here.search([rows[place] for place in again], self.here.batch))
            yield from ((again[number], hypotheses) for number, hypotheses in found_here)

    def log_probabilities(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """Of given translations, `<eos>` included, as CTranslate2 computes them."""
        names = self.names
        texts = [[self.source[id] for id in row] for row in sources], [[names[id] for id in row] for row in targets]
        scored = self._translator(1).score_batch(*texts, max_batch_size=BATCH_CPU, max_input_length=0)
        return [sum(one.log_probs) for one in scored]

    def _batches(
        self, rows: Sequence[Row], chosen: list[int], asked: list[Asked], limits: list[int], size: int
    ) -> Iterator[Batch]:
        """Rows of like lengths, the longest first; neither more rows than `size` nor many more tokens than usual."""
        order = sorted(chosen, key=lambda place: (asked[place], -len(rows[place][0]), -limits[place]))
        begin = 0
        while begin < len(order):
            first = order[begin]
            most = max(1, min(size, size * USUAL // (len(rows[first][0]) + 1)))
            group = [place for place in order[begin : begin + most] if asked[place] == asked[first]]
            yield Batch(group, asked[first], max(limits[place] for place in group))
            begin += len(group)

    def _translated(self, rows: Sequence[Row], batches: list[Batch]) -> Iterator[tuple[Batch, list[Any]]]:
        """What each batch comes to, in the order of the batches; the next ones are under way by then."""
        workers = 1 if self.device.type == "cuda" else min(self.threads, max(1, len(batches)))
        translator, running = self._translator(workers), deque[tuple[Batch, list[Any]]]()
        names = self.source
        waiting = iter(batches)
        try:
            while True:
                while len(running) < workers * (1 + WAITING) and (batch := next(waiting, None)) is not None:
                    beam, length_penalty, finished = batch.asked
                    results = translator.translate_batch(
                        [[names[id] for id in rows[place][0]] for place in batch.places],
                        asynchronous=True,
                        beam_size=beam,
                        num_hypotheses=finished,
                        patience=finished / beam + 1e-4,  # it rounds the product with the beam
                        # with 0 itself it has another rule for stopping
                        length_penalty=length_penalty or 1e-9,
                        return_scores=True,
                        return_end_token=True,
                        max_input_length=0,
                        min_decoding_length=0,
                        max_decoding_length=batch.limit,
                    )
                    running.append((batch, results))
                if not running:
                    return
                batch, results = running.popleft()
                yield batch, [result.result() for result in results]
        except (RuntimeError, ValueError) as error:
            raise Failure(f"CTranslate2: {error}. Leave --engine ct2 out, or remove {self.folder}") from None

    def _hypotheses(
        self, result: Any, options: SearchOptions, limit: int, never: frozenset[str]
    ) -> list[Hypothesis] | None:
        """A row's n-best; None where they may be others than ours. `never`: tokens that do not come here."""
        finished = result.hypotheses
        if max(map(len, finished), default=limit) >= limit or len(finished) < options.nbest:
            return None
        if not all(map(never.isdisjoint, finished)):
            return None
        found = []
        for names, score in zip(finished[: options.nbest], result.scores, strict=False):
            row = [self.ids[name] for name in names]
            total = score * len(row) ** options.length_penalty
            found.append(Hypothesis(row[:-1], normalised(total, len(row), options.length_penalty), total, True))
        return found

    def _translator(self, workers: int) -> Any:
        """Opened at the first use. On a CPU as many batches at a time as there are threads: each needs no other."""
        with self.opening:
            workers = max(workers, *self.opened) if self.opened else workers  # what is there will do
            if workers not in self.opened:
                library = importlib.import_module("ctranslate2")
                index = {"device_index": self.device.index} if self.device.index is not None else {}
                self.opened[workers] = library.Translator(
                    str(self.folder),
                    device=self.device.type,
                    compute_type=self.compute_type,
                    inter_threads=workers,
                    intra_threads=max(1, self.threads // workers),
                    max_queued_batches=-1,
                    **index,
                )
            return self.opened[workers]

    def _refuse_watchers(self) -> None:
        watched = any(isinstance(module, Tap) and module.watched for model in self.models for module in model.modules())
        if WATCHERS or watched:
            raise BadInput("--engine ct2: CTranslate2 does not show what it looks at. Use --engine torch")


def asked_of(options: SearchOptions) -> Asked:
    """What a search comes to there; refused where it would be another one."""
    for name, off, typed in (
        ("sample", False, "--sample"),
        ("required", (), "--require"),
        ("forbidden_phrases", (), "--forbid"),
        ("prefix", (), "--prefix"),
        ("coverage_penalty", 0.0, "--coverage-penalty"),
        ("no_repeat_ngram", 0, "--no-repeat-ngram"),
        ("min_length", 1, "--min-length"),
    ):
        if getattr(options, name) != off:
            own = f" (or as the recipe says it; {typed} 0 turns it off)" if name in OF_RECIPES else ""
            raise BadInput(f"{typed}{own}: --engine ct2 cannot do this as it is done here. Use --engine torch")
    if END in options.forbidden:
        raise BadInput("forbidden: --engine ct2 cannot search without <eos>. Use --engine torch")
    if options.beam == 1:
        return Asked(1, options.length_penalty, 1)
    if options.patience is None:
        raise BadInput(
            "search.patience null: --engine ct2 stops when so many hypotheses have finished. Write patience: 1 "
            "under search: in the run's recipe.yaml (as most recipes have it), or use --engine torch"
        )
    # with no more patience than that, both rules end a row when its beam is full of finished ones
    if options.stopping != "exact" and options.patience > 1:
        raise BadInput(
            f"search.stopping {options.stopping}: --engine ct2 does not stop so with search.patience "
            f"{options.patience:g}. Write stopping: exact, or patience: 1, under search: in the run's recipe.yaml, "
            "or use --engine torch"
        )
    finished = math.ceil(options.patience * options.beam)
    if finished < options.nbest:
        raise BadInput(
            f"search.patience {options.patience:g}: --engine ct2 then finds {finished} of the {options.nbest} "
            "translations that were asked for (nbest). Raise the one, or lower the other"
        )
    return Asked(options.beam, options.length_penalty, finished)


def refuse_together(models: Sequence[EncoderDecoder]) -> None:
    if len(models) != 1:
        raise BadInput(f"--engine ct2 runs one model, not {len(models)} together: give one --run, or --engine torch")


def vocabulary(folder: Path, side: str) -> list[str]:
    """What CTranslate2 calls each id of one side."""
    own = folder / f"{side}_vocabulary.json"
    file = own if own.exists() else folder / "shared_vocabulary.json"
    names: list[str] = json.loads(file.read_text(encoding="utf-8"))
    return names
