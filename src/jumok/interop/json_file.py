"""The JSON files of other people's folders: an object, or a sentence about what is wrong with the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jumok.errors import BadInput


def read_object(file: Path) -> dict[str, Any]:
    """The object that a file holds."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise BadInput(f"{file}: not JSON ({error}); fetch the file again") from None
    if not isinstance(found, dict):
        raise BadInput(f"{file}: not a JSON object; fetch the file again")
    return found


def read_object_if_there(file: Path) -> dict[str, Any]:
    """An empty object, where there is no such file."""
    return read_object(file) if file.is_file() else {}
