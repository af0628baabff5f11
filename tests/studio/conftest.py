"""What the tests of the studio share: a real server in a thread, and a browser that can reach nothing else."""

from __future__ import annotations

from seeded import seed  # noqa: F401
from studio_server import axe, client, open_page, scratch, studio  # noqa: F401
