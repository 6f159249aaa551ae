"""The card whose features and points are chosen together: from a result, its data, and the card of its features."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mipfs import drivers
from mipfs.atoms.groups import Groups
from mipfs.data.instance import Instance
from mipfs.errors import MipfsError, UsageError
from mipfs.lab.scorecard.card import CardFamily, Scorecard
from mipfs.lab.scorecard.columns import columns_of
from mipfs.lab.scorecard.cone import Whole
from mipfs.lab.scorecard.joint import CardCandidates, Guide, JointSearch, JointSearchResult
from mipfs.lab.scorecard.make import card_of, ends_of, ground_of, of_set, problem_of, scorecard
from mipfs.lab.scorecard.within import CardRows, PlacedRows
from mipfs.plumbing.arrays import Array
from mipfs.plumbing.signals import hearing_signals, hold_signals
from mipfs.problem import Problem
from mipfs.readers.duals import decoded_rows
from mipfs.result.advice import ends_all
from mipfs.result.gap import relative_gap
from mipfs.result.prediction import user_columns, using
from mipfs.result.result import Result, Status, StopReason

MOST_COLUMNS = 5000
"""Columns that the candidates may have together."""
SHARE_OF_START, SHARE_OF_REAL = 0.2, 0.4
"""Of the time for the card to begin with, and then of what is left for the real weights."""
BEYOND = 1e-6
"""What the list of near-optimal sets reaches beyond the card that there is, relative."""


def together(result: Result, data: Instance, asked: tuple[int, int, float], time_limit: float) -> Scorecard:
    """The best card of at most M features, M and the features that are left out those of a result.

    Parameters
    ----------
    asked : (K, ranges, gap)
    time_limit : float, in seconds, of all of it

    Raises
    ------
    UsageError
        As `mipfs.lab.scorecard.scorecard`; a result with rows, penalties or forced features; too many columns.
    """
    started = time.monotonic()
    points, bins, gap = asked
    within = _supported_rows(result)
    among = _card_candidates(result, data, points, bins, within)
    deadline = started + time_limit
    with hearing_signals() as strike, hold_signals(deliver=False):  # what searches hears by itself: no card is lost
        share = max(1e-3, SHARE_OF_START * time_limit)
        first = scorecard(result, data, points=points, bins=bins, gap=gap, time_limit=share)
        start = _points_on_candidates(among, first), first.scale, _centre_intercept(first), first.objective
        guide = Guide.none(data.n_samples)
        if not strike.has_been:
            left = deadline - time.monotonic()
            guide = _solve_guide(among, first.objective * (1.0 - gap), SHARE_OF_REAL * left)
        found = JointSearch(among, guide, start, gap, deadline).run()
        return _card_of_search(result, data, first, among, found, asked, started)


def _supported_rows(result: Result) -> CardRows | None:
    """The rows of the result, where they are of a table that was cut; refuse what the proof does not carry."""
    params = result.params
    within = CardRows.of(result.rows, result.extra) if result.extra else None
    kept = {
        "rows other than those of mipfs bins": bool(result.rows or result.extra) and within is None,
        "forced features": bool(params.get("forced_in")),
        "a price of features (lambda, or a penalty)": bool(np.any(_all_prices(params))),
    }
    if held := [what for what, is_there in kept.items() if is_there]:
        raise UsageError(
            f"features and points together are chosen by their number alone, and the result has {held[0]}; solve "
            "without it, or make the card of the result's own features (without --joint)"
        )
    return within


def _all_prices(params: Mapping[str, Any]) -> Array:
    """What features cost, all of it."""
    one = params.get("lambda") or 0.0
    prices = [*one.values()] if isinstance(one, dict) else np.ravel(np.asarray(one, dtype=float)).tolist()
    return np.array([*prices, *(params.get("penalty") or {}).values()], dtype=float)


def _card_candidates(result: Result, data: Instance, points: int, bins: int, within: CardRows | None) -> CardCandidates:
    """All features that the result may select, in the columns of a card."""
    problem = problem_of(result, data, points, bins)
    if data.exponent:
        raise UsageError("numbers of these data are too far from 1 for features and points together; rescale them")
    out = {*result.params.get("forced_out", ())}
    names = [name for name in data.feature_names if name not in out]
    wide = using(result, data, names)  # what the user gave, as of the features of a card: by the code that scores it
    values = user_columns(wide, data)
    table = wide.scaling
    scales = {name: (table["shift"][name], table["scale"][name]) for name in names}
    columns = tuple(columns_of(values, scales, bins))
    if len(columns) > MOST_COLUMNS:
        raise UsageError(
            f"the candidates have {len(columns)} columns; features and points together take {MOST_COLUMNS}"
        )
    low, high = ends_of(columns, result.params.get("weight_bounds") or {}, points)
    most = result.params.get("M")
    M = len(names) if most is None else min(int(most), len(names))
    placed = None if within is None else PlacedRows(within, names)
    return CardCandidates(tuple(names), columns, ground_of(problem, columns, values), low, high, points, M, placed)


def _points_on_candidates(among: CardCandidates, card: Scorecard) -> Whole:
    """The points of a card on the columns of the candidates."""
    place = {(column.feature, column.threshold): j for j, column in enumerate(among.columns)}
    found = np.zeros(len(among.columns), dtype=np.int64)
    for column, one in zip(card.columns, card.points, strict=True):
        found[place[column.feature, column.threshold]] = one
    return found


def _centre_intercept(card: Scorecard) -> float:
    """The intercept of a card over the centred columns."""
    return card.intercept + card.scale * sum(
        points * column.center for points, column in zip(card.points, card.columns, strict=True)
    )


def _solve_guide(among: CardCandidates, worth: float, seconds: float) -> Guide:
    """The tree of the problem of real weights, solved until every set that is worth less is known."""
    ground = among.ground
    names = [f"c{j}" for j in range(len(among.columns))]
    data = Instance.from_arrays(ground.Z / ground.d, ground.y, feature_names=names, sample_weight=ground.c)
    single = len(among.columns) == len(among.names)
    parts = {name: np.flatnonzero(among.owner == f).tolist() for f, name in enumerate(among.names)}
    ends = {
        name: (None if low < 0 else 0.0, None if high > 0 else 0.0)
        for name, low, high in zip(names, among.low, among.high, strict=True)
        if low == 0 or high == 0
    }
    more: dict[str, Any] = {} if single else {"atoms": Groups(data, parts)}
    if among.within is not None:
        more["rows"] = among.within.rows(len(among.names))
    problem = Problem(
        data,
        loss=ground.loss.name,
        bias=ground.bias,
        M=among.M,
        C=1.0,
        weight_bounds=ends if single else {},
        **more,
    )
    end = time.monotonic() + seconds
    guide = Guide.none(ground.y.size)
    limit: dict[str, Any] = {}
    for _ in range(2):
        left = end - time.monotonic()
        if left <= 0.0:
            break
        try:
            found = drivers.solve(problem, "branch", time_limit=left, **limit)
        except MipfsError:  # without them there is less to begin with
            break
        guide = _guide_of_run(found, ground.y.size) or guide
        if ends_all(found):
            break
        above = (worth - found.objective) / abs(found.objective) if found.objective else 0.0
        if not above > 0.0:
            break
        limit = {"pool_gap": above + BEYOND}
    return guide


def _guide_of_run(found: Result, n: int) -> Guide | None:
    """The tree that a run proves its bound by."""
    if found.claim is None or "dual_bytes" not in (arrays := found.claim.arrays()):
        return None
    q = np.asarray(arrays["dual_q"], dtype=np.int64)
    width = max(n, arrays["dual_top"].size)
    whole = decoded_rows(arrays, np.arange(q.size), width)[:, :n]
    alphas = np.ldexp(whole.astype(float), -q[:, None])
    return Guide(alphas, *(np.asarray(arrays[name], dtype=np.int64) for name in ("feature", "children", "dual")))


def _card_of_search(
    result: Result,
    data: Instance,
    first: Scorecard,
    among: CardCandidates,
    found: JointSearchResult,
    asked: tuple[int, int, float],
    started: float,
) -> Scorecard:
    """The card that was found, about the result of its own features."""
    card, reason = first, found.stop_reason
    if found.objective < first.objective:
        used = frozenset(among.columns[j].feature for j in np.flatnonzero(found.points).tolist())
        inside = first.result if used <= {*first.result.weights} else of_set(result, data, used)
        if used <= {*inside.weights}:
            card = _card_with_points(inside, data, among, found, asked)
        elif not ends_all(inside):  # its SVM gives a feature no weight, so that no result can carry the card
            reason = StopReason.COMPLETED
    bound = min(found.bound, card.objective)
    is_closed = relative_gap(card.objective, bound) <= asked[2]
    out = tuple(name for name in data.feature_names if name not in {*among.names})
    within = CardRows.of(result.rows, result.extra) if result.extra else None
    claim = CardFamily(among.M, out, found.arrays, first.objective, found.supports, within)
    return replace(
        card,
        bound=bound,
        status=Status.OPTIMAL if is_closed else Status.FEASIBLE,
        stop_reason=reason,
        nodes=found.nodes,
        seconds=time.monotonic() - started,
        among=None,
        joint=claim,
    )


def _card_with_points(
    inside: Result, data: Instance, among: CardCandidates, found: JointSearchResult, asked: tuple[int, int, float]
) -> Scorecard:
    """A card of the features of a result, with the points that were found."""
    points, bins, gap = asked
    card = card_of(inside, data, (points, bins, 1.0 - 1e-9), time.monotonic())
    place = {(column.feature, column.threshold): j for j, column in enumerate(among.columns)}
    own = np.array([found.points[place[column.feature, column.threshold]] for column in card.columns])
    shift = float(own @ np.array([column.center for column in card.columns]))
    values = user_columns(inside, data)
    ground = ground_of(problem_of(inside, data, points, bins), card.columns, values)
    card = replace(
        card,
        points=tuple(own.tolist()),
        scale=found.scale,
        intercept=found.intercept - found.scale * shift,
        objective=ground.value(found.scale * own.astype(float), found.intercept),
        asked=gap,
    )
    return replace(card, totals_in_training=card.totals_of(values))
