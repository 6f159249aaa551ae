"""Settings: the numbers that steer a driver, one frozen record per step, and one per driver that holds those of its
steps.

    mipfs.solve(model, "branch", settings=BranchSettings(tree=TreeSettings(batch=4)))

How often, how many, how long, when to switch: none of them can make a bound or a certificate wrong, and none is part of
a problem. They are for experts and experiments; ``result.settings`` has those of a run. Numbers that carry a proof
(units of rounding, slack) stand with their derivation instead, and a user's wishes (gap, limits) are options.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from mipfs.branching import check_rule
from mipfs.errors import UsageError
from mipfs.plumbing.declared import Count, Declared, Excess, Natural, NumberRange, Positive
from mipfs.settings.batch import BatchSettings
from mipfs.settings.completions import CompletionSettings
from mipfs.settings.inner import InteriorSettings, LayerSettings, ProximalSettings, RelaxationSettings, SaddleSettings
from mipfs.settings.kinds import Part, Tolerance
from mipfs.settings.nodes import ModelSettings, NodeSettings, PriceSettings

__all__ = [
    "BatchSettings", "BranchSettings", "CompletionSettings", "ConicSettings", "DriverSettings", "GbdSettings",
    "GrowthSettings", "InteriorSettings", "KelleySettings", "LayerSettings", "ListSettings", "MasterSettings",
    "ModelSettings", "NodeSettings", "OracleSettings", "Part", "PriceSettings", "ProximalSettings",
    "RelaxationSettings", "RootSettings", "RoundingSettings", "SaddleSettings", "SearchSettings", "SharedSettings",
    "SwapSettings", "Tolerance", "TreeSettings", "TwoLayerSettings", "ViolatedSettings", "restore_settings",
]  # fmt: skip


@dataclass(frozen=True)
class SwapSettings(Declared):
    """The local search over supports (`mipfs.run.swaps`)."""

    leaving: Count = 12
    """Features of the support that a swap may take out, those of smallest weight: others hardly ever pay."""
    few: Count = 4
    """Features of largest score that are tried in place of one at first; at most `many`."""
    many: Count = 16
    """Features that are tried at a local optimum, where the few of largest score have failed."""
    shaken: Count = 6
    """Features that a restart exchanges at most, and at most half of the support: enough to leave a local optimum."""
    drawn_from: Count = 3
    """Features of largest score from which a restart draws each newcomer, so that restarts differ."""
    recent: Annotated[int, NumberRange(2)] = 40
    """Last cuts that are looked at before an SVM is solved, at least 2: older ones seldom rule out a neighbour."""
    most_numbers: Count = 2**23
    """Numbers that these cuts may have together, 64 MB: with more features they are fewer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.few > self.many:
            raise UsageError(f"few must not exceed many, {self.many}, not {self.few}")


@dataclass(frozen=True)
class ListSettings(Declared):
    """Lists of near-optimal supports (`mipfs.run.listed`, `mipfs.run.ties`)."""

    idle: Tolerance = 1e-5
    """½w² of a free feature in a node's relaxation, relative to its bound, from which on it may well matter: a node
    with a larger one is not asked whether all that it holds is counted."""
    counting: Natural = 100
    """SVMs that a list may always take to count its ties; or as many as its search took."""
    enumerated: Natural = 12
    """Features of weight 0 up to which rows are asked about every one of their subsets: 2^12 questions."""
    late_share: Excess = 0.1
    """A run that was stopped spends this share of its seconds on its list, so that a limit stays one."""
    late_seconds: Excess = 1.0
    """Seconds that it may spend in any case: a short run has a list too."""


@dataclass(frozen=True)
class OracleSettings(Declared):
    """The linear oracle over the selections that satisfy the rows (`mipfs.selection.oracle`)."""

    cuts: Count = 2000
    """Selections of the solver that may be cut off in one call before it counts as failed."""
    nodes: Count = 5000
    """LPs at most to earn a bound, or to show that nothing is allowed; after as many the question counts as open."""
    open_nodes: Count = 100
    """Nodes of the solver's MILP where whole variables have no end: it branches on them without an end, and has found a
    selection by then, if it finds one."""
    extra_nodes: Count = 500
    """LPs at most to find whole values for the extra variables of one selection."""
    grace: Excess = 1.0
    """Seconds that a call may go on when it should stop: most selections are found in less."""


