"""What each engine writes beside PyTorch in float32: identical translations (beam 5) and BLEU, float32 and int8.

    python benchmarks/engines_agreement.py --run DIR [--source FILE --target FILE] [--lines 1000] [--out NAME]

The run in results/engines-agreement.md: `jumok train transformer-tiny tokenizer.kind=bpe tokenizer.joint=true
tokenizer.vocabulary=4000 model.width=256 model.heads=4 model.feed_forward=1024 model.encoder_layers=3
model.decoder_layers=3 model.tie_embeddings=all training.batch_tokens=2048 training.learning_rate=0.002
training.warmup=300 training.ema=0.99 search.beam=5 --minutes 12` on Multi30k, English to German, two cores.

Without files: sentences of the embedded grammar, which the run has not seen. A translation that differs where rounding
decides (two candidates closer than 1e-5, interop/ties.py) is counted as a tie, apart.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import sacrebleu
import torch

from jumok import api
from jumok.data import grammar
from jumok.interop.engines import engine_of
from jumok.interop.ties import tied
from jumok.tasks.translator import Translation
from jumok.tasks.wishes import Wishes

BEAM = 5
ENGINES = [("torch", "float32"), ("ct2", "float32"), ("onnx", "float32"), ("ct2", "int8"), ("onnx", "int8")]


def pairs(source: Path | None, target: Path | None, count: int) -> tuple[list[str], list[str]]:
    if source is not None and target is not None:
        sides = (file.read_text(encoding="utf-8").split("\n")[:count] for file in (source, target))
        found = [(one, other) for one, other in zip(*sides, strict=True) if one.strip()]
    else:
        found = [(pair.source, pair.target) for pair in grammar.pairs("en", "fr", "test", count)]
    return [one for one, _ in found], [other for _, other in found]


def ties_among(model: Any, texts: list[str], here: list[Translation], there: list[Translation], wishes: Wishes) -> int:
    asked, rows = model.asked(wishes), model.cut(texts)
    places = [place for place in range(len(texts)) if here[place].ids != there[place].ids]
    jobs = [job for place in places for job in model.jobs(asked, place, _sentence(texts[place]), rows[place])]
    return sum(tied(model.model, job.source, job.options) for job in jobs)


def _sentence(text: str) -> Any:
    from jumok.tasks.wishes import Sentence

    return Sentence(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts, references = pairs(options.source, options.target, options.lines)
    model, wishes = api.load_translator(options.run, "cpu"), Wishes(beam=BEAM, too_long="truncate")
    result: dict[str, Any] = {"sentences": len(texts), "beam": BEAM, "threads": torch.get_num_threads(), "engines": {}}
    lines = ["| engine | precision | identical | ties | BLEU | Δ |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    expected: list[Translation] = []
    for name, precision in ENGINES:
        model.engine = engine_of(name, model, model.run, precision, wishes, False, print)
        found = [one[0] for one in model.found(texts, wishes)]
        expected = expected or found
        same = sum(here.ids == there.ids for here, there in zip(expected, found, strict=True))
        ties = ties_among(model, texts, expected, found, wishes) if precision == "float32" else None
        bleu = sacrebleu.corpus_bleu([one.text for one in found], [references]).score
        result["engines"][f"{name} {precision}"] = {"same": same, "ties": ties, "BLEU": bleu}
        change = bleu - result["engines"]["torch float32"]["BLEU"]
        told = "" if ties is None else str(ties)
        lines.append(f"| {name} | {precision} | {same / len(texts):.1%} | {told} | {bleu:.2f} | {change:+.2f} |")
        print(lines[-1], flush=True)
    text = f"# Engines beside PyTorch, {len(texts):,} sentences, beam {BEAM}\n\n" + "\n".join(lines) + "\n"
    if options.out is not None:
        options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        options.out.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
