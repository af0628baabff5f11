"""Korean→English: a Transformer on general text and LibreOffice's help and menus, scored on general.test and NTREX.

    python benchmarks/korean_english.py --data ../shared/data --out results.json

sacreBLEU and chrF, cased and detokenised. All choices on general.valid; ten translations are printed for reading.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from quality import Run, compare, options

KEYS = [
    "tokenizer.kind=bpe", "tokenizer.joint=false", "tokenizer.vocabulary=8000", "data.max_length=150",
    "model.width=256", "model.heads=4", "model.feed_forward=1024", "model.encoder_layers=4", "model.decoder_layers=3",
    "model.tie_embeddings=target", "model.dropout=0.25", "model.attention_dropout=0.1",
    "model.activation_dropout=0.1", "training.batch_tokens=8192", "training.learning_rate=0.0015",
    "training.warmup=500", "training.r_drop=1.0", "training.ema=0.999", "training.label_smoothing=0.1",
    "training.metric=bleu", "training.validate_every=500", "training.validate_sentences=1000",
    "training.checkpoint_every=100000", "training.keep=1", "search.beam=5", "search.batch=256", "threads=1",
    "exact=false",
]  # fmt: skip
CORPORA = {"general.train": 3, "lo-help": 2, "lo-ui": 1}  # batches of each in a round
READ = 10


def sides(file: Path, place: Path) -> tuple[Path, Path]:
    """The two columns as two files."""
    place.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines]
    names = [place / f"{file.name.removesuffix('.tsv.gz')}.{language}" for language in ("ko", "en")]
    for side, name in enumerate(names):
        name.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return names[0], names[1]


def main() -> None:
    parser = options()
    parser.add_argument("--minutes", type=float, default=4.6, help="for the training loop")
    chosen = parser.parse_args()
    data: Path = chosen.data / "mt-ko-en"
    corpora = [{"file": [str(data / f"{name}.tsv.gz")], "weight": weight} for name, weight in CORPORA.items()]
    keys = [f"data.train={json.dumps(corpora)}", f"data.valid.file={data / 'general.valid.tsv.gz'}"]
    found = {name: sides(data / f"{name}.tsv.gz", chosen.runs) for name in ("general.valid", "general.test")}
    found["ntrex.test"] = sides(data / "ntrex.test.tsv.gz", chosen.runs)
    arguments = ["transformer-small", *keys, *KEYS, *chosen.set, "--minutes", str(chosen.minutes)]
    compare(
        [Run("ko-en", arguments, found, minutes=chosen.minutes + 1, penalties=[1.0, 1.5, 2.0])], chosen.runs, chosen.out
    )
    source, reference = (file.read_text(encoding="utf-8").splitlines() for file in found["general.test"])
    step = len(source) // READ
    shown = source[::step][:READ]
    command = [sys.executable, "-m", "jumok", "translate", "--run", str(chosen.runs / "ko-en"), *shown]
    outputs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = list(zip(shown, outputs, reference[::step], strict=False))
    for korean, english, wanted in rows:
        print(f"\nko   {korean}\nours {english}\nref  {wanted}")
    if chosen.out:
        table = json.loads(chosen.out.read_text())
        table["read"] = [{"ko": korean, "ours": english, "reference": wanted} for korean, english, wanted in rows]
        chosen.out.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
