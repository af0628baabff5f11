"""`jumok attend` for a run that reads words: films, sheets, numbers, drift; what cannot be is refused with words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from looking_words import blots
from PIL import Image
from small_fonts import FONTS, PLAIN

from jumok import api
from jumok import recipe as recipes
from jumok.cli.attend_pictures import attend_pictures
from jumok.errors import BadInput

MODEL = {"kind": "recognizer", "channels": 1, "image": [32, 64], "patch": [16, 8], "width": 24, "heads": 2,
         "layers": 1, "feed_forward": 32, "decoder_heads": 2, "decoder_layers": 2, "max_length": 4}  # fmt: skip
RENDER = {"fonts": [str(FONTS / "DejaVuSans.ttf")], "size": 24, **PLAIN, "held_out_fonts": 0,
          "texts": {"words": 0, "letters": 1, "numbers": 0, "empty": 0}}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("attend")
    (place / "pictures").mkdir()
    for number, size in enumerate([(20, 60), (32, 64), (50, 40)]):
        pixels = blots(1, size, 3)[0].permute(1, 2, 0).contiguous().numpy()
        Image.fromarray(pixels).save(place / "pictures" / f"{number}.png")
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    kinds = {"ctc": ("recurrent", "ctc"), "writer": ("vit", "transformer"), "permuted": ("vit", "permuted")}
    for name, (encoder, decoder) in kinds.items():
        raw: dict[str, Any] = {
            "task": "recognition", "threads": 1, "device": "cpu", "charset": {"sets": ["digits"]}, "render": RENDER,
            "data": {"train": {"rendered": "words"}, "valid": {"rendered": "words", "pairs": 4}, "resize": "squash"},
            "model": {**MODEL, "encoder": encoder, "decoder": decoder},
            "training": {"batch_images": 4, "updates": 2, "warmup": 1, "metric": "accuracy"},
        }  # fmt: skip
        api.train(recipes.check(raw, "test"), place / name, quiet=True, report=False)
    return place


def picture(folder: Path, number: int = 0) -> Path:
    return folder / "pictures" / f"{number}.png"


@pytest.mark.parametrize("name", ["ctc", "writer", "permuted"])
def test_numbers_and_lines(folder: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attend_pictures(folder / name, [picture(folder), picture(folder, 2)], device="cpu")
    shown = capsys.readouterr().out
    assert str(picture(folder)) in shown
    assert ("CTC: the columns where it was written" in shown) == (name == "ctc")
    attend_pictures(folder / name, [folder / "pictures"], as_json=True, device="cpu")
    told = json.loads(capsys.readouterr().out)
    read = api.load(folder / name, "cpu").read([picture(folder, number) for number in range(3)])
    assert [one["text"] for one in told["pictures"]] == [one.text for one in read]
    assert [one["size"] for one in told["pictures"]] == [[20, 60], [32, 64], [50, 40]]
    out = tmp_path / "x.html"
    attend_pictures(folder / name, [picture(folder, 1)], out, device="cpu")
    assert f"written: {out}" in capsys.readouterr().out
    assert ("This model has no attention" in out.read_text(encoding="utf-8")) == (name == "ctc")


def test_pictures_are_written(folder: Path, tmp_path: Path) -> None:
    for ending in ("png", "svg", "json"):
        attend_pictures(folder / "writer", [picture(folder)], tmp_path / f"x.{ending}", 1, 0, device="cpu")
    attend_pictures(folder / "writer", [picture(folder)], tmp_path / "dark.png", dark=True, device="cpu")
    with Image.open(tmp_path / "x.png") as made:
        made.verify()
    told = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert told["pictures"][0]["about"] == "attention of the decoder, layer 1, head 0"


@pytest.mark.parametrize("name", ["ctc", "permuted"])
def test_drift(folder: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "drift.json"
    attend_pictures(folder / name, [], out, drift=30, device="cpu")
    shown = capsys.readouterr().out
    assert "30 rendered words" in shown
    assert f"written: {out}" in shown
    attend_pictures(folder / name, [], drift=30, as_json=True, device="cpu")
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(out.read_text(encoding="utf-8"))
    assert told["words"] == 30
    assert [one["position"] for one in told["positions"]] == [1, 2, 3, 4]
    attend_pictures(folder / name, [], drift=30, seed=2, as_json=True, device="cpu")
    assert json.loads(capsys.readouterr().out) != told


def test_what_cannot_be(folder: Path, tmp_path: Path) -> None:
    def refused(match: str, name: str = "writer", pictures: Any = None, **keys: Any) -> None:
        with pytest.raises(BadInput, match=match):
            attend_pictures(folder / name, [picture(folder)] if pictures is None else pictures, device="cpu", **keys)

    refused(r"--layer 0: a CTC model has no decoder", "ctc", layer=0)
    refused(r"--head 1: a CTC model", "ctc", head=1)
    refused(r"--layer 2: .*layers 0 to 1", layer=2)
    refused(r"--head 5: ", head=5)
    refused(r"broken\.png: a broken PNG", pictures=[picture(folder), folder / "broken.png"])
    refused("name a picture", pictures=[])
    refused("nowhere", pictures=[folder / "nowhere.png"])
    refused("more than 24 pictures", pictures=[picture(folder)] * 25)
    refused(r"none of \.html", out=tmp_path / "x.gif")
    refused("--dark is for pictures", out=tmp_path / "x.html", dark=True)
    refused("renders its own words", drift=5)
    refused("1 at least", pictures=[], drift=0)
    refused(r"not \.json", pictures=[], drift=5, out=tmp_path / "x.png")
    refused(r"--layer 0: a CTC", "ctc", pictures=[], drift=5, layer=0)
