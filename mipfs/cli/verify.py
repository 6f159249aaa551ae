"""``mipfs verify``: check the certificate of a result against the raw data."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from mipfs.cli.options import DataFile, Json, Label, Positive, Quiet, ResultFile, Scale, Seed, read_options
from mipfs.errors import UsageError

if TYPE_CHECKING:
    from mipfs.certificate.check import Report
    from mipfs.instance import Instance
    from mipfs.result import Result

REJECTED = 1


def verify(
    result_file: ResultFile,
    data_file: DataFile,
    scale: Scale = None,
    label: Label = None,
    positive: Positive = None,
    json: Json = None,
    quiet: Quiet = False,
    seed: Seed = 0,
) -> int:
    """Check the certificate of a result against DATA."""
    import mipfs
    from mipfs.cli.errors import complain
    from mipfs.cli.output import check_target, write_json
    from mipfs.result import Result

    check_target(json, result_file, data_file)
    result = Result.load(result_file)
    data = _data_of(result, data_file, scale.value if scale else None, label, positive)
    report = mipfs.verify(result, data)
    if json is not None:
        write_json({"schema": 1} | {name: _plain(value) for name, value in dataclasses.asdict(report).items()}, json)
    if not report.accepted:
        complain(f"{result_file}: rejected: {report.reason}")
        return REJECTED
    if json != "-" and not quiet:
        _show(report)
    return 0


def _data_of(result: Result, data_file: str, scale: str | None, label: str | None, positive: str | None) -> Instance:
    """The data, scaled as the result says and with its labels."""
    from mipfs import readers

    kind = result.scaling["kind"]
    if scale is not None and scale != kind:
        raise UsageError(f"--scale {scale}: the result is about data with scale {kind!r}; leave the option out")
    given: dict[str, Any] = read_options(None, label, positive) | {"scale": kind}
    if positive is None:
        given["positive"] = result.labels["positive"]
    return readers.read(data_file, **given)


def _show(report: Report) -> None:
    from mipfs.cli.text import number, percent, show_pairs

    empty = report.bound == math.inf
    below = report.result_bound - report.bound > 1e-9 * max(1e-10, abs(report.bound))
    pairs = [
        ("certificate", "accepted"),
        ("objective", f"{number(report.objective)}  (recomputed)"),
        ("bound", "no selection is allowed  (proven)" if empty else f"{number(report.bound)}  (proven)"),
        ("gap", percent(report.gap)),
        ("checked", f"{report.n_leaves} leaves, {report.n_duals} dual vectors, {report.seconds:.2f} s"),
    ]
    if below:
        pairs.insert(3, ("result's bound", f"{number(report.result_bound)}  (not certified beyond the proven one)"))
    show_pairs(pairs)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