@dataclass(frozen=True)
class SeparationSettings(Declared):
    """Rows that a separator finds during the search of `branch` (`mipfs.drivers.separating`)."""

    rounds: Natural = 10
    """Times that the root is relaxed again with more rows."""
    worth: Tolerance = 1e-4
    """Its bound must rise by this share of its size for one time more."""
    points: Natural = 4
    """Nodes of a batch about whose σ the separator is asked, those of least bound: they hold the bound down."""
    at_once: Count = 20
    """Rows that are taken at once at most: every row costs all nodes."""
    most: Count = 200
    """Rows that are taken in a search at most."""
    broken: Tolerance = 1e-3
    """By how much σ must break a row, in whole numbers of its coefficients."""
    looked_at: Count = 10_000
    """Derivations of one answer that are looked at: a separator may yield without end, and what `at_once` takes of
    more than these is hardly better. They take about half a second."""


@dataclass(frozen=True)
class TreeSettings(Declared):
    """The branch-and-bound tree of `branch`: batches, when a node is left, roundings (`mipfs.drivers.tree`)."""

    branching: str = "largest-weight"
    """The branching rule, of `mipfs.branching`: fewest nodes of those that were tried. The option of that name goes
    before."""
    batch: Count = 8
    """Nodes handed out at a time at least; their number does not depend on the threads, so that the tree does not."""
    share: Count = 4
    """Of the open nodes those of least bound are handed out, one in this number."""
    numbers: Count = 400_000_000
    """What samples times features times nodes of a batch may come to, all those explored below included: about four
    seconds of one core."""
    least_most: Count = 64
    """Nodes that may be handed out at a time whatever their size."""
    batch_work: Excess = 150.0
    """Units of `SearchSettings.unit` that the nodes of a batch may take, by what those before took, where `numbers` is
    less: over a second of one core, so that many cores have work while what others found is put together."""
    batch_share: Part = 0.12
    """And this share of what the tree has taken so far, where that is more: the thread that puts together what was
    found then does so seldom enough for 64 cores."""
    batch_most: Excess = 1300.0
    """Units that this share comes to at most: 13 seconds of one core."""
    unit_work: Excess = 10.0
    """Units of the same that a unit of work is to take at most where the batch is cut into more than `least_units`:
    0.1 s, so that a limit is heard."""
    unit_least: Excess = 1.0
    """And units that it takes at least, as long as the batch is cut into two: in a small tree what is done for each
    unit by itself takes as long as a node."""
    least_units: Count = 128
    """Units of work that a batch is cut into at least, where it has as many nodes: two for each of 64 cores, so that
    few wait for the longest of them."""
    clear: Excess = 4.0
    """A node is left once upper − lower is at most this share of its distance to the cutoff: its fate is clear."""
    near: Excess = 0.03
    """Nodes further below the cutoff than this share of it are far: their bound is what a limit leaves, so that they
    are left only once they rise above their parent's bound. Subtrees below the others are explored at once, all the
    way. At 0.1 spambase, M = 10, leaves 8.0% after 10 s, at this 5.0%."""
    level: Part = 0.01
    """While the least bound is far, all nodes up to a line are handed out, and explored up to there: this share of the
    cutoff above the least bound, or of the way to the cutoff where that is more. What lies beyond adds nothing to what
    a limit leaves: explored up to a quarter of the way, colon, M = 5, leaves 56% after 10 s, at this 52%."""
    early: Excess = 1.0
    """Units of work up to which a step is of `level_early`: what such nodes cost is less than what batches do."""
    level_early: Part = 0.05
    """The share that is `level` later. With 0.01 from the start sonar, M = 4, takes 0.10 CPU s, with this 0.08."""
    dear: Excess = 1.0
    """Units of work of a node, about a hundredth of a second, from which on the step is a part of the way at most."""
    steps: Count = 50
    """And this is how many there are to the cutoff then: pcmac, M = 5, leaves 5.0% after 30 s, without it 5.7%."""
    roundings: Natural = 50
    """The first nodes, which are all rounded to an incumbent: most incumbents come early."""
    rounding_every: Count = 50
    """Of the later nodes one in this number is rounded: a proof gains little from more SVMs."""
    rounding_share: Count = 300
    """And in a large tree one in such a share of its nodes: SVMs come one after the other, nodes on all cores."""
    leaves_per_svm: Count = 4
    """Leaves of an earlier tree to each SVM of the climb before it is planted, and of its open leaves to each that is
    rounded: a better incumbent closes most of them, and a small tree is done before many SVMs pay."""
    roundings_planted: Natural = 16
    """Open leaves, those of least bound, that are rounded to incumbents at most, one SVM each. On sonar, M = 5,
    C = 0.1, the second finds what the climb does not."""
    leaves: Count = 32
    """Nodes of one selection each that a batch leaves: from this number on they wait for their SVMs, which are solved
    beside the next batch, as dear ones are: colon, M = 3, C = 100, has 2,800 of them in the first minute."""
    leaf_gap: Tolerance = 1e-11
    """Relative gap to which a node with one selection is solved before it is closed: finer than any gap asked for."""
    bytes_share: Part = 0.01
    """Share of the asked gap that rounding dual vectors to fewer bytes may cost."""
    in_hand: Count = 3
    """Units of work that a worker of a cluster has in hand at most: the next is there when one is done."""
    poll_seconds: Positive = 0.05
    """How often limits and Ctrl-C are looked at while nodes are explored: a person does not feel it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rule(self.branching)


@dataclass(frozen=True)
class SearchSettings(Declared):
    """The search for incumbents beside the nodes of `branch`, paced by counts of work (`mipfs.drivers.pacing`)."""

    unit: Positive = 2e7
    """Newton steps times samples and features that make up a unit of work: about a hundredth of a second."""
    after_nodes: Natural = 20
    """Nodes after which a climb from the incumbent pays; it goes to its end."""
    after_work: Excess = 1.0
    """Units of work after which it pays, if they come first: nodes of large problems are few."""
    late: Count = 50
    """By how much later it begins beside what a problem near by left: its support is good, and SVMs cost more than the
    nodes that they spare."""
    solves: Excess = 9.0
    """SVMs of the search that goes on from there, per square root of the tree's work: most of them early."""
    hopeful: Excess = 0.1
    """Above this relative gap there are more of them: there the incumbent is what the user gets."""
    eager: Excess = 100.0
    """Their number grows by this multiple of the gap's excess over `hopeful`: at twice that gap it is some tenfold."""
    share: Excess = 2.0
    """They take at most such a share of the tree's work."""
    few: Count = 4
    """SVMs that may come beside a batch where the gap is no more than `hopeful`, whatever its work: they come one after
    the other, nodes on all cores."""
    beside: Excess = 0.06
    """The share of the work of the batch before that they may take there, where these are more SVMs."""
    strands: Count = 32
    """Searches that go on at once beside a batch at most, which share these SVMs and the roundings: what one does waits
    for no other. There are as many whatever the threads are."""
    work_per_strand: Positive = 50.0
    """Units of the tree's work to each of them, but for the first: a small tree pays for what several find."""
    dear: Positive = 0.15
    """Units that an SVM costs from which on there are as many from the start: some hundred take a second."""
    brief: Excess = 1.0
    """Units of work that they may take there until the first climb has ended."""
    fruitless: Excess = 4.0
    """They end at this multiple of the SVMs that the last improvement took."""
    patience: Excess = 50.0
    """The last improvement is taken to have come no earlier than at this work."""
    call: Excess = 8e5
    """What the call of an SVM costs, in the multiplications of `unit`. This and the next two are measured on sonar
    (0.7 ms), madelon (1.3), sms (2.7), w8a (4 to 6), usps (5) and spambase (4 to 8)."""
    number: Excess = 200.0
    """What each stored number of its columns costs an SVM, in all its steps."""
    row: Excess = 200.0
    """What each sample costs it."""
    at_once: Count = 10
    """SVMs that may come beside a batch above that gap, whatever its work."""
    pause: Excess = 10.0
    """Units of work that they may take there, where these are more SVMs."""
    spliced: Natural = 100
    """SVMs at most of the splicing before the root, so that a short limit sees a root; and of that after it."""
    spliced_gap: Tolerance = 0.01
    """Relative gap that the root leaves up to which nothing is spliced after it: a small tree closes that by itself."""
    long: Count = 30
    """Features of a support that is not spliced before the root, nor climbs there: its SVMs are dear, and many. What
    the root points to is spliced all the same."""
    climbed: Natural = 300
    """SVMs at most of the climb before the root, for the same reason."""
    rest: Excess = 100.0
    """Units of work between two rests at least, a second of one core: a state of a run is kept there, and a run that
    goes on from it goes the same way to the bit. The search begins anew there."""
    rest_share: Count = 8
    """And one in such a share of the work, which a kill may cost."""


