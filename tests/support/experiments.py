"""Made-up experiments, each in a module of its own that any process can import: what the lab runs in its tests."""

from __future__ import annotations

from pathlib import Path

MEASURED = """
'''A claim about {name}.'''
import time
from pathlib import Path
from jumok.lab.experiment import Experiment, Verdict

HERE = Path(__file__).parent

def measure(seed, effort):
    with open(HERE / "{name}.measured", "a") as file:
        file.write(f"{{seed}}\\n")
    {body}
    return {{"value": seed * effort, "nested": {{"list": [seed, 2.5], 3: "<b>"}}}}

def judge(numbers):
    mean = sum(each["value"] for each in numbers) / len(numbers)
    return [Verdict("Big <is> big.", mean > 1.2, f"the mean is {{mean:.2f}} over {{len(numbers)}}"),
            Verdict("All is less than 99.", True, "so it is")]

def draw(figure, numbers):
    axes = figure.subplots()
    axes.plot([each["value"] for each in numbers], label="value")
    axes.set_xlabel("seed")

EXPERIMENT = Experiment(
    {number}, "{typed}", "Title of {name} & co", "Somebody 2017, 3.2", "About <{name}>.", measure, judge, draw
)
"""


def write_experiment(folder: Path, name: str, number: int = 1, body: str = "pass") -> str:
    """The module's name, to be imported once the folder is in sys.path."""
    text = MEASURED.format(name=name, typed=name.replace("_", "-"), number=number, body=body)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return name


def measured(folder: Path, name: str) -> list[int]:
    """The seeds that were measured, in order, whoever did it."""
    file = folder / f"{name}.measured"
    return [int(line) for line in file.read_text().split()] if file.exists() else []
