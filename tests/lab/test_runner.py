"""Experiments run over seeds, each in its own process; what fails, and what was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from experiments import measured, write_experiment

from jumok.errors import BadInput
from jumok.lab import results
from jumok.lab.results import Result, read_result
from jumok.lab.runner import Event, Failed, Finished, Progress, run_lab


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(results, "package_code", lambda: b"whoever works on the package meanwhile")
    return tmp_path


def of(kind: type[Event], events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_seeds_are_measured_judged_drawn_and_kept(folder: Path) -> None:
    out = folder / "deep" / "out"
    module = write_experiment(folder, "run_and_kept")
    events = list(run_lab([module], 3, out, jobs=2, effort=0.5))
    assert sorted(measured(folder, module)) == [1, 2, 3]
    assert [(event.done, event.of) for event in of(Progress, events)] == [(1, 3), (2, 3), (3, 3)]  # type: ignore[union-attr]
    (finished,) = of(Finished, events)
    assert isinstance(finished, Finished)
    assert [verdict.holds for verdict in finished.result.verdicts] == [False, True]
    assert finished.result.verdicts[0].because == "the mean is 1.00 over 3"
    assert finished.picture.read_bytes().startswith(b"\x89PNG")
    kept = json.loads((out / "run-and-kept.json").read_text(encoding="utf-8"))
    assert [seed["seed"] for seed in kept["seeds"]] == [1, 2, 3]
    assert kept["seeds"][1]["numbers"] == {"value": 1.0, "nested": {"list": [2, 2.5], "3": "<b>"}}
    told = {"claim": "All is less than 99.", "holds": True, "because": "so it is", "alone": [True, True, True]}
    assert kept["verdicts"][1] == told
    assert kept["judged"] == [1, 2, 3]
    assert "Title of run_and_kept &amp; co" in (out / "lab.html").read_text(encoding="utf-8")


def test_what_fails_stops_nothing_else(folder: Path) -> None:
    modules = [
        write_experiment(folder, "raises", 1, "raise ValueError('out of luck')"),
        write_experiment(folder, "dies", 2, "import os; os._exit(7)"),
        write_experiment(folder, "not_json", 3, "return {'nan': float('nan')}"),
        write_experiment(folder, "half", 4, "assert seed == 1"),
        write_experiment(folder, "fine", 5),
    ]
    (folder / "broken.py").write_text("import nothing_like_this")
    events = list(run_lab([*modules, "broken"], 2, folder, jobs=2))
    (finished,) = of(Finished, events)
    assert isinstance(finished, Finished)
    assert finished.experiment.name == "fine"
    problems = {(event.name, event.seed): event for event in events if isinstance(event, Failed)}
    names = {(name, seed) for name in ("raises", "dies", "not-json") for seed in (1, 2)}
    assert set(problems) == names | {("half", 2), ("broken", None)}
    assert problems["raises", 1].problem == "ValueError: out of luck"
    assert "in measure" in problems["raises", 1].details
    assert "exit code 7" in problems["dies", 2].problem
    assert "ValueError" in problems["not-json", 1].problem
    assert read_result(folder, "half") is None
    kept = read_result(folder, "half", partial=True)
    assert kept is not None
    assert [seed.seed for seed in kept.seeds] == [1]  # tried again, only the other one is measured
    assert not kept.verdicts


def test_only_what_is_missing_is_measured_unless_again(folder: Path) -> None:
    module = write_experiment(folder, "goes_on")

    def run(seeds: int, again: bool = False, effort: float = 1.0) -> Result:
        (finished,) = of(Finished, list(run_lab([module], seeds, folder, jobs=1, effort=effort, again=again)))
        assert isinstance(finished, Finished)
        assert read_result(folder, "goes-on") == finished.result
        assert not (folder / "goes-on.partial.json").exists()
        return finished.result

    run(2, effort=0.5)
    assert len(run(3, effort=0.5).seeds) == 3
    assert measured(folder, module) == [1, 2, 3]
    one = run(1, effort=0.5)  # judged is only what was asked for; what is there stays
    assert [seed.seed for seed in one.seeds] == [1, 2, 3]
    assert one.judged == [1]
    assert one.verdicts[0].because == "the mean is 0.50 over 1"
    assert len(run(1, again=True, effort=0.5).seeds) == 3
    assert measured(folder, module) == [1, 2, 3, 1]
    assert len(run(3, effort=0.5).judged) == 3
    assert len(run(1).seeds) == 1  # with more effort it is not the same measurement
    assert measured(folder, module) == [1, 2, 3, 1, 1]
    with pytest.raises(BadInput, match=r"effort 1, which 0\.5 would replace"):
        run(1, effort=0.5)
    with (folder / f"{module}.py").open("a") as file:
        file.write("\n# other code now\n")
    run(1)
    assert measured(folder, module) == [1, 2, 3, 1, 1, 1]
    (folder / "goes-on.json").write_text("{half a file")
    run(1)
    assert measured(folder, module) == [1, 2, 3, 1, 1, 1, 1]


def test_a_result_stands_until_the_new_one_is_complete(folder: Path) -> None:
    module = write_experiment(folder, "stands")
    list(run_lab([module], 3, folder, jobs=1))
    before = (folder / "stands.json").read_bytes()
    events = run_lab([module], 3, folder, jobs=1, again=True)
    assert isinstance(next(events), Progress)
    events.close()  # type: ignore[attr-defined]  # stopped after the first seed
    assert (folder / "stands.json").read_bytes() == before
    partial = read_result(folder, "stands", partial=True)
    assert partial is not None
    assert [seed.seed for seed in partial.seeds] == [1]
    assert not partial.verdicts
    write_experiment(folder, "stands", body="'other code'")
    events = run_lab([module], 3, folder, jobs=1, again=False)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert (folder / "stands.json").read_bytes() == before
    done = measured(folder, module)
    (finished,) = of(Finished, list(run_lab([module], 3, folder, jobs=1, again=False)))
    assert isinstance(finished, Finished)
    assert measured(folder, module) == [*done, 2, 3]  # it goes on with what was kept beside
    assert read_result(folder, "stands") == finished.result
    assert not (folder / "stands.partial.json").exists()


def test_how_many_seeds_agree_is_told(folder: Path) -> None:
    module = write_experiment(folder, "agrees")  # it claims that the mean of 1, 2, 3 is more than 1.2
    (finished,) = of(Finished, list(run_lab([module], 3, folder, jobs=1)))
    assert isinstance(finished, Finished)
    big, _ = finished.result.verdicts
    assert big.holds
    assert big.alone == (False, True, True)
    assert big.agreement == "holds in 2 of 3 seeds alone"
    assert "the mean is 2.00 over 3 (holds in 2 of 3 seeds alone)" in (folder / "lab.html").read_text(encoding="utf-8")
    (alone,) = of(Finished, list(run_lab([module], 1, folder, jobs=1, again=False)))
    assert isinstance(alone, Finished)
    assert alone.result.verdicts[0].agreement == ""


def test_one_lab_at_a_time_in_a_folder(folder: Path) -> None:
    module = write_experiment(folder, "alone_here")
    events = run_lab([module], 2, folder, jobs=1)
    next(events)
    with pytest.raises(BadInput, match="another lab is going on"):
        next(run_lab([module], 1, folder, jobs=1))
    list(events)
    assert measured(folder, module) == [1, 2]
    assert of(Finished, list(run_lab([module], 1, folder, jobs=1, again=False)))


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = write_experiment(folder, "nowhere")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)  # root may write anywhere
    for out in (folder, folder / "deep" / "out"):
        with pytest.raises(BadInput, match="cannot be written to"):
            next(run_lab([module], 1, out))
    assert measured(folder, module) == []
    assert not (folder / "deep").exists()


def test_the_code_is_all_that_decides_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(results.jumok, "__file__", str(tmp_path / "__init__.py"))
    seen = {results.package_code.__wrapped__()}
    for name in ("layers/attention.c", "layers/lanes.h", "pretrained/en-fr/model.safetensors", "lab/work.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("other")
        seen.add(results.package_code.__wrapped__())
    assert len(seen) == 5
    for name in ("cli/lab.py", "lab/scaling.py", "lab/notes.txt"):  # not, or not of this experiment
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("other")
        assert results.package_code.__wrapped__() in seen


PROGRAM = """
import signal, sys
from pathlib import Path
if __name__ == "__main__":  # what measures needs nothing of this
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
    from jumok.lab import results
    from jumok.lab.runner import run_lab
    results.package_code = lambda: b"whoever works on the package meanwhile"
    try:
        for event in run_lab(sys.argv[2:], 2, Path(sys.argv[1]), jobs=2, again=False):
            print(type(event).__name__, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_in_the_middle_it_leaves_no_process_and_goes_on_later(folder: Path, how: signal.Signals) -> None:
    quick = write_experiment(folder, "quick")
    slow = write_experiment(
        folder, "slow", 2, "import os; Path(HERE / f'{seed}.pid').write_text(str(os.getpid())); time.sleep(600)"
    )
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", str(folder), quick, slow]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    pids = [folder / "1.pid", folder / "2.pid"]
    while not all(path.exists() and path.read_text() for path in pids):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does: to all of them
    else:
        process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if how == signal.SIGINT:
        assert out.splitlines()[-1] == "interrupted"
    while any(_runs(int(path.read_text())) for path in pids):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (folder / "slow.py").write_text((folder / "slow.py").read_text().replace("time.sleep(600)", "pass"))
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert told.split().count("Finished") == 2
    assert sorted(measured(folder, quick)) == [1, 2]  # was there


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a process that has ended and that nobody has asked about is no process any more
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