@dataclass(frozen=True)
class SharedSettings(Declared):
    """One tree for all values of a frontier (`mipfs.drivers.together`)."""

    values: Count = 3
    """Values which are worth a tree of all."""
    seconds: Excess = 5.0
    """A limit of time for each point that is less leaves no room for it: it would end without a bound."""
    nodes: Count = 1000
    """What is relaxed at most."""
    numbers: Count = 2**25
    """And at most in samples times atoms times nodes: a second or two."""
    least: Count = 200
    """Nodes within that which are worth a tree of all."""
    widest: Count = 120
    """Nodes of a level at most: german's have fewer than 80."""
    doubled: Count = 30
    """From how many on a level may not be twice as wide as the one before: german's grow by half. Sonar's double up to
    281, and end nowhere near."""
    alone: Natural = 1
    """A node that is open at no more values is explored at each of them by itself, all below it in compiled code."""
    clear: Excess = 0.4
    """A node is left once upper − lower is at most this share of its distance to the cutoff: a dual vector is to serve
    at other values too, so it is solved further than in a tree of its own."""
    dives: Part = 0.25
    """A selection that a node leads to is evaluated only where the dual vectors leave it this share of the way from the
    root's bound to the cutoff."""
    tangents: Natural = 5
    """Steps to the row's best multiplier for a dual vector and a node: 8 leave as many nodes."""


