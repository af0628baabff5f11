"""Fresh random inputs in every run."""

from seeded import seed

__all__ = ["seed"]
