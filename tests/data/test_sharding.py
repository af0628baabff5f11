"""Stores in shards: the same data whatever the shards, and nothing lost to a kill, a rival or a helper that dies."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jumok.data import helpers, sharding, store_build
from jumok.data.plan import Plan, held_out
from jumok.data.store import TokenStore
from jumok.errors import BadInput, Failure
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer, train_tokenizer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def write_corpus(folder: Path, count: int, seed: int = 0, blanks: bool = True) -> Corpus:
    generator = random.Random(seed)
    for name in ("a", "b"):
        lines = [" ".join(generator.choices(WORDS, k=generator.randint(1, 9))) for _ in range(count)]
        if blanks:
            lines = ["" if generator.random() < 0.1 else line for line in lines]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return Corpus(source=[str(folder / "a")], target=[str(folder / "b")])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(WORDS, "word", 100)


def open_store(corpus: Corpus, tokenizer: Tokenizer, cache: Path, say: Any = None, **more: Any) -> TokenStore:
    return TokenStore.open_or_build(corpus, "train", tokenizer, tokenizer, cache, 50, say, **more)


def content(store: TokenStore) -> list[Any]:
    return [[store.line(n), *(side.tolist() for side in store.pair(n))] for n in range(len(store))]


def first_version(store: TokenStore) -> None:
    """The folder as it was before there were shards."""
    folder, shards = store.folder, [store.folder / name for name in store.meta["shards"]]
    for side in ("source", "target"):
        (folder / f"{side}.bin").write_bytes(b"".join((shard / f"{side}.bin").read_bytes() for shard in shards))
    for shard in shards:
        shutil.rmtree(shard)
    (folder / "shards.json").unlink()
    names = [f"{side}.{kind}" for side in ("source", "target") for kind in ("bin", "offsets", "lengths")]
    sizes = {name: (folder / name).stat().st_size for name in (*names, "lines.bin")}
    meta = {key: value for key, value in store.meta.items() if key != "shards"} | {"format": 1, "sizes": sizes}
    (folder / "meta.json").write_text(json.dumps(meta))


def test_the_data_and_its_order_do_not_depend_on_shards_or_version(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path, 300)
    stores = []
    for size in (1000, 300, 299, 64, 7):
        monkeypatch.setattr(sharding, "SHARD", size)
        stores.append(open_store(corpus, tokenizer, tmp_path / f"cache{size}"))
        assert len(stores[-1].meta["shards"]) == -(-300 // size)
    first_version(open_store(corpus, tokenizer, tmp_path / "before"))
    stores.append(open_store(corpus, tokenizer, tmp_path / "before"))
    assert stores[-1].meta["format"] == 1
    assert len({store.key for store in stores}) == 1, "runs remember the key"
    expected = content(stores[0])
    plans = []
    for store in stores:
        assert content(store) == expected
        assert store.notes() == stores[0].notes()
        plans.append(Plan([store, store], [2, 1], 120, 5, 2, exclude=held_out(store, 9, 5)))
    seed = random.SystemRandom().randrange(1 << 30)
    for update in (0, 1, 100, 100_000, random.Random(seed).randrange(10**12)):
        micros = [plan.at(update) for plan in plans]
        assert all(
            [micro.indices.tolist() for micro in one] == [micro.indices.tolist() for micro in micros[0]]
            for one in micros
        ), f"seed {seed}"
        rows = micros[0][0].indices
        batches = [store.batch(rows) for store in stores]
        assert all(batch.source.ids.tolist() == batches[0].source.ids.tolist() for batch in batches)
        assert all(batch.target.ids.tolist() == batches[0].target.ids.tolist() for batch in batches)


def test_a_damaged_store_of_the_version_before_is_built_anew(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus, said = write_corpus(tmp_path, 30), list[str]()
    store = open_store(corpus, tokenizer, tmp_path / "cache")
    expected = content(store)
    for name in ("source.bin", "meta.json"):
        first_version(open_store(corpus, tokenizer, tmp_path / "cache"))
        (store.folder / name).unlink()
        again = open_store(corpus, tokenizer, tmp_path / "cache", said.append)
        assert (content(again), again.meta["format"]) == (expected, 2)
        assert not (store.folder / "source.bin").exists()
    assert any("source.bin" in message for message in said)


def test_a_store_of_a_later_version_is_built_anew(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write_corpus(tmp_path, 30)
    store = open_store(corpus, tokenizer, tmp_path / "cache")
    (store.folder / "meta.json").write_text(json.dumps(store.meta | {"format": 99}))
    said: list[str] = []
    assert content(open_store(corpus, tokenizer, tmp_path / "cache", said.append)) == content(store)
    assert "format 99" in said[0]


def test_shards_where_nothing_is_kept(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "SHARD", 4)
    for name in ("a", "b"):
        lines = ["one two"] * 3 + [""] * 10 + ["three"] * 2
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    said: list[str] = []
    corpus = Corpus(source=[str(tmp_path / "a")], target=[str(tmp_path / "b")])
    store = open_store(corpus, tokenizer, tmp_path / "cache", said.append)
    assert [store.line(n) for n in range(len(store))] == [0, 1, 2, 13, 14]
    assert said == ["10 pairs are left out, one side is empty (lines 4, 5, 6, 7, 8, …)"]


def test_a_file_of_blank_lines_among_others_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write_corpus(tmp_path, 30)
    (tmp_path / "blank").write_text("\n" * 5)
    both = Corpus(source=[*corpus.source, str(tmp_path / "blank")], target=[*corpus.target, str(tmp_path / "blank")])
    with pytest.raises(BadInput, match=r"blank: .*blank lines \(5 lines\)|no text on the source side"):
        open_store(both, tokenizer, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*/shards.json"))


def test_a_file_that_changes_meanwhile_is_noticed(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path, 30)
    write = store_build.PairEncoder.write

    def meanwhile(self: Any, *rest: Any) -> Any:
        meta = write(self, *rest)
        with open(tmp_path / "b", "a") as file:
            file.write("one more\n")
        return meta

    monkeypatch.setattr(store_build.PairEncoder, "write", meanwhile)
    with pytest.raises(Failure, match="b: changed while it was being encoded"):
        open_store(corpus, tokenizer, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*/shards.json"))


# ---------------------------------------------------------------- several processes

BUILD = """
import sys, time
from pathlib import Path
from jumok.data import sharding
from jumok.data.store_build import PairEncoder, store_key
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer
folder, sharding.SHARD, quick, company = Path(sys.argv[1]), *map(int, sys.argv[2:])
built = 0
def slowly(self):
    global built
    patience = time.monotonic() + 60
    while not built and len(list(place.glob("*shard-*"))) < company and time.monotonic() < patience:
        time.sleep(0.01)
    print("shard", flush=True)
    built += 1
    if built > quick:
        time.sleep(3600)
