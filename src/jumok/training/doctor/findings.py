"""What the doctor has to say: facts, and findings. A finding is what, where, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["error", "warning", "note"]  # error: the run would fail
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    level: Level
    topic: str  # data, vocabulary, lengths, disk, memory, speed, …
    what: str
    where: str
    todo: str


@dataclass
class Report:
    """`facts` by topic, each a dictionary of JSON values."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(self, level: Level, topic: str, what: str, where: str, todo: str) -> None:
        self.findings.append(Finding(level, topic, what, where, todo))

    def know(self, topic: str, **values: Any) -> None:
        self.facts.setdefault(topic, {}).update(values)

    @property
    def would_fail(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)

    def ordered(self) -> list[Finding]:
        """The worst first."""
        return sorted(self.findings, key=lambda finding: LEVELS.index(finding.level))

    def to_json(self) -> dict[str, Any]:
        return {
            "would_fail": self.would_fail,
            "facts": self.facts,
            "findings": [asdict(finding) for finding in self.ordered()],
        }
