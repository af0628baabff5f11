"""`python -m jumok` and the `jumok` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a command; turn its errors into one message and an exit code."""
    from jumok.cli.main import run

    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output (head, less) has gone: that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code)


if __name__ == "__main__":
    main()
