"""The attack on whole documents: tables, paths, several classes and cards, as files and by the command line.

    python -m tests.certificate.attack_documents 0:5000           # the checker of the package, and what is true
    python -m tests.certificate.attack_documents 0:5000 --both    # the second checker too: every difference is printed
    python -m tests.certificate.attack_documents --honest 160     # honest ones: both checkers, and the oracle itself

What is accepted has to be true by an oracle that shares nothing with the checkers (`tests.certificate.whole_truth`).
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.certificate import documents, forger, whole_truth
from tests.certificate.documents import Base, Json, Members

HISTORY = (
    *("trace", "counters", "seconds", "stop_reason", "versions", "command", "driver", "settings", "calibration"),
    *("bound_source", "conflict", "validated"),
)
"""Fields that prove nothing: a file that has one of another kind may be refused as no result."""

STORED_OTHERWISE = "the certificate lacks the columns' centres"
"""Of the first rules, where the file is stored sparse and what was solved was not."""

PROVES_ONLY = re.compile(r"proves only (\S+), less than the claimed bound (\S+)\n")


def is_rounding(said: str) -> bool:
    """Whether the first refuses a bound by a billionth: its sums are in doubles, those of the second one exact."""
    found = PROVES_ONLY.search(said)
    return found is not None and float(found[2]) - float(found[1]) <= 1e-9 * abs(float(found[2]))


def second(path: Path, data: Path) -> tuple[str, Any]:
    """The word of the second checker, and why."""
    from tests import two_checkers  # which builds on the attack on results

    one = two_checkers.second()
    return one.verdict_of(lambda: one.judge(path, data))  # type: ignore[no-any-return]


def judged(
    found: Base, document: Json, members: Members, content: bytes, case: str, counts: Counter[str], both: bool
) -> int:
    """Count what is said of a document; 1 where it has to be settled, with the cause."""
    path, data = documents.put(found, document, content), found.folder / "d.csv"
    wrong: list[str] = []
    try:
        word, said = documents.first(path, data)
    except Exception:
        word, said = "fell over", traceback.format_exc()
        wrong.append(f"the first falls over: {said}")
    if not both:
        counts[f"{found.kind}: {word}"] += 1
    if word == "accepted":
        try:
            lies = whole_truth.lies(found, document, members, said) or whole_truth.prediction_lies(
                found, document, path
            )
        except Exception:
            lies = [f"the oracle falls over: {traceback.format_exc()}"]
        wrong += [f"accepted, but {'; '.join(lies)}"] if lies else []
        counts[f"{found.kind}: accepted and true"] += not lies
    if both:
        try:
            other, why = second(path, data)
        except Exception:
            other, why = "fell over", traceback.format_exc()
        odd = word == "unusable" and any(f"'{name}' cannot be" in said for name in HISTORY)
        loose = other == "accepted" and (odd or STORED_OTHERWISE in said or is_rounding(said))
        differ = other != "declined" and not loose and (other == "accepted") != (word == "accepted")
        own = "rejected" if word == "unusable" else word
        joint = f"DIFFER: first {own}, second {other}" if differ else f"both {own}"
        joint = f"declined ({own} by the first)" if other == "declined" else joint
        counts[f"{found.kind}: {f'{own} by the first alone' if loose else joint}"] += 1
        if other == "fell over" or differ:
            wrong.append(f"first {word}, second {other}: {said if word != 'accepted' else ''!r:.300} / {why!r:.300}")
        if "honest" in case and other == "rejected":
            wrong.append(f"the second rejects: {why}")
    if "honest" in case and word != "accepted":
        wrong.append(f"the first refuses: {said}")
    for line in wrong:
        print(f"{case} ({found.kind} of {found.folder.name}): {line}", flush=True)
    return bool(wrong)


def attacked(seed: int, counts: Counter[str], both: bool) -> int:
    """A forged document before the checkers; 1 where it has to be settled."""
    found, document, members, content, how = forger.forged(seed)
    if document == found.document and members == found.members:
        counts[f"{found.kind}: unchanged"] += 1
    return judged(found, document, members, content, f"{seed} by {how}", counts, both)


def honest(k: int, counts: Counter[str]) -> int:
    """An honest document before both checkers and the oracle."""
    found = documents.base(documents.KINDS[k % 4], k // 4)
    content = documents.signed(found.kind, found.document, found.members)
    return judged(found, found.document, found.members, content, f"honest {k}", counts, True)


def main(argv: list[str] | None = None) -> int:
    """Returns 1 where something has to be settled."""
    parser = argparse.ArgumentParser(prog="python -m tests.certificate.attack_documents", description=__doc__)
    parser.add_argument("seeds", nargs="?", default="0:0", help="FROM:TO")
    parser.add_argument("--both", action="store_true", help="put them before the second checker too")
    parser.add_argument("--honest", type=int, default=0, help="honest documents, of all kinds in turn")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most, less what is begun")
    given = parser.parse_args(argv)
    start, stop = (int(part) for part in given.seeds.split(":"))
    counts, wrong, began = Counter[str](), 0, time.monotonic()
    done = 0
    for k in range(given.honest):
        wrong += honest(k, counts)
    for seed in range(start, stop):
        wrong += attacked(seed, counts, given.both)
        done += 1
        if time.monotonic() - began > given.seconds:
            break
    print("\n".join(f"{n:8} {what}" for what, n in sorted(counts.items()) if n))
    print(f"{wrong} to be settled of {given.honest} honest and {done} forged, {time.monotonic() - began:.0f} s")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
