"""The whole way of `jumok translate`: from a source through a model into an output, shown and continuable."""

from __future__ import annotations

import gc
import hashlib
import sys
from dataclasses import asdict
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.api import TrainedTranslator
from jumok.streaming.lines import Columns, chunk_size, stream
from jumok.streaming.output import Complete, note_of, open_output
from jumok.streaming.progress import Pace
from jumok.streaming.sources import Source, Survey
from jumok.tasks.wishes import Wishes


def translate_stream(
    model: TrainedTranslator,
    source: Source,
    wishes: Wishes,
    columns: Columns,
    output: Path | None = None,
    resume: bool = False,
) -> None:
    """Translate all there is. With `resume` an output that was interrupted is continued.

    What is wrong with the wishes or at the beginning of a file is said before the output is touched.
    """
    model.check(wishes)
    path = source.path

    @cache
    def survey() -> Survey | None:  # a look at the whole input, only where the output is a file
        return Survey.of(path) if path is not None and source.is_file else None

    def about() -> dict[str, Any]:
        seen = survey()
        assert seen is not None
        return {
            "input": {"lines": seen.lines, "sha256": seen.sha256},
            "settings": settings(model, source, wishes, columns),
        }

    def complete(sentences: int) -> bool:
        seen = survey()
        return seen is not None and sentences == seen.lines

    opened = open_output(
        output,
        path,
        source.prefixes,
        source.phrases,
        about=about if source.is_file else None,
        resume=resume,
        numbered=wishes.nbest > 1,
        complete=complete,
    )
    chunks = source.chunks(chunk_size(model, wishes))
    ahead = list(islice(chunks, 1)) if source.is_file else []
    count = model.engine.ahead if source.is_file else 1
    # what is loaded stays: looking through it for garbage, again and again, costs a twentieth of a fast engine's time
    gc.freeze()
    try:
        with opened as begun:
            seen = survey() if output is not None else None
            with Pace(seen.size if seen else source.size, _watched(source, output)) as pace:
                for written in stream(model, chain(ahead, chunks), wishes, columns, begun.done, pace.skipped, count):
                    begun.write(written.lines)
                    if written.size is not None:
                        pace.advance(written.sentences, written.size)
    except Complete as nothing_left:
        print(nothing_left, file=sys.stderr)
    except KeyboardInterrupt:
        if output is not None and note_of(output).exists():
            print(f"{output} holds what is done so far: the same command with --resume goes on", file=sys.stderr)
        raise


def _watched(source: Source, output: Path | None) -> bool:
    """Progress is shown to who does not see the translations themselves, nor types the sentences."""
    typed = source.path is None and sys.stdin is not None and sys.stdin.isatty()
    seen = output is None and sys.stdout is not None and sys.stdout.isatty()
    return not (typed or seen or source.sentences)


def settings(model: TrainedTranslator, source: Source, wishes: Wishes, columns: Columns) -> dict[str, Any]:
    """All that decides what the lines will be, as plain values: equal settings and equal input, equal lines."""
    asked = asdict(wishes)
    del asked["first"], asked["batch"]
    beside = {"prefix_file": source.prefixes, "require_file": source.phrases}
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in asked.items()},
        **asdict(columns),
        **{name: None if file is None else Survey.of(file).sha256 for name, file in beside.items()},
        "tag": model.tag,
        "batch": model.batch(wishes),
        "chunk": chunk_size(model, wishes),
        "device": model.device.type,
        "precision": model.engine.precision,
        "engine": None if model.engine.name == "torch" else model.engine.name,  # as files say that know no other
        "search": model.search.model_dump(mode="json"),
        "model": fingerprint(model),
    }


def fingerprint(model: TrainedTranslator) -> str:
    """Of the weights and the vocabularies."""
    digest = hashlib.sha256(f"{model.source.fingerprint} {model.target.fingerprint} {model.max_length}".encode())
    for one in model.models:
        for name, tensor in one.state_dict().items():
            digest.update(f"{name} {tuple(tensor.shape)} ".encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()
