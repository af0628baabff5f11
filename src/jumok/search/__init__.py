"""Greedy search, beam search and sampling: one implementation over the Stepper protocol, for every decoder."""

from jumok.search.decoding import Decoding, generate
from jumok.search.ensemble import Ensemble
from jumok.search.events import Completed, Event, Finished, Hypothesis, Pruned, Token
from jumok.search.options import SearchOptions, max_length_for
from jumok.search.refill import refill
from jumok.search.stepper import Stepper

__all__ = [
    "Completed",
    "Decoding",
    "Ensemble",
    "Event",
    "Finished",
    "Hypothesis",
    "Pruned",
    "SearchOptions",
    "Stepper",
    "Token",
    "generate",
    "max_length_for",
    "refill",
]
