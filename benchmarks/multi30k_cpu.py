"""A Transformer from scratch on two CPU cores in ten minutes: Multi30k en→de, sacreBLEU on test_2016_flickr, beam 5.

    python benchmarks/multi30k_cpu.py --data ../shared/data --out results.json

The ten minutes are those of the whole `jumok train` (tokenizer, encoding, training, report). The keys were chosen on
val. Others' load on the machine is recorded; repeat until it is quiet.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time

from multi30k import files, tests
from quality import Run, compare, options

KEYS = [
    "tokenizer.kind=bpe", "tokenizer.joint=true", "tokenizer.vocabulary=4000", "data.max_length=100",
    "model.width=128", "model.heads=4", "model.feed_forward=512", "model.encoder_layers=3", "model.decoder_layers=3",
    "model.tie_embeddings=all", "model.dropout=0.1", "training.batch_tokens=2048", "training.learning_rate=0.004",
    "training.warmup=300", "training.ema=0.99", "training.label_smoothing=0.1", "training.validate_every=100000",
    "training.checkpoint_every=100000", "training.validate_sentences=100", "search.beam=5", "threads=2", "device=cpu",
]  # fmt: skip


def main() -> None:
    parser = options()
    parser.add_argument("--minutes", type=float, default=9.5, help="for the training loop; the rest comes on top")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "2"
    arguments = ["transformer-tiny", *KEYS, *chosen.set, "--minutes", str(chosen.minutes)]
    run = Run(
        "en-de-cpu",
        [*arguments, *files(chosen.data, "en", "de")],
        tests(chosen.data, "en", "de"),
        minutes=chosen.minutes + 5,
        penalties=[1.0, 1.5, 2.0],
    )
    load: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(10):
            load.append(os.getloadavg()[0])

    threading.Thread(target=watch, daemon=True).start()
    began = time.time()
    table = compare([run], chosen.runs, chosen.out)
    done.set()
    row = table[run.name]
    print(
        f"whole training {row['minutes']} minutes, {row['updates']} updates; with scoring {time.time() - began:.0f} s"
    )
    print(f"load average (2 is this run alone): median {statistics.median(load):.1f}, largest {max(load):.1f}")
    if chosen.out:
        result = json.loads(chosen.out.read_text())
        result["load"] = {"cores": os.cpu_count(), "median": statistics.median(load), "largest": max(load)}
        chosen.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
