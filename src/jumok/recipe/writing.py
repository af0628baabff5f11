"""Writing recipes: as they are stored in a run, and with every key explained."""

from __future__ import annotations

import copy
from typing import Any

import yaml
from pydantic import BaseModel

from jumok.recipe.whole import Recipe


def dump(recipe: Recipe) -> str:
    """The resolved recipe as YAML, every key present."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def explain(recipe: Recipe) -> str:
    """The recipe as YAML with every key's description beside it."""
    lines: list[str] = []
    _explain_section(recipe, 0, lines)
    return "\n".join(lines) + "\n"


def _explain_section(section: BaseModel, depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        about = field.description or ""
        if isinstance(value, BaseModel):
            lines += ["", f"{indent}# {about}"] if depth == 0 else [f"{indent}# {about}"]
            lines.append(f"{indent}{name}:")
            _explain_section(value, depth + 1, lines)
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            lines += [f"{indent}# {about}", f"{indent}{name}:"]
            for item in value:
                start = len(lines)
                _explain_section(item, depth + 2, lines)
                lines[start] = f"{indent}  - {lines[start].lstrip()}"
        else:
            text = yaml.safe_dump(_plain(value), default_flow_style=True, allow_unicode=True, width=10_000)
            text = text.removesuffix("\n").removesuffix("\n...")
            lines.append(f"{indent}{name}: {text}".ljust(38) + f"  # {about}")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else copy.copy(value)
