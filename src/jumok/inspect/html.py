"""Attention as one HTML file that works offline, from disk, on a phone: hover for numbers, click to pin a row.

Nothing is loaded from anywhere. The content security policy names the page's own style and script by their hashes, so
that nothing else can run even if a text were to slip through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention, visible

ATTENTION_SCRIPTS = ["cividis.js", "attention.js"]
Languages = tuple[str, str]  # of source and target, as in lang="ko"; "" when not known


def page(attentions: Sequence[Attention], title: str = "Attention", languages: Languages = ("", "")) -> str:
    """A page with the attention of one sentence or several."""
    body = f"<main>\n<h1>{escape(title)}</h1>\n{attention_block(attentions, languages)}\n</main>"
    return document(title, body, ["page.css", "attention.css"], ATTENTION_SCRIPTS)


def write_page(
    path: str | Path, attentions: Sequence[Attention], title: str = "Attention", languages: Languages = ("", "")
) -> None:
    path = Path(path)
    with disk_errors_named("writing the page", path, "Choose another place."):
        replace_file(path, page(attentions, title, languages))


SIDES = {"cross": (0, 1), "self": (0, 0), "causal": (1, 1)}  # of keys and queries: 0 is the source, 1 the output
INTRODUCTIONS = {
    "cross": "Each row is a word that the model wrote, the query; its colours say how much the model looked at each "
    "word of the source, the keys, while writing it.",
    "self": "Each row is a word of the source, the query; its colours say how much it looked at each word of the "
    "source, itself included: the keys.",
    "causal": "Each row is a word that the model wrote, the query; its colours say how much the model looked at each "
    "word it had written before, the keys, while writing it.",
}


def attention_block(
    attentions: Sequence[Attention], languages: Languages = ("", ""), titles: Sequence[str] = ()
) -> str:
    """The part of a page that shows attention. The page needs attention.css, ATTENTION_SCRIPTS, one block at most.

    `titles`: what to call each picture, where "Sentence 1" does not say it.
    """
    if not attentions:
        return '<p class="quiet">There is no attention to show.</p>'
    sentences = [_rounded(attention) for attention in attentions]
    kinds = sorted({attention.kind if attention.kind in SIDES else "cross" for attention in attentions})
    legend = '<div class="legend"><span>0</span><i></i><span>1</span><span>attention weight</span></div>'
    intro = (
        f"<p>{' '.join(INTRODUCTIONS[kind] for kind in kinds)} A row adds up to 1. "
        '<span class="quiet">Keys: <kbd>Tab</kbd> to a sentence, arrows to move, <kbd>Enter</kbd> to pin, '
        "<kbd>Esc</kbd> to let go.</span></p>"
    )
    names = titles or [f"Sentence {number}" for number, _ in enumerate(attentions, 1)]
    sections = [_section(index, *both) for index, both in enumerate(zip(names, attentions, strict=True))]
    data = embed("attention-data", {"languages": list(languages), "sentences": sentences})
    noscript = "<noscript><p>The pictures are drawn by a script inside this file; please allow it.</p></noscript>"
    return "\n".join([intro, legend, noscript, *sections, data])


def _section(index: int, title: str, attention: Attention) -> str:
    known = attention.score is not None and math.isfinite(attention.score)
    score = f"<span>log-probability {attention.score:.2f}</span>".replace(" -", " −") if known else ""
    name = f"<span>{escape(attention.name)}</span>" if attention.name else ""
    return (
        f'<section class="attention" data-index="{index}" aria-label="{escape(title)}">'
        f"<header><h3>{escape(title)}</h3>{score}{name}</header></section>"
    )


def _rounded(attention: Attention) -> dict[str, Any]:
    """What the script needs: text that can be shown, and no more digits than can be seen."""
    return {
        "sides": SIDES.get(attention.kind, SIDES["cross"]),
        "source": [readable(token) for token in attention.source],
        "target": [readable(token) for token in attention.target],
        "weights": [[round(float(x), 6) if math.isfinite(x) else None for x in row] for row in attention.weights],
    }


# ---------------------------------------------------------------- safe pages


def escape(text: str) -> str:
    """Text from data, for use between tags or in a quoted attribute."""
    return html.escape(readable(text), quote=True)


def picture(light: bytes, dark: bytes, about: str, width: int | None = None) -> str:
    """An image (SVG or PNG) for a light page and one for a dark, both inside the page."""
    day, night = (f"data:image/{_kind(each)};base64,{base64.b64encode(each).decode('ascii')}" for each in (light, dark))
    wide = "" if width is None else f' width="{width}"'
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{night}">'
        f'<img src="{day}"{wide} alt="{escape(about)}"></picture>'
    )


def _kind(image: bytes) -> str:
    return "png" if image.startswith(b"\x89PNG") else "svg+xml"


def framed(page: str, height: int) -> str:
    """A whole page inside a notebook, in a frame of its own so that its styles stay there. The page is safe already."""
    return f'<iframe srcdoc="{html.escape(page, quote=True)}" style="width:100%;height:{height}px;border:0"></iframe>'


def readable(text: str) -> str:
    """A browser joins letters as Persian or Hindi ask for it, so the joiners stay; everything else hidden is shown."""
    return visible(text, keep="\u200c\u200d")


def embed(name: str, data: Any) -> str:
    """Data for a script: JSON in which no `</script>` and no `<!--` can occur."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{escape(name)}">{safe}</script>'


def asset(name: str) -> str:
    return (resources.files("jumok.inspect") / "assets" / name).read_text(encoding="utf-8")


def document(title: str, body: str, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A whole page around `body`, with its styles and scripts inside and everything else forbidden."""
    style = "\n".join(asset(name) for name in styles)
    code = [asset(name) for name in scripts]
    allowed = " ".join(map(_hash, code)) or "'none'"
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    inline = "\n".join(f"<script>{text}</script>" for text in code)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="jumok">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
{inline}
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
