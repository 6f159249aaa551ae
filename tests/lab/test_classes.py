"""More than two classes: separate proofs, and a shared support beside every support there is, each SVM by a QP."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import mipfs
from mipfs.cli import main
from mipfs.data.against_rest import of_many, weigh_classes
from mipfs.data.instance import Instance, Labels, Row, SelectDefaults
from mipfs.data.stacked import features_among, stack_instances
from mipfs.errors import DataError, UsageError
from mipfs.lab import page
from mipfs.lab.classes import OneVsRest, parts_of, solve_shared, stating_scaling
from tests.schemas import broken, schema

LOSSES = ("hinge", "squared-hinge", "logistic")
STORED: dict[str, Any] = {"dense": np.asfortranarray, "sparse": sparse.csc_array}


def draw(seed: int, n: int = 24, p: int = 4, K: int = 3) -> tuple[Any, Any]:
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, p)) * np.array([1.0, 3.0, 0.5, 2.0, 1.0][:p]) + 1.0
    codes = np.argmax(X[:, :2] @ r.standard_normal((2, K)) + r.standard_normal((n, K)), axis=1)
    codes[:K] = range(K)
    return X, codes


def instances(X: Any, codes: Any, scale: Any = "standard") -> list[Instance]:
    labels = [Labels(f"not {k}", int(k)) for k in np.unique(codes)]
    return [
        Instance.from_arrays(X, np.where(codes == one.positive, 1.0, -1.0), scale=scale, labels=one) for one in labels
    ]


def least(data: list[Instance], ids: tuple[int, ...], loss: str, C: float, bias: bool) -> float:
    """The sum over the classes of ½‖w‖² + ½b² + loss, on some columns."""
    total = 0.0
    for one in data:
        w, b = cp.Variable(max(len(ids), 1)), cp.Variable()
        score = (one.X[:, list(ids)] @ w if ids else np.zeros(one.n_samples)) + b
        m = cp.multiply(one.y, score)
        lost = {"hinge": cp.pos(1 - m), "squared-hinge": 0.5 * cp.square(cp.pos(1 - m)), "logistic": cp.logistic(-m)}
        held = [w == 0] if not ids else []
        problem = cp.Problem(
            cp.Minimize(
                0.5 * cp.sum_squares(w) + 0.5 * cp.square(b) + C * cp.sum(cp.multiply(one.sample_weight, lost[loss]))
            ),
            [*held, *([] if bias else [b == 0])],
        )
        total += float(problem.solve(solver=cp.CLARABEL))
    return total


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_shared_support_is_the_best_of_all(loss: str, bias: bool) -> None:
    for seed, M in ((1, 1), (2, 2)):
        data = instances(*draw(seed))
        values = {
            ids: least(data, ids, loss, 0.5, bias) for k in range(M + 1) for ids in itertools.combinations(range(4), k)
        }
        best = min(values, key=values.__getitem__)
        result = solve_shared(data, M=M, C=0.5, loss=loss, bias=bias, options={"gap": 1e-7})
        assert result.objective == pytest.approx(values[best], rel=1e-5)
        assert {name for name in result.selected if name != "(intercept)"} == {f"x{j + 1}" for j in best}
        assert mipfs.verify(result, stack_instances(data, bias)).accepted


@pytest.mark.slow
def test_a_feature_costs_once_for_all_classes_and_intercepts_nothing() -> None:
    data = instances(*draw(3))
    lam = 2.0
    values = {
        ids: least(data, ids, "hinge", 0.5, True) + lam * len(ids)
        for k in range(5)
        for ids in itertools.combinations(range(4), k)
    }
    result = solve_shared(data, C=0.5, lam=lam, options={"gap": 1e-7})
    assert result.objective == pytest.approx(min(values.values()), rel=1e-5)


def test_the_group_of_the_intercepts_is_not_counted() -> None:
    result = solve_shared(instances(*draw(3)), M=2, C=1.0)
    assert ", 2 of 4 groups of 12 features, " in repr(result)
    assert "selected   2 of 4 groups of 12 features" in result.summary()
    assert "The best 2 of 4 groups" in page.html([page.Item("shared", result)])


def test_class_weights_rows_and_a_budget_of_a_shared_support() -> None:
    X, codes = draw(6)
    budget = Row("budget", {"x1": 3.0, "x2": 1.0, "x3": 1.0, "x4": 2.0}, -np.inf, 3.0)
    plain = [replace(one, rows=(budget,), select=SelectDefaults(M=2)) for one in instances(X, codes)]
    data = weigh_classes(plain, of_many({0: 5, 2: 0.5}, plain))
    np.testing.assert_array_equal(data[1].sample_weight, np.array([5.0, 1.0, 0.5])[codes])
    allowed = [(), (0,), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3)]
    best = min(allowed, key=lambda ids: least(data, ids, "hinge", 0.5, True))
    result = solve_shared(data, C=0.5, options={"gap": 1e-7})
    assert result.objective == pytest.approx(least(data, best, "hinge", 0.5, True), rel=1e-5)
    assert set(features_among(result.selected)) == {f"x{j + 1}" for j in best}
    report = mipfs.verify(result, stack_instances(data))
    assert report.accepted
    assert not report.differs
    other = [replace(one, rows=(replace(budget, ub=2.0),)) for one in data]
    assert "row 'budget'" in mipfs.verify(result, stack_instances(other)).differs[0]
    balanced = of_many("balanced", plain)
    assert balanced == pytest.approx({str(k): 24 / (3 * np.sum(codes == k)) for k in range(3)})


def test_the_classes_of_a_shared_support_are_described_without_a_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    X, codes = draw(1)
    data = instances(X, codes)
    together = solve_shared(data, M=2, C=0.5)
    monkeypatch.setattr("mipfs.drivers.solve", None)
    parts = parts_of(together, data, C=0.5)
    for k, part in enumerate(parts):
        assert set(part.selected) == set(features_among(together.selected))
        assert part.labels == {"negative": f"not {k}", "positive": k}
        margins = data[k].y * part.decision_function(X)
        w = [part.weights[name] * part.scaling["scale"][name] for name in part.weights]
        assert part.objective == pytest.approx(0.5 * np.dot(w, w) + 0.5 * np.maximum(0, 1 - margins).sum())
        assert mipfs.Result.from_json(part.to_json()).weights == part.weights


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sparse_", [False, True])
def test_the_estimator(sparse_: bool) -> None:
    from scipy import sparse

    X, codes = draw(4, n=40)
    names = np.array(["a", "b", "c"])[codes]
    model = mipfs.FSPClassifier(M=2, C=0.5, shared_support=True, scale="standard")
    given = sparse.csr_array(X) if sparse_ else X
    model.fit(given, names)
    assert model.coef_.shape == (3, 4)
    assert model.support_.sum() <= 2
    np.testing.assert_array_equal(model.support_, np.any(model.coef_ != 0, axis=0))
    assert model.verify(given, names).accepted
    data = instances(X, codes)
    assert model.result_.objective == pytest.approx(
        min(least(data, ids, "hinge", 0.5, True) for ids in itertools.combinations(range(4), 2)), rel=2e-4
    )
    values = model.decision_function(given)
    np.testing.assert_allclose(values, X @ model.coef_.T + model.intercept_)
    assert (model.predict(given) == names).mean() > 0.5
    own = np.where(codes == 0, "a", "b")
    one, other = clone(model).fit(X, own), clone(model).set_params(shared_support=False).fit(X, own)
    np.testing.assert_array_equal(one.coef_, other.coef_)  # of two classes it says nothing
    with pytest.raises(ValueError, match="shared_support takes no budget"):
        clone(model).set_params(budget=1.0).fit(X, names)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, codes = draw(5, n=50)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["kind"] = np.array(["low", "middle", "high"])[codes]
    frame.loc[2, "a"] = np.nan
    frame.insert(0, "id", [f"R{i}" for i in range(50)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.drop(columns=["kind", "id"]).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more", [[], ["--shared-support"]], ids=["separate", "shared"])
def test_from_the_command_line(table: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    saved, data, new = (str(table.with_name(name)) for name in ("r.json", "t.csv", "new.csv"))
    asked = ["--label", "kind", "--scale", "standard", "--impute", "median", "--drop", "id", "--M", "2", "--C", "0.5"]
    assert main(["solve", "fsp-m", data, *asked, *more, "--json", saved]) == 0
    said = capsys.readouterr().out
    assert "one selection for all classes" in said if more else "one selection a class" in said
    document = json.loads(Path(saved).read_text())
    assert document["classes"] == ["high", "low", "middle"]
    assert document["status"] == "OPTIMAL"
    assert document["bound"] <= document["objective"]
    assert main(["verify", saved, data]) == 0
    assert capsys.readouterr().out.count("certificate  accepted") == (1 if more else 3)
    assert main(["evaluate", saved, data, "--json", "-", "-q"]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert sum(map(sum, judged["confusion"])) == 50
    assert main(["predict", saved, new]) == 0
    labels = capsys.readouterr().out.split()
    truth = pd.read_csv(data)["kind"]
    assert judged["accuracy"] == pytest.approx(np.mean(truth.to_numpy() == np.array(labels)))
    back = OneVsRest.load(saved)
    assert back.predict(pd.read_csv(new)).tolist() == labels
    assert main(["predict", saved, new, "--scores"]) == 0
    assert capsys.readouterr().out.startswith("label,score of high,score of low,score of middle\n")
    assert not broken(document, schema("classes"))
    weights = next(one["weights"] for one in document["results"] if one["weights"])
    name = next(iter(weights))
    weights[name] *= 1.01  # what predict uses is what was proven
    Path(saved).write_text(json.dumps(document))
    assert main(["verify", saved, data]) == 1
    assert "rejected: " in capsys.readouterr().err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more", [[], ["--shared-support"]], ids=["separate", "shared"])
def test_one_class_is_named_behind_the_file(table: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    saved, data, page = (str(table.with_name(name)) for name in ("r.json", "t.csv", "r.html"))
    asked = ["--label", "kind", "--scale", "standard", "--impute", "median", "--drop", "id", "--M", "2"]
    assert main(["solve", "fsp-m", data, *asked, *more, "-p", "class_weight=low:3", "--json", saved, "-q"]) == 0
    assert json.loads(Path(saved).read_text())["class_weight"] == {"high": 1.0, "low": 3.0, "middle": 1.0}
    assert main(["verify", f"{saved}#low", data]) == 0
    assert capsys.readouterr().out.startswith("all classes:\n" if more else "low:\n")  # a shared one has one proof
    assert main(["evaluate", f"{saved}#low", data, "--json", "-", "-q"]) == 0
    judged = json.loads(capsys.readouterr().out)
    found, truth = OneVsRest.load(saved), pd.read_csv(data)
    values = found.named("low").decision_function(truth)
    assert judged["accuracy"] == pytest.approx(np.mean((values > 0) == (truth["kind"] == "low").to_numpy()))
    assert main(["predict", f"{saved}#low", data]) == 0
    labels = np.array(capsys.readouterr().out.splitlines())
    np.testing.assert_array_equal(labels == "low", values > 0)
    if not more:
        plain, again = str(table.with_name("p.json")), str(table.with_name("again.json"))
        assert main(["solve", "fsp-m", data, *asked, "--json", plain, "-q"]) == 0
        assert main(["refit", f"{plain}#low", data, "--C", "2", "--json", again, "-q"]) == 0
        assert main(["verify", again, data, "-q"]) == 0  # of low against the rest, which the data have as three classes
    capsys.readouterr()
    assert main(["verify", f"{saved}#lwo", data]) == 2
    assert "#lwo: no such class; did you mean 'low'?" in capsys.readouterr().err
    assert main(["verify", f"{saved}#nope", data]) == 2
    assert "#nope: no such class; classes are called like 'high'" in capsys.readouterr().err
    if not more:
        assert main(["solve", "fsp-m", data, *asked, "--nonnegative", "a|tall"]) == 2
        said = "no feature is called 'a|tall'; 'a' is one, and 'tall' is no class: these are high, low, middle"
        assert said in capsys.readouterr().err
    assert main(["report", f"{saved}#low", "--data", data, "-o", page, "-q"]) == 0
    assert "the best 2 of 4 features" in Path(page).read_text() or more
    assert main(["report", saved, "--data", data, "-o", page, "-q"]) == 0
    text = Path(page).read_text()
    right = round(50 * float((found.predict(truth) == truth["kind"].to_numpy()).mean()))
    assert f"Right on {right} of 50 samples of t.csv" in text
    for said in ("low against the rest", "The weights of all classes", "3 for low"):
        assert said in text


def test_what_is_refused(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, saved = str(table), str(table.with_name("r.json"))
    asked = ["solve", "fsp-m", data, "--label", "kind", "--impute", "median", "--drop", "id", "--scale", "none"]
    for more, message in (
        (["--pool-gap", "0.1"], "--pool-gap is for two classes: "),
        (["--positive", "low"], "--positive is for two classes: "),
        (["--shared-support", "-p", "class_weight=lower:2"], "class_weight names 'lower', which is no label: "),
    ):
        assert main([*asked, *more]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len([line for line in said if "error" in line]) == 1
        assert message in said[-1]
    assert main([*asked[:1], "fgm", *asked[2:], "--shared-support"]) == 2
    assert "--shared-support is for fsp-m and fsp-lambda" in capsys.readouterr().err
    assert main([*asked, "--M", "1", "--json", saved, "-q"]) == 0
    other = table.with_name("other.csv")
    other.write_text(table.read_text().replace("middle", "between"))
    assert main(["verify", saved, str(other)]) == 1
    assert main(["evaluate", saved, str(other)]) == 2
    assert "'between'" in capsys.readouterr().err
    Path(saved).write_text(json.dumps(json.loads(Path(saved).read_text()) | {"classes": ["low", "high", "middle"]}))
    with pytest.raises(DataError, match="the results are those of other classes"):
        OneVsRest.load(saved)
    with pytest.raises(UsageError, match="takes no rows"):
        solve_shared(instances(*draw(1)), rows=())


def test_a_label_of_an_svmlight_file_is_no_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As for two classes: an option that says what cannot be is not passed over."""
    data, saved = tmp_path / "d.svm", str(tmp_path / "r.json")
    X, codes = draw(3)
    rows = (f"{code} " + " ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for code, row in zip(codes, X, strict=True))
    data.write_text("\n".join(rows) + "\n")
    assert main(["solve", "fsp-m", str(data), "--M", "1", "--json", saved, "-q"]) == 0
    assert main(["verify", saved, str(data), "-q"]) == 0
    assert main(["verify", saved, str(data), "--label", "kind", "-q"]) == 2
    assert "the labels of an svmlight file stand first on each line" in capsys.readouterr().err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
def test_a_shared_support_states_the_scaling_of_the_features_and_is_checked_on_it(bias: bool) -> None:
    """Of data that is stored in another way the last bits of means differ: what is stated defines the problem."""
    apart = 0
    for seed in range(4):
        X, codes = draw(seed)
        data = {name: instances(store(np.where(X > 0.5, X + 3.0, 0.0)), codes) for name, store in STORED.items()}
        first = {name: one[0] for name, one in data.items()}
        same = all(np.array_equal(*(getattr(one, what) for one in first.values())) for what in ("shift", "scale"))
        apart += not same
        for name, own in data.items():
            together = stating_scaling(solve_shared(own, M=2, C=0.5, bias=bias), own)
            assert together.claim is not None
            for what in ("shift", "scale"):
                texts = together.claim.scaling[f"column_{what}"].tolist()
                assert [float.fromhex(text.decode()) for text in texts] == getattr(first[name], what).tolist()
            parts = parts_of(together, own, C=0.5, bias=bias)
            found = OneVsRest(tuple(one.labels.positive for one in own), parts, together, bias)
            report = found.verify(own)
            assert report.accepted, report.reason
            bare = replace(found, together=replace(together, claim=replace(together.claim, scaling={})))
            assert bare.verify(own).accepted
            other = "sparse" if name == "dense" else "dense"
            report = found.verify(data[other])
            assert report.accepted == (same or other == "sparse"), report.reason
            assert report.accepted or "give the data stored as it was" in report.reason
            for what in ("shift", "scale"):
                values = getattr(first[name], what) * np.array([1.0, 1.0, 1.0, 1 + 1e-9])
                texts = np.array([float(value).hex().encode() for value in values])
                scaling = {**together.claim.scaling, f"column_{what}": texts}
                forged = replace(found, together=replace(together, claim=replace(together.claim, scaling=scaling)))
                assert "in the certificate is not that of the data" in forged.verify(own).reason
            short = {what: texts[:-1] for what, texts in together.claim.scaling.items()}
            forged = replace(found, together=replace(together, claim=replace(together.claim, scaling=short)))
            assert "malformed" in forged.verify(own).reason
    assert apart


@pytest.mark.parametrize(
    "terms", [{"home": 3.0, "x1": 1.0, "x2": 2.0}, {"home": 1.0, "town": -1.0}, {"home": 2.0, "town": 1.0, "x1": 1.0}]
)
def test_rows_of_a_shared_support_may_name_groups_of_features(terms: dict[str, float]) -> None:
    """A column of words is one in rows: the best of all supports that the row allows, each SVM by a QP."""
    X, codes = draw(7)
    groups = {"home": ("x2", "x3"), "town": ("x3", "x4")}
    row = Row("row", terms, -np.inf, 2.0 if "x1" in terms else 0.0)
    data = [replace(one, groups=groups, rows=(row,)) for one in instances(X, codes)]

    def is_allowed(ids: tuple[int, ...]) -> bool:
        names = {f"x{j + 1}" for j in ids}
        value = {name: float(not names.isdisjoint(groups.get(name, (name,)))) for name in terms}
        return sum(a * value[name] for name, a in terms.items()) <= row.ub

    every = [ids for k in range(5) for ids in itertools.combinations(range(4), k) if is_allowed(ids)]
    values = {ids: least(data, ids, "hinge", 0.5, True) for ids in every}
    result = solve_shared(data, C=0.5, options={"gap": 1e-7})
    assert result.objective == pytest.approx(min(values.values()), rel=1e-5)
    report = mipfs.verify(result, stack_instances(data))
    assert report.accepted
    assert not report.differs
    other = [replace(one, rows=(replace(row, ub=row.ub - 1.0),)) for one in data]
    assert "asks for row 'row" in mipfs.verify(result, stack_instances(other)).differs[0]
