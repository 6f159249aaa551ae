"""HTML read by the standard library's parser: its elements, whether they are closed, and what is on them."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "br", "path", "link", "img", "input"}
"""Elements that are not closed; paths close themselves."""


class Tree(HTMLParser):
    """What stands in a document.

    Attributes
    ----------
    tags : Counter of element names
    attributes : list of (element, attribute, value)
    ids : Counter
    texts : list of str, what people read
    scripts : list of (type, content)
    wrong : list of str, ends that have no beginning, and the other way round
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: Counter[str] = Counter()
        self.texts: list[str] = []
        self.scripts: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self._open: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is never closed" for tag, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids.update(value or "" for name, value in attrs if name == "id")
        if tag not in VOID:
            self._open.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((str(dict(attrs).get("type")), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open[-1][0] != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        tag = self._open[-1][0] if self._open else ""
        if tag == "script":
            kind, content = self.scripts[-1]
            self.scripts[-1] = kind, content + data
        elif tag != "style" and data.strip():
            self.texts.append(data.strip())

    @property
    def handlers(self) -> list[tuple[str, str, str]]:
        """Attributes that run scripts or fetch what stands elsewhere; links inside the page are none."""
        risky = ("src", "href", "action", "srcset", "data", "poster", "xlink:href")
        return [
            one
            for one in self.attributes
            if one[1].startswith("on") or (one[1] in risky and not one[2].startswith("#"))
        ]
