"""The typed description of a run: everything that decides its result is in here.

Every field has a description; the same words are its help in `jumok recipes NAME`, in `jumok recipes --schema` and in
the error messages. Unknown keys are refused with the nearest right one.
"""

from jumok.recipe.kinds import ModelSection
from jumok.recipe.models import (
    BertSection,
    ForecasterSection,
    RecurrentLanguageSection,
    RecurrentReaderSection,
    Seq2SeqSection,
    TransformerLanguageSection,
    TransformerSection,
    VitSection,
)
from jumok.recipe.reading import about, assign, check, names, read, task_of, yaml_fault
from jumok.recipe.recognition import CharsetSection, RecognizerSection, Rendering
from jumok.recipe.sections import (
    Corpus,
    Data,
    FieldsSection,
    Masking,
    Search,
    Section,
    SeriesSection,
    TokenizerSection,
    Training,
)
from jumok.recipe.vision import Augmentation
from jumok.recipe.whole import FORMAT, Recipe
from jumok.recipe.writing import dump, explain

__all__ = [
    "FORMAT", "Augmentation", "BertSection", "CharsetSection", "Corpus", "Data", "FieldsSection", "ForecasterSection",
    "Masking", "ModelSection", "Recipe", "RecognizerSection", "RecurrentLanguageSection", "RecurrentReaderSection",
    "Rendering", "Search", "Section", "Seq2SeqSection", "SeriesSection", "TokenizerSection", "Training",
    "TransformerLanguageSection", "TransformerSection", "VitSection", "about", "assign", "check", "dump", "explain",
    "names", "read", "task_of", "yaml_fault",
]  # fmt: skip
