"""Modules as they go out say what they say as they are written."""

from __future__ import annotations

import pytest

from jumok.studio import assets
from jumok.studio.slim import slim, tight


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("const a = b + c;", "const a=b+c;"),
        ("return a - -b + +c / /x y/.source;", "return a- -b+ +c/ /x y/.source;"),
        ('if (a in b) return " x = y ";', 'if(a in b)return" x = y ";'),
        ("const t = `a b ${ c + `d e ${ f } g` } h = i`;", "const t=`a b ${c+`d e ${f} g`} h = i`;"),
        ("const o = `${ { a: 1 }.a } }`;", "const o=`${{a:1}.a} }`;"),
        (r"x = a.replace(/[/ ] \/ b/g, ' / ');", r"x=a.replace(/[/ ] \/ b/g,' / ');"),
        ("x = a / b / c;", "x=a/b/c;"),
        (r'"it\'s \" a" + b', r'"it\'s \" a"+b'),
        ("for (const one of [ 1, 2 ]) async () => await one;", "for(const one of[1,2])async()=>await one;"),
        ("x = 주목 + '한 글';", "x=주목+'한 글';"),
    ],
)
def test_spaces_that_say_nothing_are_left_out(line: str, expected: str) -> None:
    assert tight(line) == expected
    assert tight(expected) == expected


def test_lines_stay_where_they_are() -> None:
    module = 'import { a, b } from "./c.js";\n// what for\n  const x = 1;\n\n  // why\nexport const y = x;\n'
    assert slim(module) == 'import { a, b } from "./c.js";\n\nconst x=1;\n\n\nexport const y=x;\n'


@pytest.mark.parametrize("line", ["const a = `b", 'x = "y', "z = `a ${ b"])
def test_a_text_over_several_lines_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="beyond its line"):
        tight(line)


def test_every_module_can_be_sent() -> None:
    for name in assets.files():
        if name.endswith(".js"):
            whole, sent = assets.files()[name].read_text(encoding="utf-8"), assets.text(name)
            assert sent.count("\n") == whole.count("\n")
            bare = ["".join(line.split()) for line in whole.split("\n")]
            kept = ["".join(line.split()) for line in sent.split("\n")]
            assert kept == ["" if line.startswith("//") else line for line in bare]  # nothing but spaces is gone
