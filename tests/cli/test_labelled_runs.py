"""Training, examining, listing and importing runs that read texts: what is wrong is named, and nothing is begun."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from asked import Ask, Asked, refused
from forked import fork_instead
from in_process import try_in_process

from jumok.cli.main import run as command
from jumok.training.doctor import session

SIZE = ["model.width=16", "model.heads=2", "model.layers=1", "model.feed_forward=32"]
KEYS = [
    "training.updates=4", "threads=1", "training.validate_every=2", "training.checkpoint_every=2", "device=cpu",
    "training.batch_tokens=256", "training.warmup=2",
]  # fmt: skip
GRAMMAR = ["data.train.pairs=60", "data.valid.pairs=20"]
WORDS = ["red", "green", "blue", "cat", "dog", "sun", "sea"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("bert") / "bert"
    assert command(["train", "bert-tiny", *SIZE, *KEYS, *GRAMMAR, "--run", str(run)]) == 0
    return run


def write_labels(file: Path, labels: list[str], examples: int = 40, seed: int = 0) -> Path:
    draw = random.Random(seed)
    rows = [f"{' '.join(draw.choices(WORDS, k=4))}\t{labels[place % len(labels)]}\n" for place in range(examples)]
    file.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    return file


def test_examples_that_cannot_be_learned_from(ask: Ask, tmp_path: Path) -> None:
    run, keys = tmp_path / "run", [*SIZE, *KEYS]
    good = write_labels(tmp_path / "good.tsv", ["yes", "no"])

    def train(recipe: str, *options: object) -> Asked:
        asked = ask("train", recipe, *keys, *options, "--run", run)
        assert not run.exists()
        return asked

    other = write_labels(tmp_path / "other.tsv", ["yes", "perhaps"], 4)
    refused(train("classify", "--train", good, "--valid", other), "other.tsv, line 3", '"perhaps" was never seen')
    one = write_labels(tmp_path / "one.tsv", ["yes"])
    refused(train("classify", "--train", one), "data.train", 'only one label ("yes")')
    for weights, word in {"'yes': 1, maybe: 2": '"maybe" has no example', "yes: 1": "in quotes"}.items():
        asked = train("classify", "--train", good, f"training.class_weights={{{weights}}}")
        refused(asked, "training.class_weights", word)
    asked = train("classify", "--train", good, "training.class_weights=balancd")
    refused(asked, "training.class_weights: it must be 'none' or 'balanced', or a mapping {key: value}")
    assert "literal" not in asked[2]
    assert "dict[" not in asked[2]
    refused(train("tag", "--train", good), "good.tsv", "looks like a table of texts", "A CoNLL file has")
    broken = tmp_path / "broken.tsv"
    broken.write_bytes(b"text\tlabel\nred\tyes\nbl\xffue\tno\n")
    refused(train("classify", "--train", broken), "broken.tsv, line 3, byte 3", "UTF-8")
    tags = tmp_path / "tags.jsonl"
    rows = [{"words": ["a", "b"], "tags": ["X", "Y"]}, {"words": ["a", "b", "c"], "tags": ["X", "Y"]}]
    tags.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    refused(train("tag", "--train", tags), "tags.jsonl, line 2", "3 words and 2 tags")
    answers = {"text": ["dog"], "answer_start": [4]}
    question = {"id": "q7", "question": "who sat?", "context": "the cat sat", "answers": answers}
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps(question) + "\n", encoding="utf-8")
    refused(
        train("answer", "--train", questions), "questions.jsonl, line 1", '"dog" is not at 4', "nowhere in the context"
    )


def test_labels_that_are_numbers_have_weights(ask: Ask, tmp_path: Path) -> None:
    data = write_labels(tmp_path / "data.tsv", ["0", "1"])
    keys = [*SIZE, *KEYS, "training.class_weights={0: 1, 1: 3.5}"]
    assert ask("train", "classify", "--train", data, *keys, "--run", tmp_path / "run")[0] == 0


def test_several_files_and_patterns_are_one_corpus(ask: Ask, tmp_path: Path) -> None:
    one, two = (write_labels(tmp_path / f"part-{n}.tsv", ["yes", "no"], 40, n) for n in (1, 2))
    for name, files in {
        "shards": ["--train", one, "--train", two],
        "pattern": ["--train", tmp_path / "part-*.tsv"],
        "key": [f"data.train.examples={json.dumps([str(one), str(two)])}"],
    }.items():
        code, _, err = ask("train", "classify", *SIZE, *KEYS, *files, "data.hold_out=10", "--run", tmp_path / name)
        assert code == 0, err
        assert "76 examples, 4 for validation" in err


def test_what_a_run_can_start_from(bert: Path, ask: Ask, tmp_path: Path) -> None:
    data, run = write_labels(tmp_path / "data.tsv", ["yes", "no"]), tmp_path / "run"

    def start(place: object) -> Asked:
        asked = ask("train", "classify", "--train", data, "--start", place, *KEYS, "--run", run)
        assert not run.exists()
        return asked

    refused(start(tmp_path / "nowhere"), "no run folder", "nowhere")
    refused(start(tmp_path), "recipe.yaml")
    assert (
        ask("train", "lstm-lm", *KEYS, *GRAMMAR, "model.width=16", "model.layers=1", "--run", tmp_path / "lm")[0] == 0
    )
    refused(start(tmp_path / "lm"), "start from a BERT")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "recipe.yaml").write_bytes((bert / "recipe.yaml").read_bytes())
    (bare / "tokenizer").symlink_to(bert / "tokenizer")
    refused(start(bare), "bare", "no checkpoint yet")


def test_keys_that_the_start_decides_are_refused(bert: Path, ask: Ask, tmp_path: Path) -> None:
    data, run = write_labels(tmp_path / "data.tsv", ["yes", "no"]), tmp_path / "run"
    start = ["train", "classify", "--train", data, "--start", bert, *KEYS, "--run", run]
    for key in ("model.width=64", "model.layers=2", "tokenizer.vocabulary=200"):
        refused(ask(*start, key), key, "Leave the key out")
    refused(ask(*start, "training.freeze=2"), "training.freeze 2: the model has 1 layer,")
    assert not run.exists()
    assert ask(*start, "model.width=16", "training.freeze=1")[0] == 0
    own = tmp_path / "own.yaml"
    own.write_text("task: classification\ndata: {train: {grammar: en}}\nmodel: {kind: bert, width: 64}\n")
    assert (
        ask("train", own, "--train", data, "--start", bert, *KEYS, "data.max_length=64", "--run", tmp_path / "o")[0]
        == 0
    )


def test_what_comes_next_fits_what_was_learned(ask: Ask, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    draw = random.Random(3)
    rows = [f"{draw.choice(WORDS)}\t{draw.choice(WORDS)}\t{n % 2}\n" for n in range(20)]
    pairs.write_text("text\tsecond\tlabel\n" + "".join(rows), encoding="utf-8")
    single = write_labels(tmp_path / "single.tsv", ["0", "1"])
    for recipe in ("classify", "similarity"):
        options = [] if recipe == "classify" else ["data.train.fields.second=second"]
        _, out, _ = ask("train", recipe, "--train", pairs, *options, *SIZE, *KEYS, "--run", tmp_path / f"{recipe}-2")
        assert "printf 'a text\\tanother\\n' | jumok predict" in out
        options = [] if recipe == "classify" else ["data.train.fields.second=null"]
        _, out, _ = ask("train", recipe, "--train", single, *options, *SIZE, *KEYS, "--run", tmp_path / f"{recipe}-1")
        assert "echo 'a text' | jumok predict" in out


def test_texts_that_the_vocabulary_does_not_know_are_told(bert: Path, ask: Ask, tmp_path: Path) -> None:
    strange = tmp_path / "strange.tsv"
    strange.write_text("text\tlabel\n" + "".join(f"{'☃' * n} ☄\t{n % 2}\n" for n in range(1, 30)), encoding="utf-8")
    code, _, err = ask("train", "classify", "--train", strange, "--start", bert, *KEYS, "--run", tmp_path / "strange")
    assert code == 0
    assert "(100%) are not in the vocabulary" in err
    known = write_labels(tmp_path / "known.tsv", ["yes", "no"])
    _, _, err = ask("train", "classify", "--train", known, "--start", bert, *KEYS, "--run", tmp_path / "known")
    assert "vocabulary" not in err


def test_runs_are_listed_with_their_own_scores(bert: Path, ask: Ask, tmp_path: Path) -> None:
    data = write_labels(tmp_path / "data.tsv", ["yes", "no"])
    assert ask("train", "classify-lstm", "--train", data, *KEYS, "model.width=16", "--run", tmp_path / "runs/l")[0] == 0
    assert ask("train", "tag", *SIZE, *KEYS, *GRAMMAR, "--run", tmp_path / "runs/t")[0] == 0
    code, out, _ = ask("runs", tmp_path / "runs", bert)
    assert code == 0
    for words in ("accuracy 0.", "f1 ", "loss ", "bert 16×1", "lstm reader 16×", "they differ"):
        assert words in out, out
    listed: dict[str, Any] = json.loads(ask("runs", tmp_path / "runs", "--json")[1])
    assert {Path(row["path"]).name: row["counted"] for row in listed["runs"]} == {"l": "examples", "t": "words"}
    assert ask("runs", tmp_path / "runs", "--metric", "f1", "--out", tmp_path / "curves.html")[0] == 0
    code, out, _ = ask("gates", "red cat", "--run", tmp_path / "runs/l")
    assert code == 0
    assert "forget" in out
    assert ask("average", "--run", tmp_path / "runs/t", "--last", 2)[0] == 0
    assert ask("predict", data, "--run", tmp_path / "runs/t-average-2")[0] == 0


def examined(ask: Ask, *arguments: object) -> dict[str, Any]:
    _, out, err = ask("doctor", *arguments, "--json")
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_doctor_looks_at_examples(bert: Path, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_in_process(monkeypatch)
    train = write_labels(tmp_path / "train.tsv", ["yes", "no"], 60, 1)
    lines = train.read_text(encoding="utf-8").splitlines()
    text, label = lines[1].split("\t")
    contrary = "no" if label == "yes" else "yes"
    with train.open("a", encoding="utf-8") as file:
        file.write(f"{text}\t{contrary}\nbl\x07ue\tyes\nsea\trarely\n")
    valid = tmp_path / "valid.tsv"
    valid.write_text("\n".join(lines[:6]) + "\n", encoding="utf-8")
    found = examined(ask, "classify", "--train", train, "--valid", valid, "--start", bert, *KEYS, "--no-trial")
    assert not found["would_fail"]
    told = {finding["what"]: finding for finding in found["findings"]}
    assert any("came before with another label" in what for what in told)
    assert any("in the validation data too" in what for what in told)
    assert any("very rare: rarely (1)" in what for what in told)
    assert any("line 63" in finding["where"] for finding in told.values() if "U+0007" in finding["what"])
    assert found["facts"]["memory"]["rows"] > 0
    assert found["facts"]["lengths"][str(train)]["cut"] == 0
    strange = tmp_path / "strange.tsv"
    strange.write_text("text\tlabel\n" + "".join(f"☃ {n}\t{n % 2}\n" for n in range(40)), encoding="utf-8")
    found = examined(ask, "classify", "--train", strange, "--start", bert, *KEYS, "--no-trial")
    assert any("unknown words" in finding["what"] for finding in found["findings"])
    assert examined(ask, "classify", "--train", strange, "--start", tmp_path, *KEYS, "--no-trial")["would_fail"]


@pytest.mark.parametrize("recipe", ["bert-tiny", "similarity", "tag", "answer"])
def test_the_doctor_tries_every_task(recipe: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    if recipe != "tag":  # one of them in a process of its own
        try_in_process(monkeypatch)
    fork_instead(monkeypatch, session)
    monkeypatch.setattr("jumok.training.doctor.examine.TIMED", 0.1)
    keys = [*SIZE, *KEYS, *GRAMMAR, *(["model.pairs=apart"] if recipe == "similarity" else [])]
    trial = [] if recipe == "tag" else ["--no-trial"]
    found = examined(ask, recipe, *keys, *trial)
    assert not found["would_fail"], found["findings"]
    assert found["facts"]["memory"]["predicted"] > 0
    if trial == []:
        assert found["facts"]["time"]["counted"] == "words"
        assert found["facts"]["memory"]["fits"]


def test_checkpoints_that_do_not_fit_are_not_imported(ask: Ask, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    theirs, run = tmp_path / "theirs", tmp_path / "runs" / "imported"
    theirs.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (theirs / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.BertModel(config)
    model.save_pretrained(theirs)
    said = json.loads((theirs / "config.json").read_text(encoding="utf-8"))
    (theirs / "config.json").write_text(json.dumps({**said, "intermediate_size": 33}), encoding="utf-8")
    refused(ask("import", "hf", theirs, "--run", run), "intermediate", "33 × 16", "config.json")
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight[0, 0] = torch.nan
    model.save_pretrained(theirs)
    refused(ask("import", "hf", theirs, "--run", run), "not numbers")
    assert not run.parent.exists()
    transformers.BertModel(config).save_pretrained(theirs)
    code, out, _ = ask("import", "hf", theirs, "--run", run)
    assert code == 0
    assert "1 layer," in out
    assert "data.max_length=32" in out
    asked = ask("import", "hf", theirs, "--run", run)
    refused(asked, "holds a run already", "choose another --run")
    assert "--resume" not in asked[2]
    code, out, err = ask("fill", "red [MASK] cat", "--run", run)
    assert (code, bool(out)) == (0, True)
    assert "without a head that guesses words: these guesses are random" in err
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "headed")
    (tmp_path / "headed" / "vocab.txt").write_bytes((theirs / "vocab.txt").read_bytes())
    assert ask("import", "hf", tmp_path / "headed", "--run", tmp_path / "with-head")[0] == 0
    assert "random" not in ask("fill", "red [MASK] cat", "--run", tmp_path / "with-head")[2]
    said = json.loads((theirs / "config.json").read_text(encoding="utf-8"))
    (theirs / "config.json").write_text(json.dumps({**said, "num_attention_heads": 3}), encoding="utf-8")
    asked = ask("import", "hf", theirs, "--run", tmp_path / "three")
    refused(asked, "config.json: hidden_size 16 is not divisible by num_attention_heads 3")
    assert "Value error" not in asked[2]
    refused(ask("train", "--resume", "--run", run), "was imported", "--start")
    refused(ask("train", run / "recipe.yaml", "--run", tmp_path / "again"), "imported")
    assert [path.name for path in run.parent.iterdir()] == ["imported"]
