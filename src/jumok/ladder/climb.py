"""The whole way: the tokenizer once, every attempt trained and scored, the table and the page. It can be killed at any
moment: the same command goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named, replace_file
from jumok.ladder.folder import LadderFolder, Say
from jumok.ladder.plan import Attempt, Plan
from jumok.ladder.progress import Progress
from jumok.ladder.results import Results, results
from jumok.ladder.running import LOG, train_here, train_side_by_side
from jumok.ladder.scoring import read_score, score
from jumok.ladder.table import as_markdown
from jumok.training.loop import Interrupted


class Stopped(Failure):
    """Ctrl-C: what is trained is saved."""

    exit_code = 130


def climb(
    plan: Plan,
    out: Path,
    say: Say,
    *,
    jobs: int = 1,
    tutorial: bool = False,
    device: str = "auto",
    plugins: Sequence[Path] = (),
) -> tuple[Results, dict[str, str]]:
    """What was found, and which attempts failed, in their own words."""
    if jobs < 1:
        raise BadInput(f"--jobs {jobs}: give a number above zero")
    folder = LadderFolder(out)
    settings = plan.settings()
    folder.check(settings)
    if plan.budget.minutes is not None:
        folder.check_jobs(plan.attempts, jobs)
    pairs = plan.test_pairs()
    failed: dict[str, str] = {}
    with folder.locked():
        jobs = min(jobs, len(plan.attempts))
        beside = folder.begin(plan, settings, jobs, say)
        say(_announced(plan, folder, jobs, beside))
        try:
            for number, attempt in _trained(plan, folder, jobs, say, failed, plugins):
                run = folder.run(attempt)
                found = read_score(run)
                again = "" if found is None else " (before)"
                found = found or score(run, pairs, device)
                bleu, chrf = (one["score"] for one in found["scores"])
                speed = f"{found['sentences_per_second']:,.1f} sentences/s"
                say(f"[{number}/{len(plan.attempts)}] {attempt}: BLEU {bleu:.2f}  chrF {chrf:.2f}  {speed}{again}")
        except (KeyboardInterrupt, Interrupted):
            raise Stopped(f"stopped; everything is saved in {out}. The same command goes on with it") from None
        found_results = results(plan, folder, pairs)
        if not found_results.rows:
            raise Failure(told(failed, folder))
        write(plan, folder, found_results, tutorial)
    return found_results, failed


def _announced(plan: Plan, folder: LadderFolder, jobs: int, beside: dict[str, int]) -> str:
    """What is still to be done, and how long that takes where it is known."""
    left = folder.left(plan.attempts)
    if not left:
        return "all runs are trained"
    time = f": about {-(-len(left) // jobs) * plan.budget.minutes:g} minutes" if plan.budget.minutes else ""
    at_a_time = f", {jobs} at a time" if jobs > 1 else ""
    told = f"{len(left)} run{'s' * (len(left) > 1)} to train, each {plan.budget}{at_a_time}{time}"
    return told + (_uneven(left, beside) if plan.budget.minutes else "")


def _uneven(left: Sequence[Attempt], beside: dict[str, int]) -> str:
    """A word about those that will have fewer beside them than others."""
    most = max(beside.values())
    fewer = ", ".join(f"{attempt} ({beside[attempt.name]})" for attempt in left if beside[attempt.name] < most)
    if not fewer:
        return ""
    return (
        f"\nnote: a minute is worth more where fewer train side by side. It is {most} at a time, fewer for {fewer}; "
        "the table will say so. A --jobs that divides the number of runs gives all of them the same"
    )


def _trained(
    plan: Plan, folder: LadderFolder, jobs: int, say: Say, failed: dict[str, str], plugins: Sequence[Path]
) -> Iterator[tuple[int, Attempt]]:
    """The attempts as they are ready to be scored. Those that train side by side are scored when all are trained: how
    fast a model translates is measured with nothing beside it."""
    if jobs > 1:
        with Progress(len(folder.left(plan.attempts))) as progress:
            failed |= train_side_by_side(folder, plan.attempts, plan.budget, jobs, progress, plugins)
    for number, attempt in enumerate(plan.attempts, 1):
        if jobs == 1 and read_score(folder.run(attempt)) is None:
            say(f"[{number}/{len(plan.attempts)}] {attempt}: {plan.budget}")
            try:
                train_here(folder, attempt, plan.budget, say)
            except Interrupted:
                raise
            except Failure as error:  # one that diverges does not take the others with it
                failed[str(attempt)] = str(error)
                say(f"{attempt}: {error}")
        if str(attempt) not in failed:
            yield number, attempt


def write(plan: Plan, folder: LadderFolder, found: Results, tutorial: bool) -> None:
    """results.json, table.md and report.html."""
    from jumok.ladder.report import page  # matplotlib: only at the end

    with disk_errors_named("writing the results", folder.path, "Free some space and start again."):
        replace_file(folder.results, json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n")
        replace_file(folder.table, as_markdown(plan, found, tutorial))
        replace_file(folder.report, page(plan, found, tutorial))


def told(failed: dict[str, str], folder: LadderFolder) -> str:
    """What is said at the end of attempts that failed."""
    said = "\n  ".join(f"{attempt}: {problem}" for attempt, problem in failed.items())
    count = f"{len(failed)} run{'s' * (len(failed) > 1)}"
    return (
        f"{count} failed; the same command tries again. Where several train side by side, each run's own words are in "
        f"{folder.path / '…' / LOG}\n  {said}"
    )