sharding.Encoder.check_unchanged = slowly
tokenizer = Tokenizer.load(folder / "tokenizer")
arguments = Corpus(source=[str(folder / "a")], target=[str(folder / "b")]), "train", tokenizer, tokenizer, 50
encoder, place = PairEncoder(*arguments), folder / "cache" / store_key(*arguments)
print("ready", flush=True)
sys.stdin.readline()
sharding.build(place, encoder, print)
"""  # without torch: it starts quickly


def the_store_in(cache: Path) -> Path:
    (plan,) = cache.glob("*/shards.json")
    return plan.parent


def builder(folder: Path, size: int, quick: int = 1000, company: int = 1) -> subprocess.Popen[str]:
    """Another process, about to build; it prints `shard` before it finishes one, and after `quick` ones stays there.

    Its first shard waits until as many as `company` are there or being built.
    """
    command = [sys.executable, "-c", BUILD, str(folder), str(size), str(quick), str(company)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def count_encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    encoded: list[int] = []
    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, texts: encoded.append(len(texts)) or encode(self, texts))
    return encoded


def test_a_kill_costs_one_shard(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path, 1000, blanks=False)
    tokenizer.save(tmp_path / "tokenizer")
    process = builder(tmp_path, 100, quick=3)
    go(process)
    assert process.stdout is not None
    for _ in range(4):
        assert process.stdout.readline() == "shard\n"
    process.kill()
    process.communicate()
    folder = the_store_in(tmp_path / "cache")
    built = len(list(folder.glob("shard-*/meta.json")))
    assert built == 3
    assert not (folder / "meta.json").exists()
    with pytest.raises(BadInput, match="not a whole token store"):
        TokenStore.open(folder)
    encoded = count_encoded(monkeypatch)
    store = open_store(corpus, tokenizer, tmp_path / "cache")
    assert sum(encoded) == 2 * (1000 - 100 * built)
    assert content(store) == content(open_store(corpus, tokenizer, tmp_path / "elsewhere"))
    assert not list(folder.glob(".*")), "nothing unfinished is left"


def test_processes_that_want_the_same_store_share_the_work(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write_corpus(tmp_path, 1000)
    tokenizer.save(tmp_path / "tokenizer")
    builders = [builder(tmp_path, 100, company=2) for _ in range(2)]
    for process in builders:
        go(process)
    answers = [process.communicate()[0].splitlines() for process in builders]
    assert [process.returncode for process in builders] == [0, 0]
    shares = [answer.count("shard") for answer in answers]
    assert sum(shares) == 10, "each shard was built once"
    assert min(shares) > 0
    folder = the_store_in(tmp_path / "cache")
    assert content(TokenStore.open(folder)) == content(open_store(corpus, tokenizer, tmp_path / "elsewhere"))


@pytest.mark.skipif(sys.platform == "win32", reason="a process is stopped with SIGSTOP")
def test_who_waits_for_a_builder_that_dies_takes_over(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_corpus(tmp_path, 300)
    tokenizer.save(tmp_path / "tokenizer")
    dying, waiting = builder(tmp_path, 100, quick=0), builder(tmp_path, 100)
    go(dying)
    while not list((tmp_path / "cache").glob("*/.building-shard-00000-*")):
        time.sleep(0.01)
    go(waiting)
    assert waiting.stdout is not None
    assert [waiting.stdout.readline() for _ in range(2)] == ["shard\n"] * 2
    time.sleep(0.3)
    assert waiting.poll() is None, "it waits for the first shard"
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    answer = waiting.communicate()[0].splitlines()
    assert waiting.returncode == 0
    assert answer[0] == "shard"


def test_helpers_build_the_same_store(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "SHARD", 500)
    corpus = write_corpus(tmp_path, 10_000)
    one = open_store(corpus, tokenizer, tmp_path / "one", processes=1)
    encoded = count_encoded(monkeypatch)
    check = sharding.Encoder.check_unchanged

    def wait_for_help(self: Any) -> None:
        while len(list((tmp_path / "many").glob("*/shard-*"))) < 2:
            time.sleep(0.01)
        check(self)

    monkeypatch.setattr(sharding.Encoder, "check_unchanged", wait_for_help)
    many = open_store(corpus, tokenizer, tmp_path / "many", processes=3)
    assert 0 < sum(encoded) < 2 * (10_000 - 500), "helpers did a part"
    assert content(many) == content(one)
    assert not list(many.folder.glob(".*"))


def test_what_a_helper_fails_on_is_told(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "SHARD", 500)
    corpus = write_corpus(tmp_path, 3000, blanks=False)
    lines = (tmp_path / "a").read_bytes().split(b"\n")
    lines[2222] = b"caf\xe9"
    (tmp_path / "a").write_bytes(b"\n".join(lines))
    with pytest.raises(BadInput, match="a, line 2223, byte 4: not valid UTF-8"):
        open_store(corpus, tokenizer, tmp_path / "cache", processes=3)


WORK = "import os, time; open(os.path.join({0!r}, str(os.getpid())), 'w').close(); time.sleep(3600)"
PARENT = (
    "import sys, time; from jumok.data.helpers import helpers\nwith helpers(2, exec, sys.argv[1]): time.sleep(3600)"
)


def started(folder: Path, count: int) -> list[int]:
    while len(list(folder.iterdir())) < count:
        time.sleep(0.01)
    return [int(path.name) for path in folder.iterdir()]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux whether a process lives")
@pytest.mark.parametrize("end", ["block", "kill"])
def test_helpers_end_with_who_began(tmp_path: Path, end: str) -> None:
    work = WORK.format(str(tmp_path))
    if end == "block":
        with helpers.helpers(2, exec, work):
            numbers = started(tmp_path, 2)
    else:
        parent = subprocess.Popen([sys.executable, "-c", PARENT, work])
        numbers = started(tmp_path, 2)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while any(alive(number) for number in numbers):
        assert time.monotonic() < deadline, "helpers live on"
        time.sleep(0.01)


def test_a_store_larger_than_memory_reads_the_same(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharding, "SHARD", 64)
    corpus = write_corpus(tmp_path, 300)
    small = open_store(corpus, tokenizer, tmp_path / "cache")
    monkeypatch.setattr("jumok.data.store.installed_memory", lambda: 1000.0)
    large = open_store(corpus, tokenizer, tmp_path / "cache")
    assert (small.exceeds_memory, large.exceeds_memory) == (False, True)
    plan = Plan([large], [1], 120, 5)
    for update in range(5):
        (micro,) = plan.at(update)
        large.announce(micro.indices)
        batches = [store.batch(micro.indices) for store in (small, large)]
        assert batches[0].source.ids.tolist() == batches[1].source.ids.tolist()
        assert batches[0].target.ids.tolist() == batches[1].target.ids.tolist()


def test_layouts_are_kept_and_made_again_when_damaged(tmp_path: Path, tokenizer: Tokenizer) -> None:
    store = open_store(write_corpus(tmp_path, 300), tokenizer, tmp_path / "cache")
    for packed in (False, True):
        before = set(store.folder.iterdir())
        plan = Plan([store], [1], 120, 5, packed=packed)
        expected = [plan.at(update)[0].indices.tolist() for update in range(9)]
        (file,) = set(store.folder.iterdir()) - before
        whole = file.read_bytes()
        for damage in (whole[:-8], whole + b"\0" * 8, b"", None):
            file.unlink()
            if damage is not None:
                file.write_bytes(damage)
            again = Plan([store], [1], 120, 5, packed=packed)
            assert [again.at(update)[0].indices.tolist() for update in range(9)] == expected
            assert file.read_bytes() == whole
        other = Plan([store], [1], 140, 5, packed=packed)
        assert other.batches_per_epoch != plan.batches_per_epoch


@pytest.mark.parametrize("locks", [True, False])
def test_what_a_rival_has_begun_is_removed_only_under_its_lock(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    """Without locks nobody knows whether it is still at work."""
    corpus = write_corpus(tmp_path, 50)

    def cannot(lock: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if not locks:
        monkeypatch.setattr(sharding.FileLock, "acquire", cannot)
    begun: list[Path] = []
    build = sharding._build_shard

    def with_a_rival(folder: Path, encoder: Any, shard: Any, items: Any, alone: bool) -> None:
        begun.append(folder / f"{sharding.TEMPORARY}{shard.name}-99999")
        begun[-1].mkdir()
        build(folder, encoder, shard, items, alone)
        assert begun[-1].exists() == (not locks)

    monkeypatch.setattr(sharding, "_build_shard", with_a_rival)
    store = TokenStore.open_or_build(corpus, "train", tokenizer, tokenizer, tmp_path / "cache", 50)
    assert begun
    assert len(store) > 0
