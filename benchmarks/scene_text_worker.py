"""A peer in its own process and its own Python: reads the crops that it is asked for, and says how long that took.

Started by scene_text_peers.py, with the Python that has rapidocr-onnxruntime and tesserocr. One JSON object a line:

    ← {"data": folder, "numbers": [crop, …]}                          these crops are decoded and kept
    ← {"engine": "rapidocr", "batch": 6, "threads": 2}                read them all
    ← {"engine": "tesseract", "psm": 8, "height": 64, "border": 16, "edge": "edge", "alphanumeric": false}
    ← {"engine": "tesseract program", …}                              the same through the program, a list of files
    → {"readings": […], "seconds": s, "processor": s of all threads}

The clock runs from decoded pixels to text: resizing, padding and decoding of the output are in, reading files is not.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import json
import os
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scene_text_data import read_crops

TESSDATA = ("/usr/share/tesseract-ocr/5/tessdata", "/usr/share/tessdata", "/opt/homebrew/share/tessdata")


@functools.cache
def recognizer(batch: int, threads: int) -> Any:
    """RapidOCR's PP-OCRv4 recogniser alone, with the settings of its own config.yaml but for threads and batch."""
    import cv2
    import rapidocr_onnxruntime
    from rapidocr_onnxruntime.ch_ppocr_rec import TextRecognizer

    cv2.setNumThreads(threads)
    model = Path(rapidocr_onnxruntime.__file__).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx"
    return TextRecognizer(
        {
            "model_path": str(model), "use_cuda": False, "use_dml": False, "intra_op_num_threads": threads,
            "inter_op_num_threads": 1, "rec_img_shape": [3, 48, 320], "rec_batch_num": batch,
        }
    )  # fmt: skip


@functools.cache
def tesseract(psm: int, alphanumeric: bool) -> Any:
    import tesserocr

    folder = os.environ.get("TESSDATA_PREFIX") or next((f for f in TESSDATA if Path(f).is_dir()), "")
    # oem 1: the LSTM alone
    engine = tesserocr.PyTessBaseAPI(path=folder + "/", lang="eng", psm=psm, oem=1)
    if alphanumeric:
        engine.SetVariable("tessedit_char_whitelist", string.ascii_letters + string.digits)
    return engine


def prepared(picture: Image.Image, height: int, border: int, edge: str) -> Image.Image:
    """As tall as Tesseract likes its lines, with room around."""
    grey = picture.convert("L")
    if height:
        wide = max(1, round(grey.width * height / grey.height))
        grey = grey.resize((wide, height), Image.Resampling.BICUBIC)
    if not border:
        return grey
    if edge == "white":
        return Image.fromarray(np.pad(np.asarray(grey), border, constant_values=255))
    return Image.fromarray(np.pad(np.asarray(grey), border, mode="edge"))


def read_with_rapidocr(pictures: list[Image.Image], batch: int, threads: int) -> list[str]:
    blue_first = [np.ascontiguousarray(np.asarray(picture)[:, :, ::-1]) for picture in pictures]
    found, _ = recognizer(batch, threads)(blue_first)
    return [text for text, _ in found]


def read_with_tesseract(
    pictures: list[Image.Image], psm: int, height: int, border: int, edge: str, alphanumeric: bool
) -> list[str]:
    engine, readings = tesseract(psm, alphanumeric), []
    for picture in pictures:
        engine.SetImage(prepared(picture, height, border, edge))
        readings.append(engine.GetUTF8Text().strip())
    return readings


def read_with_program(
    pictures: list[Image.Image], psm: int, height: int, border: int, edge: str, alphanumeric: bool
) -> list[str]:
    """All crops in one call of the program, as a list of files. They are lossless and lie in memory where it can be."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        names = []
        for number, picture in enumerate(pictures):
            names.append(f"{place}/{number}.pgm")
            prepared(picture, height, border, edge).save(names[-1])
        listed = Path(place) / "list.txt"
        listed.write_text("\n".join(names) + "\n")
        command = ["tesseract", str(listed), "stdout", "--psm", str(psm), "--oem", "1", "-l", "eng"]
        if alphanumeric:
            command += ["-c", f"tessedit_char_whitelist={string.ascii_letters + string.digits}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return [page.strip() for page in done.stdout.split("\f")[: len(pictures)]]


ENGINES = {"rapidocr": read_with_rapidocr, "tesseract": read_with_tesseract, "tesseract program": read_with_program}


def processor_time() -> float:
    """Of all threads of this process, and of the programs that it called."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def versions() -> dict[str, str]:
    """Of what is there; what is not there has no name in it."""
    found = {}
    for name in ("rapidocr-onnxruntime", "onnxruntime", "tesserocr"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if "tesserocr" in found:
        import tesserocr

        found["tesseract"] = tesserocr.tesseract_version().split()[1]
    return found


def main() -> None:
    pictures: list[Image.Image] = []
    print(json.dumps(versions()), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "data" in asked:
            wanted = read_crops(Path(asked["data"]))
            pictures = [Image.open(io.BytesIO(wanted[n].encoded)).convert("RGB") for n in asked["numbers"]]
            print(json.dumps({"crops": len(pictures)}), flush=True)
            continue
        read = ENGINES[asked.pop("engine")]
        some = pictures[: asked.pop("first", len(pictures))]
        before, began = processor_time(), time.perf_counter()
        readings = read(some, **asked)
        seconds, processor = time.perf_counter() - began, processor_time() - before
        print(json.dumps({"readings": readings, "seconds": seconds, "processor": processor}), flush=True)


if __name__ == "__main__":
    main()
