"""Gates to look at: a table for the terminal, a picture (.png, .svg), a page (.html), or the numbers (.json)."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import visible
from jumok.inspect.gates import Floats, Gates, Reading
from jumok.inspect.html import document, embed, escape, readable
from jumok.inspect.pictures import check_picture_path

KINDS = (".png", ".svg", ".html", ".json")
BAR = 10  # cells of the longest bar
LONGEST_LABEL = 16
GRADIENT = "‖∂h_T/∂x_t‖"


def write_gates(gates: Gates, path: Path, dark: bool = False) -> None:
    """Into a file; its ending decides."""
    check_picture_path(path, KINDS)
    kind = path.suffix.lower()
    content: str | bytes
    if kind == ".html":
        content = page(gates)
    elif kind == ".json":
        content = gates.to_json()
    else:
        content = draw(gates, "png" if kind == ".png" else "svg", dark=dark)
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        replace_file(path, content)


# ---------------------------------------------------------------- the terminal


def show(gates: Gates, console: Console | None = None) -> None:
    """For each layer and direction a table: a row for each token, gates as their means over the units."""
    console = console or Console(highlight=False)
    rich = not console.options.ascii_only
    names = (
        {"c": "‖c_t‖", "h": "‖h_t‖", "gradient": GRADIENT} if rich else {"c": "|c|", "h": "|h|", "gradient": "|dh/dx|"}
    )
    for reading in gates.readings:
        shown = Table(title=f"{gates.kind} {reading.name}", title_justify="left", box=None, pad_edge=False)
        shown.add_column("token")
        for name in (*reading.gates, *(["c"] if reading.cell is not None else []), "h"):
            shown.add_column(names.get(name, name), justify="right", no_wrap=True)
        shown.add_column("T-t", justify="right", no_wrap=True)
        shown.add_column(names["gradient"], no_wrap=True)
        largest = max(float(reading.gradient.max()), 1e-30)
        for place, token in enumerate(gates.tokens):
            numbers = [f"{gate[place].mean():.2f}" for gate in reading.gates.values()]
            norms = [reading.hidden] if reading.cell is None else [reading.cell, reading.hidden]
            numbers += [f"{np.linalg.norm(values[place]):.2f}" for values in norms]
            gradient = float(reading.gradient[place])
            bar = ("█" if rich else "#") * round(BAR * gradient / largest)
            word = visible(token).encode(console.encoding, "backslashreplace").decode(console.encoding)
            shown.add_row(Text(word), *numbers, str(reading.distance[place]), f"{gradient:<#8.2g} {bar}")
        console.print(shown)
        console.print()
    what = "gates are means over the units; " if gates.readings[0].gates else ""
    console.print(
        f"{what}T is where a direction ends, x_t the vector of a token. "
        f"The fused layer and the equations written out differ by {gates.difference:.1e} at most."
    )


def table(gates: Gates) -> str:
    text = io.StringIO()
    show(gates, Console(file=text, width=100, highlight=False, color_system=None))
    return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())


# ---------------------------------------------------------------- PNG and SVG


def draw(gates: Gates, format: Any = "png", *, dark: bool = False) -> bytes:
    """A row of panels for each layer and direction: gates and states (unit ↓, token →), the gradient by distance."""
    from jumok.inspect.drawing import saved, sheet, style

    columns = len(gates.readings[0].states()) + 1
    width = min(max(2.2, 0.28 * len(gates.tokens)), 9.0)
    labels = f"{''.join(gates.tokens)}0123456789.,-−+abcdefghijklmnopqrstuvwxyzT‖∂/_→↓…"
    with style(labels, dark):
        figure = sheet(columns * (width + 0.55), 3.1 * len(gates.readings))
        panels = figure.subplots(len(gates.readings), columns, squeeze=False)
        for row, reading in zip(panels, gates.readings, strict=True):
            _row(row, reading, gates, dark)
        figure.tight_layout(w_pad=1.5, h_pad=1.2)
        return saved(figure, format)


def _row(panels: Sequence[Any], reading: Reading, gates: Gates, dark: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    from jumok.inspect.drawing import ink_and_paper, short

    # Units have no order of their own: those that hold the longest (forget, update; else the largest state) stand on
    # top, in every panel of the row alike.
    held = next((reading.gates[name] for name in ("forget", "update") if name in reading.gates), abs(reading.hidden))
    order = np.argsort(-held.mean(axis=0), kind="stable")
    tokens = [short(token, LONGEST_LABEL) for token in gates.tokens]
    every = -(-len(tokens) // 32)
    for panel, (name, values) in zip(panels, reading.states().items(), strict=False):
        gate = name.endswith("gate")
        reach = 1.0 if gate else max(float(abs(values).max()), 1e-6)
        colours, lowest = ("cividis", 0.0) if gate else ("PuOr_r", -reach)
        image = panel.imshow(
            values.T[order], cmap=colours, vmin=lowest, vmax=reach, aspect="auto", interpolation="nearest"
        )
        bar = panel.figure.colorbar(image, ax=panel, fraction=0.05, pad=0.03)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=7)
        panel.set_title(name, fontsize=10)
        panel.set_xticks(
            range(0, len(tokens), every), tokens[::every], rotation=60, ha="right", rotation_mode="anchor",
            fontsize=8, parse_math=False,
        )  # fmt: skip
        panel.set_yticks([])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel(f"{gates.kind} {reading.name}\nunit ↓ over tokens →", fontsize=9)
    ink, _ = ink_and_paper(dark)
    curve = panels[-1]
    by_distance = np.argsort(reading.distance)
    curve.plot(reading.distance[by_distance], reading.gradient[by_distance], color=ink, marker="o", markersize=3)
    if float(reading.gradient.min()) > 0:
        curve.set_yscale("log")
        curve.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
        curve.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        curve.yaxis.set_minor_formatter(NullFormatter())
    curve.set_title(GRADIENT, fontsize=10)
    curve.set_xlabel("distance T − t", fontsize=8)
    curve.tick_params(labelsize=8)
    curve.grid(alpha=0.25)
    curve.spines[["top", "right"]].set_visible(False)


# ---------------------------------------------------------------- the page


def page(gates: Gates) -> str:
    """One offline file: choose a layer, a direction and a gate; hover for the number of a unit at a token."""
    title = f"Gates of a{'n' if gates.kind != 'gru' else ''} {gates.kind.upper()}"
    readings = [
        {
            "name": reading.name,
            "distance": reading.distance.tolist(),
            "gradient": [float(f"{value:.4g}") for value in reading.gradient],
            "states": {name: _packed(values, name.endswith("gate")) for name, values in reading.states().items()},
        }
        for reading in gates.readings
    ]
    data = embed("gates-data", {"tokens": [readable(token) for token in gates.tokens], "readings": readings})
    intro = (
        "<p>A column is a token, a row a unit of the recurrent layer; the units that hold the longest stand on top. "
        f"The bars below are {GRADIENT}: how much the state at the end of the reading still feels of the word vector "
        "that came in there. The equations were written out over the model's own weights; from the fused layer they "
        f'differ by {gates.difference:.1e} at most. <span class="quiet">Hover or use the arrow keys for numbers, click '
        "or <kbd>Enter</kbd> to pin one.</span></p>"
    )
    noscript = "<noscript><p>The picture is drawn by a script inside this file; please allow it.</p></noscript>"
    body = f'<main>\n<h1>{escape(title)}</h1>\n{intro}\n{noscript}\n<div id="gates"></div>\n{data}\n</main>'
    return document(title, body, ["page.css", "gates.css"], ["cividis.js", "gates.js"])


def _packed(values: Floats, gate: bool) -> dict[str, Any]:
    """A byte for each number, between `low` and `high`: finer than colours can show, and the page says how fine."""
    high = 1.0 if gate else max(float(abs(values).max()), 1e-6)
    low = 0.0 if gate else -high
    bytes_ = np.rint((values.astype(np.float64) - low) / (high - low) * 255).astype(np.uint8)
    mean = values.mean(axis=1) if gate else np.linalg.norm(values, axis=1)
    return {
        "low": low,
        "high": high,
        "units": values.shape[1],
        "bytes": base64.b64encode(bytes_.tobytes()).decode(),
        "summary": [round(float(value), 4) for value in mean],
    }
