"""How far the attention of a Transformer is from the alignments that people (or the grammar) made: AER, 0 is perfect.

    python benchmarks/alignment.py --runs runs/alignment --out benchmarks/results/alignment.json
    python benchmarks/alignment.py --real --data ../shared/data --runs runs/alignment --out …/alignment-real.json

The first trains two Transformers on the embedded grammar (en→fr, fr→en); layer, head, shift and reading are chosen on
its valid split, and AER is that of its test split. What both of them say together of the training pairs (no gold) then
guides one head of two further models (`training.align`, Garg et al. 2019). The second trains on real sentences (Tatoeba
and Multi30k) and is scored on the 447 sentence pairs of the Canadian Hansards (Och and Ney 2000; Mihalcea and Pedersen
2003), which are of another world: parliament instead of dogs and breakfasts. There is no other gold to choose on, so
each half of the 447 is read by what was chosen on the other half. Runs that are there already are not trained again,
those that were stopped go on, and those with other settings are refused.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from jumok import api
from jumok.data import grammar
from jumok.data.pharaoh import format_pharaoh
from jumok.data.readers import read_lines
from jumok.files import replace_file
from jumok.inspect.aligner import Aligner
from jumok.inspect.alignment import AlignmentScore, Gold, alignment_error_rate, read_gold
from jumok.inspect.heads import every_reading, score_views
from jumok.inspect.symmetric import METHODS, turned
from jumok.inspect.view import View, every_view
from jumok.recipe import Recipe, read
from jumok.training.comparison import flat, summarise
from jumok.training.resuming import with_absolute_paths
from jumok.training.run import RunFolder

# As the demo's, with dropout: a decoder that can guess a word ("pas" after "n'a") from what it wrote looks elsewhere
GRAMMAR = [
    "model.dropout=0.2", "model.attention_dropout=0.1", "model.target_word_dropout=0.3", "training.updates=1700",
    "training.validate_every=1700", "training.checkpoint_every=1700", "threads=1",
]  # fmt: skip
GUIDED = ["training.align=0.3", "training.align_layer=1"]
REAL = [
    "tokenizer.kind=bpe", "tokenizer.vocabulary=8000", "tokenizer.joint=false", "tokenizer.lowercase=true",
    "data.max_length=100", "model.tie_embeddings=target", "model.dropout=0.1", "model.decoder_layers=2",
    "training.batch_tokens=4096", "training.learning_rate=0.002", "training.warmup=400", "training.validate_every=1000",
    "training.validate_sentences=100", "training.checkpoint_every=1000", "training.keep=1",
]  # fmt: skip
DIRECTIONS = ("en-fr", "fr-en")
Pairs = tuple[list[str], list[str], list[Gold]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="Real sentences and the Hansards instead of the grammar.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=Path, default=Path("runs/alignment"), help="Where the runs are, or will be.")
    parser.add_argument("--out", type=Path, help="Write the numbers here, as JSON.")
    parser.add_argument("--minutes", type=float, help="Train so long instead of the number of updates.")
    parser.add_argument("--updates", type=int, help="Another number of updates.")
    parser.add_argument("--sentences", type=int, default=1000, help="Of the grammar's valid and test split.")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="Other keys of the recipe.")
    chosen = parser.parse_args()
    extra = [*chosen.set, *([f"training.updates={chosen.updates}"] if chosen.updates else [])]
    results = (real if chosen.real else of_grammar)(chosen, extra)
    for row in results["rows"]:
        print(f"{row['name']:44} AER {row['error_rate']:.4f}  precision {row['precision']:.3f}  {row['of']}")
    if chosen.out:
        chosen.out.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- the grammar


def of_grammar(chosen: argparse.Namespace, extra: Sequence[str]) -> dict[str, Any]:
    models, about = {}, {}
    for direction in DIRECTIONS:
        keys = [*GRAMMAR, f"data.train.grammar={direction}", f"data.valid.grammar={direction}", *extra]
        folder = chosen.runs / f"grammar-{direction}"
        models[direction], about[direction] = trained("demo-transformer", keys, folder, chosen.minutes)
    valid, test = (sentences_of_grammar(split, chosen.sentences) for split in ("valid", "test"))
    rows = [one for direction in DIRECTIONS for one in of_model(direction, models[direction], direction, valid, test)]
    together = Aligner.best_together(models["en-fr"], models["fr-en"], *valid, list(METHODS))
    rows += [row(f"both directions, {method}", aligner, test) for method, aligner in together.items()]
    best = min(together.values(), key=lambda aligner: scored(aligner, valid).error_rate)
    links = links_of_training(best, chosen.runs)
    for direction, file in links.items():
        keys = [*GRAMMAR, *GUIDED, f"data.train.grammar={direction}", f"data.valid.grammar={direction}"]
        keys += [f"data.train.alignments={file.absolute()}", *extra]
        name = f"guided-{direction}"
        model, about[name] = trained("demo-transformer", keys, chosen.runs / name, chosen.minutes)
        rows += of_model(f"{direction}, guided by both", model, direction, valid, test)
    return {"test": f"{chosen.sentences} sentences of the grammar's test split", "runs": about, "rows": rows}


def of_model(
    name: str, model: api.TrainedTranslator, direction: str, valid: Pairs, test: Pairs
) -> list[dict[str, Any]]:
    """One model, read in four ways, each chosen on valid."""
    valid, test = (pairs if direction == "en-fr" else reversed_pairs(pairs) for pairs in (valid, test))
    views = every_reading(every_view(model.model))
    rates = [score.error_rate for score in score_views(model, *valid, views=views)]

    def best(fits: Callable[[View], bool]) -> Aligner:
        _, number = min((rate, number) for number, rate in enumerate(rates) if fits(views[number]))
        return Aligner(model, views[number])

    aligners = {
        "the default view": Aligner(model),
        "best head, its strongest words": best(lambda view: view.head is not None and view.reading == "rows"),
        "best head and reading": best(lambda view: view.head is not None),
        "best view and reading": best(lambda view: True),
    }
    return [row(f"{name}, {how}", aligner, test) for how, aligner in aligners.items()]


def links_of_training(aligner: Aligner, runs: Path) -> dict[str, Path]:
    """What the models say of the pairs that they learned from, as files: `jumok align` would write the same."""
    files = {direction: runs / f"links-{direction}.align" for direction in DIRECTIONS}
    if not all(file.exists() for file in files.values()):
        corpus = read("demo-transformer").data.train[0]
        sources, targets, _ = sentences_of_grammar("train", corpus.pairs)
        found = aligner.align(sources, targets)
        for direction, file in files.items():
            lines = [format_pharaoh(one if direction == "en-fr" else turned(one)) for one in found]
            replace_file(file, "".join(f"{line}\n" for line in lines))
    return files


def sentences_of_grammar(split: str, count: int) -> Pairs:
    pairs = list(grammar.pairs("en", "fr", split, count))
    gold = [(set(pair.sure), set(pair.possible)) for pair in pairs]
    return [pair.source for pair in pairs], [pair.target for pair in pairs], gold


# ---------------------------------------------------------------- real sentences


def real(chosen: argparse.Namespace, extra: Sequence[str]) -> dict[str, Any]:
    prepared = chosen.runs / "data"
    prepared.mkdir(parents=True, exist_ok=True)
    files = {side: prepared / f"train.{side}" for side in ("en", "fr")}
    if not all(file.exists() for file in files.values()):
        texts = list(training_pairs(chosen.data))
        for number, file in enumerate(files.values()):
            file.write_text("".join(f"{pair[number]}\n" for pair in texts), encoding="utf-8", newline="\n")
    models, about = {}, {}
    for direction in DIRECTIONS:
        source, target = direction.split("-")
        keys = [
            *REAL, f"data.train.source={files[source]}", f"data.train.target={files[target]}",
            "data.train.grammar=null", "data.valid=null", "data.hold_out=500", *extra,
        ]  # fmt: skip
        folder = chosen.runs / f"real-{direction}"
        models[direction], about[direction] = trained("transformer-tiny", keys, folder, chosen.minutes)
    gold = hansards(chosen.data)
    rows = [folded(f"{direction}, best view", models, direction, gold, None) for direction in DIRECTIONS]
    rows += [row("en-fr, the default view", Aligner(models["en-fr"]), gold)]
    rows += [folded(f"both directions, {method}", models, "en-fr", gold, method) for method in METHODS]
    test = "447 sentences of the Hansards; choices are made on the other half each"
    return {"test": test, "runs": about, "rows": rows}


def training_pairs(data: Path) -> Iterator[tuple[str, str]]:
    lines = (line.split("\t")[:2] for line in read_lines(data / "mt-en-fr" / "fra.tsv.gz"))
    captions = zip(*(read_lines(data / "multi30k" / f"train.{side}.gz") for side in ("en", "fr")), strict=True)
    for english, french in chain(lines, captions):
        yield hansard_form(english, "en"), hansard_form(french, "fr")


CONTRACTED = {
    "fr": [
        (r"\b([Ll]|[Dd]|[Cc]|[Nn]|[Ss]|[Jj]|[Mm]|[Tt]|[Qq]u|[Jj]usqu|[Ll]orsqu|[Pp]uisqu|[Qq]uoiqu)['’]", r"\1e "),
        (r"\b([Dd])u\b", r"\1e le"),
        (r"\b([Dd])es\b", r"\1e les"),
        (r"\b([Aa])u\b", "à le"),
        (r"\b([Aa])ux\b", "à les"),
    ],
    "en": [
        (r"\b([Ww])on['’]t\b", r"\1ill not"),
        (r"\b([Cc])an['’]t\b", r"\1annot"),
        (r"n['’]t\b", " not"),
        (r"\b(I)['’]m\b", r"\1 am"),
        (r"['’]re\b", " are"),
        (r"['’]ll\b", " will"),
        (r"['’]ve\b", " have"),
    ],
}


def hansard_form(text: str, language: str) -> str:
    """Cut into words as the gold alignments are: punctuation and hyphens alone, contractions spelled out."""
    for pattern, instead in CONTRACTED[language]:
        text = re.sub(pattern, instead, text)
    return " ".join(re.findall(r"['’]s\b|[Aa]ujourd['’]|\w+|[^\w\s]", text))


def hansards(data: Path) -> Pairs:
    lines = (data / "alignments" / "enfr.src-tgt").read_text(encoding="utf-8").splitlines()
    sides = [line.split("|||") for line in lines]
    sources, targets = [side[0].strip() for side in sides], [side[1].strip() for side in sides]
    return sources, targets, read_gold(data / "alignments" / "enfr.gold", sources, targets, one_based=True)


def folded(
    name: str, models: dict[str, api.TrainedTranslator], direction: str, gold: Pairs, method: str | None
) -> dict[str, Any]:
    """Each half read by what was chosen on the other."""
    pairs = gold if direction == "en-fr" else reversed_pairs(gold)
    other = models["fr-en" if direction == "en-fr" else "en-fr"] if method else None
    total, names = AlignmentScore(), []
    for half in (0, 1):
        measured, chosen_on = [part[half::2] for part in pairs], [part[1 - half :: 2] for part in pairs]
        aligner = Aligner.best(models[direction], *chosen_on, reverse=other, method=method or "union")
        total += scored(aligner, measured)
        names.append(aligner.name)
    return {"name": name, **total.to_json(), "of": " | ".join(names)}


# ---------------------------------------------------------------- both


def trained(
    recipe: str, keys: Sequence[str], folder: Path, minutes: float | None
) -> tuple[api.TrainedTranslator, dict[str, Any]]:
    """A run: trained where it is not there, gone on with where it was stopped; one with other settings is refused."""
    asked, run, seconds = read(recipe, keys), RunFolder(folder), None
    begun = run.recipe_file.is_file()
    if begun:
        check_same(run, asked, minutes)
    if not begun or summarise(folder).state != "done":
        start = time.process_time()
        told = minutes if run.pointed("last") is None else None  # the time is told once
        api.train(None if begun else asked, folder, resume=begun, minutes=told, report=False)
        seconds = None if begun else round(time.process_time() - start)  # a part would say nothing
    summary, shipped = summarise(folder), flat(read(recipe).model_dump(mode="json"))
    own = {key: value for key, value in summary.keys.items() if value != shipped.get(key)}
    about = {"recipe": recipe, "keys": own, "updates": summary.updates, "minutes": summary.minutes}
    return api.load_translator(folder), {**about, "cpu_seconds": seconds}


def check_same(run: RunFolder, asked: Recipe, minutes: float | None) -> None:
    """A run is the answer only to what it was trained for. (What `auto` came to is the run's own.)"""
    before, now = (flat(one.model_dump(mode="json")) for one in (run.recipe(), with_absolute_paths(asked)))
    differing = [key for key in before | now if before.get(key) != now.get(key) != "auto"]
    newest = run.pointed("last")
    if newest is not None:
        state = json.loads((run.checkpoints / f"step-{newest}" / "state.json").read_text(encoding="utf-8"))
        differing += ["--minutes"] if state.get("minutes") != minutes else []
    if differing:
        sys.exit(
            f"{run.path} was trained with other settings ({', '.join(differing)}): choose another --runs, or remove it"
        )


def reversed_pairs(pairs: Pairs) -> Pairs:
    sources, targets, gold = pairs
    turned = [({(j, i) for i, j in sure}, {(j, i) for i, j in possible}) for sure, possible in gold]
    return targets, sources, turned


def scored(aligner: Aligner, pairs: Sequence[Any]) -> AlignmentScore:
    sources, targets, gold = pairs
    links = aligner.align(sources, targets)
    return alignment_error_rate(links, [sure for sure, _ in gold], [possible for _, possible in gold])


def row(name: str, aligner: Aligner, pairs: Pairs) -> dict[str, Any]:
    return {"name": name, **scored(aligner, pairs).to_json(), "of": aligner.name}


if __name__ == "__main__":
    main()
