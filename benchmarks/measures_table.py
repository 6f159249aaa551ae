"""reports/measures.md: means, deviations and paired differences of the text study, and the times of the oracle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from exact_parts.markdown import DASH, table
from exact_parts.store import Line

OURS = "two_layer for F1"
FITS = {
    "own": "its own classifier",
    "plain": "plain SVM on its features",
    "F1": "structural SVM for F1 on its features",
}
BEST = "the one that validation prefers"
TUNING = (0, 100)
"""Splits that were looked at when the protocol was set; no table has them."""
LARGEST = {OURS: 1000.0, "FGM": 100.0, "SVM-RFE": 100.0}
"""The largest loss weights that validation was offered (`WEIGHTS` and `F1_WEIGHTS` of measures.py)."""


def document(lines: list[Line]) -> str:
    """The page."""
    text = [line for line in lines if line["suite"] == "text" and line["seed"] not in TUNING]
    oracle = [line for line in lines if line["suite"] == "oracle"]
    parts = ["# Selecting for F1: what was measured", INTRODUCTION, _machine(lines)]
    if text:
        parts += [_text(text), _reading(text)]
    if oracle:
        parts.append(_oracle(oracle))
    return "\n\n".join(parts) + "\n"


INTRODUCTION = (
    "Made by `python benchmarks/measures.py text` and `python benchmarks/measures.py oracle` (`MIPFS_DATA` names the "
    "folder of the data sets); `python benchmarks/measures.py table` makes this page again from `measures.jsonl`."
)

PROTOCOL = """## F1 on an imbalanced text task

Reuters-21578, acq against the rest, 35,405 tf-idf unigrams. Positives are left out at random until they are 4% of
both parts of a split: 4,000 training documents (160 positive) and 6,972 test documents (279 positive). Every method
chooses its loss weight, a bias or none, and the weight of a fit on its features by F1 on a third of the training
part, and is fitted again on all of it (the choosing part has 53 positives, so that choices are noisy). A driver stops
at a relative gap of 1e-2 or after 60 iterations, and its M features are then exchanged for others while that pays
(splicing), for F1 and for FGM alike; no limit of time, so that the outcome does not depend on the machine's speed.
`two_layer for F1` has no bias, and three loss weights to choose from, where FGM and SVM-RFE have six settings, the
l1-SVM two and the l1 bundle, without a bias, one.

How the protocol came about: it was set by looking at splits 0 (its test F1, before the loss weights were fixed) and
100, which are therefore left out of the table. There the weights of the measure were moved up to 10, 100, 1000 (in
units of n/4), because larger ones did better for it; those of the squared hinge stayed at 1, 10, 100, because 1000 took
too long, so FGM and SVM-RFE were not given the same chance at large weights. An earlier version of this page had
`two_layer` cut off after 30 iterations, far from converged, and no splicing; the splits, the weights and the choices
offered are those of that version, and it had 0.542 ± 0.054 (M = 10) and 0.638 ± 0.025 (M = 50) for `two_layer for F1`
where validation chooses the fit. M = 20 was left out for time. SVM^perf has the weights 1, 10, 100, because 1000 had
not finished after four minutes. All splits are draws from the same documents, so those left out overlap with those in
the table.

