"""Text of others as it is shown: what a terminal or a browser would obey, and nobody would see, is written out.

Names of features come from files, and a certificate's words from whoever wrote it. An escape code in one erases lines
of a terminal, an override of the direction of text shows another order, and neither can be seen. Whatever prints
text that is not ours prints it by way of this file.
"""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from typing import Any

OBEYED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's categories: control codes, formats (directions, joiners), halves of characters, ends of lines."""
SPACES = re.compile("[ \n]+")
OUTSIDE = re.compile("[^\n\x20-\x7e]")
"""What may have to be written out in a JSON text, where line ends stand between strings only."""


MOST_LINE = 1000
"""Characters of a message."""
FORMULA = "=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"
"""With what a cell begins that a spreadsheet computes; the last four are full-width, which some take for the others."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def escape_invisible(text: str) -> str:
    r"""The text with every such character as Python writes it, ``\x1b`` or ``\u202e``."""
    return text if text.isprintable() else "".join(map(_visible_character, text))


def in_one_line(text: str) -> str:
    """A message that may have several lines, in one line, with every unprintable character as Python writes it.

    Of one that quotes thousands of characters of a file the middle is left out.
    """
    line = escape_invisible(SPACES.sub(" ", text).strip())
    return line if len(line) <= MOST_LINE else f"{line[: MOST_LINE // 2]} [...] {line[-MOST_LINE // 2 :]}"


def escape_text(text: str) -> str:
    """The visible text with what HTML reserves escaped."""
    return html.escape(escape_invisible(text))


def in_cell(value: Any) -> Any:
    """What stands for a value in a cell of CSV: a text that a spreadsheet would take for a formula gets a quote before
    it, which the spreadsheet does not show, and one with a character that is obeyed has it written out.

    A number is none, though it may begin with a sign.
    """
    if not isinstance(value, str):
        return value
    text = escape_invisible(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def in_json(text: str) -> str:
    """A JSON text of the same meaning with such characters as JSON escapes them."""
    return text if text.isascii() and "\x7f" not in text else OUTSIDE.sub(_in_json, text)


def as_json(document: Any) -> str:
    """A document as JSON, indented, with such characters as it escapes them."""
    return in_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def finite_or_none(value: Any) -> Any:
    """A value for JSON, which has no infinity: None for a number that is not finite."""
    if not isinstance(value, float):
        return value
    return float(value) if math.isfinite(value) else None


def _visible_character(character: str) -> str:
    return repr(character)[1:-1] if unicodedata.category(character) in OBEYED else character


def _in_json(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in OBEYED:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
