"""How many distinct pairs the embedded grammar yields: counted, not estimated.

python benchmarks/grammar_size.py [--pairs 1000000] [--seeds 3] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path

from jumok.data import grammar


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000, help="drawn from each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seen: set[bytes] = set()
    counts = []
    for seed in range(1, options.seeds + 1):
        for pair in grammar.pairs("en", "fr", "train", options.pairs, seed):
            seen.add(blake2b(f"{pair.source}\t{pair.target}".encode(), digest_size=8).digest())
        counts.append(len(seen))
        print(f"{seed * options.pairs:,} pairs from {seed} seed(s): {len(seen):,} distinct", flush=True)
    words = {language: len(grammar.vocabulary(language)) for language in grammar.LANGUAGES}
    print(f"content words: {words}")
    if options.out:
        result = {"drawn": options.pairs * options.seeds, "distinct": counts, "words": words}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
