"""`--engine`: who runs the searches of a translator. All write the same words (in float32, to the last ties); they
differ in speed, and in what they can be asked. What an engine cannot do is refused, never passed over.

    torch    ours: everything; on a CPU the kernels of this house
    ct2      CTranslate2, on the run's files as it has them (RUN/engines/ct2-…)
    onnx     onnxruntime, likewise; the search is ours
    fastest  each that can do what is asked translates some sentences, and the fastest stays
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from jumok.errors import BadInput, JumokError
from jumok.interop.probe import probe_rows
from jumok.tasks.engine import Engine
from jumok.tasks.translator import Translator
from jumok.tasks.wishes import Sentence, Wishes
from jumok.training.run import RunFolder

NAMES = ("torch", "ct2", "onnx", "fastest")
TRIED = 64  # sentences
ROUNDS = 2  # the first is for getting warm

Say = Callable[[str], None]


def check_engine(name: str) -> None:
    if name not in NAMES:
        raise BadInput(f"--engine {name}: there is {', '.join(NAMES[:-1])} and {NAMES[-1]}")


def engine_of(
    name: str,
    translator: Translator,
    run: RunFolder,
    precision: str,
    wishes: Wishes,
    watched: bool,
    say: Say,
    own: Sequence[str] = (),
) -> Engine:
    """The engine of this name for a translator that was loaded from this run. What it cannot do is refused before
    anything is made for it. `watched`: it will be looked at; `own`: options by which sentences ask for something of
    their own.
    """
    check_engine(name)
    if name == "fastest":

        def make(one: str) -> Engine:
            return engine_of(one, translator, run, precision, wishes, watched, say, own)

        return _fastest(make, translator, run, wishes, say)
    if name == "torch":
        return translator.engine
    if watched:
        raise BadInput(f"--engine {name} does not show what the model looks at (--alignments). Use --engine torch")
    if name == "ct2":
        from jumok.interop.ctranslate2 import engine_folder
        from jumok.tasks import engine_ct2

        engine_ct2.refuse_together(translator.models)
        if own:
            raise BadInput(f"{own[0]}: --engine ct2 cannot do this as it is done here. Use --engine torch")
        for options in translator.asked(wishes).options(0, Sentence(""), translator.max_length):
            engine_ct2.asked_of(options)
        folder = engine_folder(run, precision, say)
        return engine_ct2.CTranslate2Engine(translator.models, translator.device, folder, precision)
    from jumok.interop.onnx_engine import engine_folder as onnx_folder
    from jumok.tasks.engine_onnx import OnnxEngine, refuse_together

    refuse_together(translator.models)
    return OnnxEngine(translator.models, translator.device, onnx_folder(run, precision, say))


def _fastest(make: Callable[[str], Engine], translator: Translator, run: RunFolder, wishes: Wishes, say: Say) -> Engine:
    rows = probe_rows(run.recipe(), translator.source, (), TRIED)
    sentences = translator.source.decode(rows)
    # what must stand in each translation may fit the user's sentences, and not these
    timed = replace(wishes, prefix="", require=())
    found: dict[str, tuple[float, Engine]] = {}
    for name in NAMES[:-1]:
        try:
            engine = make(name)
            found[name] = (seconds_of(translator, engine, sentences, timed), engine)
        except JumokError as error:  # it is not installed, or cannot do what is asked
            if name == "torch":
                raise
            say(f"--engine fastest: not {name}: {error}")
    best = min(found, key=lambda name: found[name][0])
    times = ", ".join(f"{name} {seconds:.2f} s" for name, (seconds, _) in found.items())
    say(f"--engine fastest: {best} ({len(sentences)} sentences: {times})")
    return found[best][1]


def seconds_of(translator: Translator, engine: Engine, sentences: Sequence[str], wishes: Wishes) -> float:
    """The time of a translation of these, once it is warm."""
    tried = copy(translator)
    tried.engine = engine
    seconds = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        tried.found(sentences, wishes)
        seconds = time.perf_counter() - began
    return seconds