@dataclass(frozen=True)
class RootSettings(Declared):
    """The root of `branch`."""

    unused: Part = 0.5
    """Share of the asked gap that screening at the root leaves unused: its bound is better than the gap allows."""
    large: Count = 2_000
    """Samples, and atoms, from which on a root takes seconds: a climb to an incumbent comes before it."""


@dataclass(frozen=True)
class GrowthSettings(Declared):
    """Parts of the atoms that grow until the rest is proven out (`mipfs.drivers.growing`, `mipfs.drivers.searched`)."""

    gap: Tolerance = 1e-6
    """Relative gap of the relaxation over all atoms: what it rules out rests on its dual vector."""
    least: Count = 50
    """Atoms to begin with where none are named, beside twice those that the relaxation mixes."""
    factor: Annotated[int, NumberRange(2)] = 2
    """The largest size of the next part, as a multiple of the last one's, at least 2."""
    entering: Count = 50
    """Atoms that a search brings into the relaxation at a time, or as many as four selections have, or half of those
    there are."""
    rounds: Natural = 100
    """Rounds of that search at most."""


@dataclass(frozen=True)
class MasterSettings(Declared):
    """The branch-and-cut tree over Benders cuts (`mipfs.drivers.gbd`, `mipfs.drivers.master`)."""

    rounding_nodes: Count = 20
    """Nodes between two roundings of the relaxed σ: a rounding is an SVM, like a cut."""
    rounding_cuts: Count = 10
    """Cuts between two roundings at the root."""
    sharper: Tolerance = 0.9
    """Share of the asked gap that is worked to where weights are far apart: rounding dual vectors takes the rest."""
    integral: Tolerance = 1e-6
    """Distance from 0 or 1 up to which a relaxed σ_j counts as integral, as in MILP solvers."""
    pool_cuts: Count = 5
    """Violated pool cuts taken back into the LP at a time: the next LP often satisfies the others."""
    idle: Natural = 40
    """LP solves after which a cut that was never binding leaves the LP (it stays in the pool)."""
    rounds: Count = 6
    """Cuts per node at most: splitting then gains more."""
    root_rounds: Count = 300
    """Cuts at the root at most: every later node inherits them."""
    progress: Excess = 0.1
    """A round that closes a smaller share of the distance to the cutoff ends a node's rounds."""
    root_progress: Excess = 2e-3
    """A round that closes a smaller share of the distance between the root's own bounds ends the root's rounds."""
    largest_step: Positive = 2e10
    """Multiplications of a Newton step up to which the tree begins with the SVM on all that is free, a second or two: a
    step is not cut short by a limit. Beyond that it begins with what the relaxation uses."""
    step_numbers: Count = 500_000
    """What a cut costs beside a pass over the data, and a new LP beside its entries, in numbers that are read."""
    rest: Count = 40
    """Work between two new beginnings of the LP, as a multiple of what one costs: a state is kept there alone, from
    which a run goes on to the bit. Twenty times takes 4 % of the time on some hundred samples."""


