"""Python that uses an exported translator with little more than the library that it was written for: for its README.md.
What stands here is run by tests, on folders that are written. FOLDER is where one lies; [[…]] is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jumok.text.sentencepiece import KIND as SENTENCEPIECE
from jumok.text.tokenizer import Tokenizer

CT2 = """import json
from pathlib import Path

import ctranslate2
[[import]]

folder, text = Path("FOLDER"), "The young cat sleeps."
translator = ctranslate2.Translator(str(folder))
[[open]]
names, written = (json.loads((folder / name).read_text("utf-8")) for name in [[vocabularies]])

pieces = [names[number] for number in [[cut]]]
best = translator.translate_batch([pieces], beam_size=5)[0].hypotheses[0]
numbers = [written.index(piece) for piece in best]
print([[join]])"""
ONNX_BEGIN = """import json
from pathlib import Path

import numpy as np
import onnxruntime
[[import]]

folder, text = Path("FOLDER"), "The young cat sleeps."
config = json.loads((folder / "config.json").read_text("utf-8"))
pad, start, end = (config["special_ids"][name] for name in ("pad", "start", "end"))
encoder, decoder = (onnxruntime.InferenceSession(str(folder / f"{name}.onnx")) for name in ("encoder", "decoder_step"))
[[open]]

ids = np.array([[[cut]] + [end]])
mask = np.ones_like(ids)  # 0 where a shorter text of a batch is filled up
parts = encoder.run(None, {"ids": ids, "mask": mask})
"""
TRANSFORMER = """names = [one.name for one in decoder.get_inputs()]
past = [np.zeros((1, config["groups"], 0, config["head_width"]), np.float32)] * (2 * config["layers"])
numbers = [start]
while numbers[-1] != end and len(numbers) < 2 * ids.shape[1] + 20:
    given = [np.array(numbers[-1:]), np.array([len(numbers) - 1]), mask, *parts, *past]
    log_probs, _, *new = decoder.run(None, dict(zip(names, given)))
    past = [np.concatenate(pair, axis=2) for pair in zip(past, new)]
"""
RECURRENT = """state = parts[: config["states"]]
given = dict(zip(("keys", "values"), parts[config["states"] :])) | ({"mask": mask} if config["attends"] else {})
given |= {"feed": np.zeros_like(state[0][0])} if config["feeds"] else {}
numbers = [start]
while numbers[-1] != end and len(numbers) < 2 * ids.shape[1] + 20:
    given |= {f"state_{number}": one for number, one in enumerate(state)} | {"token": np.array(numbers[-1:])}
    log_probs, *rest = decoder.run(None, given)
    rest = rest[1:] if config["attends"] else rest  # the first are the weights of the attention
    state = rest[: config["states"]]
    given |= {"feed": rest[-1]} if config["feeds"] else {}
"""
ONNX_END = """    log_probs[0, [pad, start]] = -np.inf  # these are never written
    numbers.append(int(log_probs[0].argmax()))
numbers = [number for number in numbers if number not in (start, end)]
print([[join]])"""
LIBRARY = {
    "import": "from tokenizers import Tokenizer",
    "open": 'source, target = (\n    Tokenizer.from_file(str(folder / f"tokenizer/{side}/tokenizer.json")) '
    'for side in ("source", "target")\n)',
    "cut": "source.encode(text, add_special_tokens=False).ids",
    "join": "target.decode(numbers)",
}
OWN = {  # a SentencePiece model with the ids of another file: nobody else puts these together
    "import": "from jumok.text.tokenizer import Tokenizer",
    "open": 'source, target = (Tokenizer.load(folder / "tokenizer" / side) for side in ("source", "target"))',
    "cut": "source.encode([text])[0]",
    "join": "target.decode([numbers])[0]",
}  # fmt: skip


def ct2_usage(folder: Path, source: Tokenizer, target: Tokenizer) -> str:
    """Beam search, as CTranslate2 does it."""
    shared = (folder / "shared_vocabulary.json").exists()
    files = ["shared_vocabulary.json"] * 2 if shared else ["source_vocabulary.json", "target_vocabulary.json"]
    return _filled(CT2, source, target, vocabularies=repr(tuple(files)).replace("'", '"'))


def onnx_usage(config: dict[str, Any], source: Tokenizer, target: Tokenizer) -> str:
    """Greedy search: the shortest that there is."""
    steps = RECURRENT if config.get("decoder") == "recurrent" else TRANSFORMER
    return _filled(f"{ONNX_BEGIN}\n{steps}{ONNX_END}", source, target)


def _filled(code: str, source: Tokenizer, target: Tokenizer, **others: str) -> str:
    for name, part in ((OWN if SENTENCEPIECE in (source.kind, target.kind) else LIBRARY) | others).items():
        code = code.replace(f"[[{name}]]", part)
    return code
