"""Fresh random inputs in every run, and a real browser for the page."""

from browser import browser, visit
from seeded import seed

__all__ = ["browser", "seed", "visit"]