@dataclass(frozen=True)
class RoundingSettings(Declared):
    """How the relaxations of `kelley` and `two_layer` become incumbents (`mipfs.drivers.rounding`)."""

    starts: Count = 10
    """Selections of a face that incumbents are looked for from, the last ones."""
    refit_gap: Tolerance = 1e-7
    """Relative gap of the classifier on the incumbent's features."""
    rough_gap: Tolerance = 1e-4
    """Relative gap of classifiers that are only compared."""
    wide: Count = 100
    """Features of largest score, or four times M, among which an incumbent is looked for beside those that the
    relaxation uses."""
    rounds: Count = 4
    """Times that the features of largest score are looked for anew, by the dual vector of the incumbent."""
    grace: Excess = 0.3
    """Seconds that an SVM may take after a limit has struck: it leaves a classifier, if a rough one."""


@dataclass(frozen=True)
class ViolatedSettings(Declared):
    """The selection that a dual vector violates most (`mipfs.drivers.most_violated`)."""

    ray: Part = 1e-3
    """A dual vector whose best multiple is no further from it, relatively, is judged as it is."""
    more: Natural = 4
    """Atoms that a face takes in beside the M that α violates most, as a multiple of M."""
    least_more: Natural = 40
    """The least number of atoms beside those M: a small M says little about how many matter."""


