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

from jumok.lab import results
from jumok.lab.results import read_result
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
    assert kept["verdicts"][1] == {"claim": "All is less than 99.", "holds": True, "because": "so it is"}
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
    kept = read_result(folder, "half")
    assert kept is not None
    assert [seed.seed for seed in kept.seeds] == [1]  # tried again, only the other one is measured
    assert not kept.verdicts


def test_only_what_is_missing_is_measured_unless_again(folder: Path) -> None:
    module = write_experiment(folder, "goes_on")

    def run(seeds: int, again: bool = False, effort: float = 1.0) -> Finished:
        (finished,) = of(Finished, list(run_lab([module], seeds, folder, jobs=1, effort=effort, again=again)))
        assert isinstance(finished, Finished)
        return finished

    run(2)
    assert len(run(3).result.seeds) == 3
    assert measured(folder, module) == [1, 2, 3]
    assert len(run(1).result.seeds) == 1  # of what is there only what was asked for
    run(1, again=True)
    assert measured(folder, module) == [1, 2, 3, 1]
    run(1, effort=0.5)  # not the same measurement
    assert measured(folder, module) == [1, 2, 3, 1, 1]
    with (folder / f"{module}.py").open("a") as file:
        file.write("\n# other code now\n")
    run(1, effort=0.5)
    assert measured(folder, module) == [1, 2, 3, 1, 1, 1]
    (folder / "goes-on.json").write_text("{half a file")
    run(1, effort=0.5)
    assert measured(folder, module) == [1, 2, 3, 1, 1, 1, 1]


PROGRAM = """
import sys
from pathlib import Path
if __name__ == "__main__":  # what measures needs nothing of this
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
