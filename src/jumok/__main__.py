"""`python -m jumok` and the `jumok` command."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run a command; turn its errors into one message and an exit code."""
    from jumok.cli.main import run

    # PyTorch's threads wait for each other by spinning. On a busy machine that starves the very thread they wait for;
    # a shorter spin gives the core back sooner and costs nothing that could be seen on a quiet one.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: what is said goes nowhere
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # the text is Korean, French, boxes: UTF-8 whatever the terminal claims
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output (head, less) has gone: that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"jumok: the output could not be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
