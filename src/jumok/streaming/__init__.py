"""Lines in, translations out: as soon as they can be had, in the order they came, however large the file."""

from jumok.streaming.lines import Columns, stream
from jumok.streaming.output import open_output, refuse_sources
from jumok.streaming.sources import Source
from jumok.streaming.together import translate_together
from jumok.streaming.translating import translate_stream

__all__ = ["Columns", "Source", "open_output", "refuse_sources", "stream", "translate_stream", "translate_together"]