F1 on the test part of {splits}, mean ± standard deviation over the splits:"""


def _machine(lines: list[Line]) -> str:
    """The machine and the versions of the last line."""
    machine, versions = lines[-1]["machine"], lines[-1]["versions"]
    shown = ", ".join(f"{name} {version}" for name, version in versions.items() if name in ("numpy", "scipy", "numba"))
    return (
        f"Machine: {machine['cores']} cores, {machine['cpu']}, Python {machine['python']}, {shown}; one thread is used."
    )


def _values(text: list[Line], method: str, M: int, fit: str, name: str = "f1") -> dict[int, float]:
    """A value by seed; `BEST` is the fit of largest F1 in validation, of equal ones the first of `FITS`."""
    if fit == BEST:
        reached = {each: _values(text, method, M, each, "validation_f1") for each in FITS}
        values = {each: _values(text, method, M, each, name) for each in FITS}
        chosen = {seed: max(FITS, key=lambda each: reached[each].get(seed, -1.0)) for seed in reached["own"]}
        return {seed: values[each][seed] for seed, each in chosen.items()}
    return {
        line["seed"]: one[name]
        for line in text
        if line["method"] == method
        for one in line["lines"]
        if (one["M"], one["fit"]) == (M, fit)
    }


def _spread(values: Iterable[float], form: str = "{:.3f}") -> str:
    """Mean ± standard deviation."""
    given = np.array(list(values), dtype=float)
    if not given.size:
        return DASH
    deviation = form.format(given.std(ddof=1)).lstrip("+") if given.size > 1 else DASH
    return f"{form.format(given.mean())} ± {deviation}"


def _order(text: list[Line]) -> tuple[list[str], list[int], set[int]]:
    """Methods, numbers of features and seeds that there are."""
    methods = list(dict.fromkeys(line["method"] for line in text if line["method"] != "SVM^perf"))
    sizes = sorted({one["M"] for line in text if line["method"] != "SVM^perf" for one in line["lines"]})
    return methods, sizes, {line["seed"] for line in text}


def _text(text: list[Line]) -> str:
    """The table of the study."""
    methods, sizes, seeds = _order(text)
    rows = []
    for M in sizes:
        for method in methods:
            used = _values(text, method, M, "own", "n_features").values()
            count = f"{min(used)}" if min(used) == max(used) else f"{min(used)}–{max(used)}"
            cells = [_spread(_values(text, method, M, fit).values()) for fit in (*FITS, BEST)]
            seconds = np.median(list(_values(text, method, M, "own", "select_seconds").values()))
            gaps = [
                1.0 - bound / objective
                for objective, bound in zip(
                    _values(text, method, M, "own", "objective").values(),
                    _values(text, method, M, "own", "bound").values(),
                    strict=True,
                )
                if objective and bound is not None
            ]
            gap = f"{np.median(gaps):.0%}" if gaps else DASH
            rows.append([str(M), method, count, *cells, gap, f"{seconds:.1f}"])
    everything = [one["f1"] for line in text if line["method"] == "SVM^perf" for one in line["lines"]]
    if everything:
        label = f"SVM^perf ({len(everything)} splits)"
        rows.append(["all", label, "35405", DASH, DASH, _spread(everything), *3 * [DASH]])
    head = ["M", "method", "features", *FITS.values(), BEST, "gap", "seconds"]
    said = f"{len(seeds)} split{'s' * (len(seeds) != 1)}"
    notes = (
        "`gap`: of the M features against the bound on the best M, median, each method in its own problem: what a "
        "convex relaxation leaves open at large loss weights. "
        "`seconds`: one selection at the chosen setting, median, on a machine that had other work too. The l1-SVM of "
        "so few features is shrunken to almost nothing; its features are worth what the fits on them reach."
    )
    return "\n\n".join([PROTOCOL.format(splits=said), table(head, rows), notes, _edges(text, methods, sizes)])


def _edges(text: list[Line], methods: list[str], sizes: list[int]) -> str:
    """How often validation chose the largest loss weight that it was offered."""
    cells = []
    for method in methods:
        weights = [weight for M in sizes for weight in _values(text, method, M, "own", "weight").values()]
        if method in LARGEST:
            cells.append(f"{method} {sum(weight == LARGEST[method] for weight in weights)} of {len(weights)}")
    return (
        "A larger loss weight than those offered might be better: for a method's own classifier validation chose the "
        f"largest one this often: {', '.join(cells)}."
    )


def _reading(text: list[Line]) -> str:
    """Differences on the same split."""
    methods, sizes, _ = _order(text)
    rows = []
    for M in sizes:
        ours = {fit: _values(text, OURS, M, fit) for fit in (*FITS, BEST)}
        for method in methods:
            if method == OURS:
                continue
            cells = []
            for fit in (*FITS, BEST):
                other = _values(text, method, M, fit)
                shared = sorted(set(ours[fit]) & set(other))
                differences = [ours[fit][seed] - other[seed] for seed in shared]
                wins = sum(value > 0 for value in differences)
                cells.append(f"{_spread(differences, '{:+.3f}')}, {wins} of {len(shared)}")
            rows.append([str(M), method, *cells])
    head = ["M", f"{OURS} less", "own classifiers", "both plain SVMs", "both fitted for F1", BEST]
    lead = (
        "Differences on the same split (mean ± standard deviation, and on how many splits ours is better). Where both "
        "are fitted alike, only the features differ. The splits overlap, so the deviations are no standard errors:"
    )
    return "\n\n".join([lead, table(head, rows)])


def _oracle(oracle: list[Line]) -> str:
    """The table of the oracle."""
    rows = []
    for line in oracle:
        step, search, full = line["oracle_seconds"], line["search_seconds"], line.get("full_search_seconds")
        cells = [f"{line['n']:,}", f"{line['share']:.0%}", line["scores"], f"{1e3 * step:.2f}", f"{1e3 * search:.3f}"]
        if full is None:
            rows.append([*cells, DASH, DASH, DASH])
        else:
            ratios = f"{full / search:.0f}", f"{(step - search + full) / step:.1f}"
            rows.append([*cells, f"{1e3 * full:.2f}", *ratios])
    head = ["n", "positive", "scores", "oracle ms", "search ms", "O(PN) search ms", "ratio of searches"]
    head.append("ratio of oracles")
    lead = (
        "## The most violated labelling for F1\n\n`oracle` is the whole step (two sorts, sums, the search, the "
        "labelling), `search` the divide and conquer over (a, b) alone, beside the full search over the same sums, "
        "which finds the same labelling. The ratio of oracles puts the full search into the step. Medians."
    )
    return "\n\n".join([lead, table(head, rows)])
