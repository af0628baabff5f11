"""jumok (주목, "attention"): the line of sequence models from the RNN to the Transformer.

import jumok
model = jumok.load()                      # the small English→French run that ships with the package
print(model.translate(["I am a student."]))
print(model.attend("I am a student."))    # what it looked at, drawn in the terminal
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumok.api import (
        TrainedAnswerer,
        TrainedClassifier,
        TrainedFiller,
        TrainedForecaster,
        TrainedLanguageModel,
        TrainedTagger,
        TrainedTranslator,
        load,
        load_translator,
        train,
    )
    from jumok.errors import BadInput, JumokError
    from jumok.inspect.record import record
    from jumok.recipe import Recipe, read
    from jumok.tasks.wishes import Sentence

__all__ = [
    "BadInput", "JumokError", "Recipe", "Sentence", "TrainedAnswerer", "TrainedClassifier", "TrainedFiller",
    "TrainedForecaster", "TrainedLanguageModel", "TrainedTagger", "TrainedTranslator", "__version__", "load",
    "load_translator", "read", "record", "train",
]  # fmt: skip

try:
    __version__ = metadata.version("jumok")
except metadata.PackageNotFoundError:  # run from source, as on a machine where nothing can be installed
    __version__ = "0.1.0+source"

_HOMES = {
    "load": "jumok.api",
    "load_translator": "jumok.api",
    "train": "jumok.api",
    "TrainedTranslator": "jumok.api",
    "TrainedLanguageModel": "jumok.api",
    "TrainedForecaster": "jumok.api",
    "TrainedFiller": "jumok.api",
    "TrainedClassifier": "jumok.api",
    "TrainedTagger": "jumok.api",
    "TrainedAnswerer": "jumok.api",
    "record": "jumok.inspect.record",
    "BadInput": "jumok.errors",
    "JumokError": "jumok.errors",
    "Recipe": "jumok.recipe",
    "read": "jumok.recipe",
    "Sentence": "jumok.tasks.wishes",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import on first use: `import jumok` and `jumok --help` stay quick because torch waits until it is needed."""
    if name not in _HOMES:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
