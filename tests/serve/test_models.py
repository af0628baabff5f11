"""Runs under names: which there are, which can do what, and what is refused before anything is served."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
import torch
from image_runs import image_run
from looping import looping
from seeded import seed as seed
from served import picture

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.serve.computing import ClassifyImage
from jumok.serve.models import Models, Unknown
from jumok.serve.translating import TranslationWorker
from jumok.tasks.wishes import Wishes
from jumok.training.run import RunFolder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Models:
    pictures = image_run(tmp_path_factory.mktemp("runs") / "my-shapes")
    return Models.load([f"french={api.packaged_run()}", str(pictures.path)], "cpu")


def test_runs_are_found_by_name_and_by_task(both: Models) -> None:
    assert both.names == ["french", "my-shapes"]
    assert [one.task for one in both] == ["translation", "vision"]
    assert both.get(None, "translation") is both.get("french", ("translation", "vision"))
    assert both.get(None, ("classification", "vision")).name == "my-shapes"
    with pytest.raises(Unknown, match=r'no model "frensh".* Did you mean "french"') as told:
        both.get("frensh", "translation")
    assert told.value.names == ("french",)
    assert isinstance(told.value, LookupError)
    with pytest.raises(Unknown, match=r"has learned vision, not translation\. There is: french"):
        both.get("my-shapes", "translation")
    with pytest.raises(Unknown, match="no model here has learned tagging"):
        both.get(None, "tagging")
    with pytest.raises(Unknown, match="no model"):
        both.get("../../etc/passwd" * 100, "translation")


def test_each_tells_about_itself_in_plain_values(both: Models) -> None:
    french, shapes = (json.loads(json.dumps(one.about())) for one in both)
    assert french["source"] == "en"
    assert french["target"] == "fr"
    assert french["engine"] == "torch"
    assert french["max_tokens"] == 256
    assert french["parameters"] > 100_000
    assert shapes["labels"] == ["고양이", "dog", "cow"]
    assert both.get("french", "translation").languages == ("en", "fr")
    assert "/" not in json.dumps([french, shapes])  # nothing about this machine's folders


def test_all_start_answer_and_end(tmp_path: Path) -> None:
    run = image_run(tmp_path / "shapes")
    models = Models.load([str(run.path), f"fr={api.packaged_run()}"], "cpu", threads=1)
    assert torch.get_num_threads() == 1

    async def main() -> None:
        models.start(asyncio.get_running_loop())
        translating = models.get("fr", "translation").worker
        assert isinstance(translating, TranslationWorker)
        texts = translating.accept(["The cat sleeps."], Wishes())
        seen = models.get(None, "vision").worker.accept([ClassifyImage(picture())])  # type: ignore[arg-type, list-item]
        await models.drain()
        assert texts[0].result()[0].text == api.load_translator(None, "cpu").translate(["The cat sleeps."])[0]
        assert seen[0].result().label in {"고양이", "dog", "cow"}  # type: ignore[union-attr]
        models.close()
        assert not any(one.worker.alive for one in models)

    looping(main())


def test_names_are_checked_before_anything_is_loaded(tmp_path: Path) -> None:
    here = str(api.packaged_run())
    for spec in ("a b=x", "=x", "../x=y", "é=x", f"{'a' * 101}=x", "-a=x"):
        with pytest.raises(BadInput, match="no name"):
            Models.load([spec])
    with pytest.raises(BadInput, match="the folder is missing"):
        Models.load(["name="])
    with pytest.raises(BadInput, match='two runs have the name "a"'):
        Models.load([f"a={here}", f"a={here}"])
    with pytest.raises(BadInput, match="no run folder"):
        Models.load([str(tmp_path / "nothing")])
    with pytest.raises(BadInput, match='no model "fr"'):
        Models.load([here], languages={"fr": "en-fr"})
    with pytest.raises(BadInput, match="source and target"):
        Models.load([f"fr={here}"], languages={"fr": "french"})
    with pytest.raises(BadInput, match="--engine"):
        Models.load([here], engine="none")
    with pytest.raises(BadInput, match="--threads 0"):
        Models.load([here], threads=0)


def test_a_folder_may_have_an_equals_sign(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    shutil.copytree(api.packaged_run(), folder)
    with pytest.raises(BadInput, match="Say what it shall be called"):
        Models.load([str(folder)])
    assert Models.load([f"x={folder}"], "cpu", languages={"x": "en-fr"}).names == ["x"]


def test_options_that_nothing_can_follow_are_refused(tmp_path: Path) -> None:
    run = str(image_run(tmp_path / "shapes").path)
    with pytest.raises(BadInput, match="--precision int8"):
        Models.load([run], "cpu", precision="int8")
    with pytest.raises(BadInput, match="--engine ct2 is for runs that translate"):
        Models.load([run], "cpu", engine="ct2")
    with pytest.raises(BadInput, match="languages are for translators"):
        Models.load([run], "cpu", languages={"shapes": "en-fr"})
    other = RunFolder.create(tmp_path / "text", recipes.read("lstm-lm", ["data.train.grammar=en"]))
    with pytest.raises(BadInput, match="has learned language, which is not served"):
        Models.load([str(other.path)])
    with pytest.raises(BadInput, match="nothing to serve"):
        Models([])
