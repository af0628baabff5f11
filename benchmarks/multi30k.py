"""Quality of the recurrent line on Multi30k de→en: trained for some minutes on one GPU, scored on test_2016_flickr.

    python benchmarks/multi30k.py --data ../shared/data --out results.json [NAME …]

The figure that counts is sacreBLEU, cased and detokenised (its signature is printed). Beside it stands BLEU lower-cased
and tokenised, the form in which the well-known tutorial ladder reports 13.8 (LSTM), 20.6 (GRU) and 28.3 (Bahdanau).
"""

from __future__ import annotations

from pathlib import Path

from quality import Run, compare, options

COMMON = [
    "tokenizer.kind=bpe", "tokenizer.joint=true", "tokenizer.vocabulary=8000", "data.max_length=100",
    "model.width=1024", "model.embedding=512", "model.dropout=0.5", "model.tie_embeddings=true",
    "training.batch_tokens=4096", "training.label_smoothing=0.1", "training.metric=bleu",
    "training.validate_every=400", "training.validate_sentences=1014", "training.checkpoint_every=100000",
    "training.keep=1", "search.beam=10", "search.length_penalty=0.8", "search.batch=256", "threads=1",
]  # fmt: skip
RECIPES: dict[str, list[str]] = {
    # without attention: the final state is all the decoder gets
    "rnn": ["rnn", "model.layers=1", "model.dropout=0.3", "training.learning_rate=0.0005", "training.updates=4000"],
    "gru": ["gru", "model.layers=1", "training.learning_rate=0.001", "training.updates=4500"],
    "lstm-two": ["lstm", "model.layers=2", "training.learning_rate=0.001", "training.updates=4500"],
    # with attention
    "bahdanau": ["lstm-bahdanau", "model.layers=1", "training.learning_rate=0.001", "training.updates=3600"],
    "luong-separate": [
        "lstm-luong", "model.layers=2", "tokenizer.joint=false", "tokenizer.vocabulary=5000",
        "training.learning_rate=0.001", "training.updates=4500",
    ],
}  # fmt: skip


def files(data: Path, source: str, target: str) -> list[str]:
    """The options of `jumok train` that name the corpus."""
    named = {"source": f"train.{source}", "target": f"train.{target}"}
    named |= {"valid-source": f"val.{source}", "valid-target": f"val.{target}"}
    return [part for option, file in named.items() for part in (f"--{option}", str(data / "multi30k" / f"{file}.gz"))]


def tests(data: Path, source: str, target: str) -> dict[str, tuple[Path, Path]]:
    return {
        split: (data / "multi30k" / f"{split}.{source}.gz", data / "multi30k" / f"{split}.{target}.gz")
        for split in ("val", "test_2016_flickr")
    }


def main() -> None:
    chosen = options().parse_args()
    runs = [
        Run(
            name,
            [recipe, *COMMON, *keys, *chosen.set, *files(chosen.data, "de", "en")],
            tests(chosen.data, "de", "en"),
            group=name.partition("-")[0],
            evaluate=["--tutorial"],
        )
        for name, (recipe, *keys) in RECIPES.items()
        if not chosen.names or name in chosen.names
    ]
    compare(runs, chosen.runs, chosen.out)


if __name__ == "__main__":
    main()
