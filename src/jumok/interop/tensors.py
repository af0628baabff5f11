"""The tensors of a folder: one `model.safetensors`, or several with an index of which tensor lies in which.

Only safetensors are read: a pickle may run whatever its author likes. What a file says of itself is checked before the
library maps it (see safetensors_header.py), and an index can only name files of its own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.json_file import read_object
from jumok.interop.safetensors_header import check_header

ONE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack", "model.ckpt.index")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def tensor_files(folder: Path) -> dict[str, Path]:
    """Every tensor's name and the file that it is in; a safetensors file by itself will do, too."""
    if folder.suffix == ".safetensors" and folder.is_file():
        return dict.fromkeys(_names_in(folder), folder)
    if (folder / ONE_FILE).is_file():
        return dict.fromkeys(_names_in(folder / ONE_FILE), folder / ONE_FILE)
    if (folder / INDEX).is_file():
        return _indexed(folder)
    other = next((name for name in OTHERS if (folder / name).is_file()), None)
    if other is None:
        raise BadInput(f"{folder}: no weights there; {ONE_FILE} of the checkpoint is needed")
    raise BadInput(
        f"{folder}: the weights are in {other}, and files of that kind can run programs when they are read; convert it "
        "to safetensors: if you trust it, load it with the library that it is from and save it again (transformers: "
        "model.save_pretrained(FOLDER); timm: safetensors.torch.save_model(model, FILE))"
    )


def read_tensors(files: Mapping[str, Path], names: Iterable[str]) -> dict[str, Tensor]:
    """These tensors as float32."""
    wanted = set(names)
    found = {}
    for file in dict.fromkeys(files[name] for name in files if name in wanted):
        try:
            with safe_open(file, "pt") as stored:
                for name in wanted & {name for name in files if files[name] == file}:
                    found[name] = _plain(stored.get_tensor(name), f"{file}: {name}")
        except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
            raise BadInput(f"{file}: damaged ({error}); fetch the file again") from None
    return found


def not_read(names: Sequence[str]) -> list[str]:
    """A note about tensors that nothing here is made of."""
    if not names:
        return []
    more = ", …" if len(names) > 3 else ""
    one = len(names) == 1
    return [f"{len(names)} tensor{'s' * (not one)} {'is' if one else 'are'} not read: {', '.join(names[:3])}{more}"]


def _plain(tensor: Tensor, where: str) -> Tensor:
    if tensor.dtype not in FLOATS:
        raise BadInput(f"{where}: its numbers are {str(tensor.dtype).removeprefix('torch.')}; only floats can be read")
    return tensor.to(torch.float32)


def _names_in(file: Path) -> list[str]:
    check_header(file)
    try:
        with safe_open(file, "pt") as stored:
            return list(stored.keys())
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{file}: damaged ({error}); fetch the file again") from None


def _indexed(folder: Path) -> dict[str, Path]:
    index = read_object(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(part, str) for part in index.values()):
        raise BadInput(f"{folder / INDEX}: weight_map is not a table of tensors and their files; fetch the file again")
    known = {}
    for part in dict.fromkeys(index.values()):
        if not _is_name(part):  # out of the folder leads no way
            raise BadInput(f"{folder / INDEX}: {part[:80]!r} is not the name of a safetensors file beside it")
        if not (folder / part).is_file():
            raise BadInput(f"{folder / part}: is missing ({INDEX} names it); fetch it too")
        if not is_inside(folder, folder / part):
            raise BadInput(f"{folder / part}: a link that leads out of the folder; put the file itself there")
        known[part] = set(_names_in(folder / part))
    for name, part in index.items():
        if name not in known[part]:
            raise BadInput(f"{folder / part}: has no tensor {name}, which {INDEX} looks for there; fetch both again")
    return {name: folder / part for name, part in index.items()}


def _is_name(part: str) -> bool:
    plain = part == Path(part).name and "\\" not in part and part.isprintable()
    return plain and part.endswith(".safetensors") and len(part.encode()) < 256


def is_inside(folder: Path, part: Path) -> bool:
    """In the folder itself; the cache of Hugging Face has links to its `blobs`, two folders up."""
    place, home = part.resolve().parent, folder.resolve()
    return place == home or (home.parent.name == "snapshots" and place == home.parent.parent / "blobs")