@dataclass(frozen=True)
class DriverSettings(Declared):
    """What steers any driver: the search over supports, the lists, and the oracle. `monolithic` has no more."""

    swaps: SwapSettings = SwapSettings()
    """The local search over supports."""
    listing: ListSettings = ListSettings()
    """Lists of near-optimal supports."""
    selections: OracleSettings = OracleSettings()
    """The selections that satisfy the rows, as the run asks for them."""

    def changed(self) -> dict[str, Any]:
        """The fields that are not at their defaults, by dotted name."""
        return _differing_fields(self, type(self)())

    def line(self) -> str:
        """The record in one line: its name, and what is not at its default."""
        changed = ", ".join(f"{name} = {value!r}" for name, value in self.changed().items())
        return f"settings: {type(self).__name__}, {changed or 'all at their defaults'}"

    def stated(self) -> dict[str, Any]:
        """The record for the JSON of a result: its name, and the fields of each step."""
        return {"record": type(self).__name__, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class BranchSettings(DriverSettings):
    """What steers `branch`."""

    tree: TreeSettings = TreeSettings()
    """Its tree."""
    separation: SeparationSettings = SeparationSettings()
    """Rows that a separator finds."""
    nodes: NodeSettings = NodeSettings()
    """Its nodes, in compiled code."""
    batch: BatchSettings = BatchSettings()
    """Its nodes, where many are relaxed at once."""
    search: SearchSettings = SearchSettings()
    """The search for incumbents beside it."""
    root: RootSettings = RootSettings()
    """Its root."""
    relaxation: RelaxationSettings = RelaxationSettings()
    """The relaxation at the root, and where the kernels do not carry a node."""
    completions: CompletionSettings = CompletionSettings()
    """Its nodes with one or two free places, where few of many features are selected."""
    together: SharedSettings = SharedSettings()
    """One tree for all values of a frontier."""
    growth: GrowthSettings = GrowthSettings()
    """Parts of the atoms, where `active` asks for them or atoms are too many to hold."""
    master: MasterSettings = MasterSettings()
    """The tree over cuts, for structural losses and whole extra variables."""


@dataclass(frozen=True)
class GbdSettings(DriverSettings):
    """What steers `gbd`."""

    master: MasterSettings = MasterSettings()
    """Its tree over cuts."""
    relaxation: RelaxationSettings = RelaxationSettings()
    """The relaxation that its tree begins with."""


@dataclass(frozen=True)
class KelleySettings(DriverSettings):
    """What steers `kelley`."""

    oracle: ViolatedSettings = ViolatedSettings()
    """Step 1, the most violated selection."""
    proximal: ProximalSettings = ProximalSettings()
    """The proximal gradient on its restricted problems."""
    rounding: RoundingSettings = RoundingSettings()
    """How the relaxation becomes an incumbent."""
    sharper: Tolerance = 0.99
    """Share of the asked gap that is worked to: rounding the dual vector at the end takes a bit off the bound."""
    splices: Natural = 2
    """SVMs that polish an incumbent, by default, for every iteration: each takes a third of one to the whole."""
    stuck: Tolerance = 1e-3
    """When a restricted problem that the proximal gradient solves this much tighter yields no new selection, columns of
    very different norms have brought it to a stand, and other methods take over."""
    exact: Tolerance = 1e-9
    """When a restricted problem solved this much tighter still yields no new selection, round-off is all that is left;
    below `stuck`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exact >= self.stuck:
            raise UsageError(f"exact must be below stuck, {self.stuck}, not {self.exact}")


@dataclass(frozen=True)
class TwoLayerSettings(DriverSettings):
    """What steers `two_layer`."""

    oracle: ViolatedSettings = ViolatedSettings()
    """Step 1, the most violated selection."""
    rounding: RoundingSettings = RoundingSettings(grace=0.1)
    """How the relaxation becomes an incumbent; the first round had one already, where a limit left it time."""
    layer: LayerSettings = LayerSettings()
    """The inner layer."""
    sharper: Tolerance = 0.99
    """Share of the asked gap that is worked to: rounding the dual vector at the end takes a bit off the bound."""
    exact: Tolerance = 1e-6
    """When the inner layer solved this much tighter still yields no new selection, round-off is all that is left."""


@dataclass(frozen=True)
class ConicSettings(DriverSettings):
    """What steers `conic`."""

    max_work: Positive = 3e10
    """Multiplications per factorisation beyond which an interior-point method takes many minutes: it is refused."""
    refit_gap: Tolerance = 1e-8
    """Relative gap of the refitted classifiers."""


def restore_settings(stated: Mapping[str, Any]) -> DriverSettings | None:
    """The record that `DriverSettings.stated` wrote; None where this version has no such record or fields."""
    kinds: tuple[type[DriverSettings], ...] = (DriverSettings, *DriverSettings.__subclasses__())
    known = {one.__name__: one for one in kinds}
    kind = known.get(str(stated.get("record")))
    try:
        return None if kind is None else _record_of(kind, {name: stated[name] for name in stated if name != "record"})
    except (TypeError, UsageError):
        return None


def _record_of(kind: Any, fields: Mapping[str, Any]) -> Any:
    """A record from its fields as plain values."""
    steps = {field.name: type(field.default) for field in dataclasses.fields(kind)}
    if fields.keys() != steps.keys():
        raise TypeError(f"{kind.__name__} has other fields")
    given = {
        name: _record_of(steps[name], value) if isinstance(value, Mapping) else value for name, value in fields.items()
    }
    return kind(**given)


def _differing_fields(record: Any, usual: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        default = getattr(usual, field.name)
        if value is default:
            continue
        if dataclasses.is_dataclass(value):
            found |= {f"{field.name}.{name}": one for name, one in _differing_fields(value, default).items()}
        elif value != default:
            found[field.name] = value
    return found
