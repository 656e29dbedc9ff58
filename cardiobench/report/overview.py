"""Results as tables of models and tasks: what stands in a cell, relative to its floor, and with which marks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cardiobench.core.errors import UnknownName
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry
from cardiobench.results.score_result import ScoreResult

MARKS = {
    "beaten": ("▲", "above the best constant answer; the paired interval of the difference excludes zero"),
    "tied": ("≈", "not to be told from the best constant answer; the paired interval of the difference holds zero"),
    "not beaten": ("▼", "below the best constant answer; the paired interval of the difference excludes zero"),
    "unknown": ("?", "no interval, so nobody can say whether it is above the best constant answer"),
    "collapsed": ("∅", "(nearly) the same answer to everything"),
    "seen in pretraining": ("S", "the dataset was in the model's pretraining data"),
    "incomplete": ("◔", "not every unit of the test split was scored"),
    "synthetic twin": ("~", "generated recordings: the score says nothing about patients"),
    "part of the data": ("½", "only the first patients of each split were used"),
}
"""Name of a mark -> its sign and what it means."""

VERDICT_MARK = {"yes": "beaten", "tied": "tied", "no": "not beaten", "unknown": "unknown"}
STEPS = (-0.25, -0.02, 0.02, 0.15, 0.35, 0.6)
"""Where the shades of the heat table change, in shares of the way from the floor to a perfect score."""


@dataclass(frozen=True)
class ScoreCell:
    """One result, as it stands in the overview.

    Attributes:
        entry: the result.
        skill: share of the way from the floor to a perfect score; negative below the floor, NaN where undefined.
        marks: names in `MARKS`.
    """

    entry: Entry
    skill: float
    marks: tuple[str, ...]

    @property
    def signs(self) -> str:
        """The marks as signs."""
        return "".join(MARKS[mark][0] for mark in self.marks)

    @property
    def score_text(self) -> str:
        """The score with its 95 % interval."""
        result = self.entry.result
        score = result.score
        if math.isnan(score.low):
            return f"{tables.number(score.value, result)} (no CI)"
        return f"{tables.number(score.value, result)} [{tables.number(score.low, result)}, {tables.number(score.high, result)}]"

    @property
    def shade(self) -> int:
        """Step of the colour scale, -2 (far below the floor) to 4 (nearly perfect); 0 about at the floor."""
        return 0 if math.isnan(self.skill) else sum(self.skill >= step for step in STEPS) - 2


@dataclass(frozen=True)
class ModelRow:
    """A model under a protocol.

    Attributes:
        model: its name.
        protocol: with variant.
        setting: revision, pooling or another choice, where one model was run in several.
        cells: one a task: a cell, or why there is none.
    """

    model: str
    protocol: str
    setting: str
    cells: tuple[ScoreCell | str, ...]

    @property
    def covered(self) -> int:
        """Tasks with a score."""
        return sum(isinstance(cell, ScoreCell) for cell in self.cells)


@dataclass(frozen=True)
class OverviewTable:
    """A table of the overview: tasks of one kind.

    Attributes:
        name: such as `Echo: measurements`.
        tasks: in the columns.
        rows: models under protocols.
    """

    name: str
    tasks: tuple[str, ...]
    rows: tuple[ModelRow, ...]


def skill(result: ScoreResult) -> float:
    """Share of the way from the best constant answer (0) to a perfect score (1), the same for every metric.

    Errors: 1 - score / floor. Fractions: (score - floor) / (1 - floor). NaN where the floor is perfect or undefined.
    """
    value, floor = result.score.value, result.floors["best_constant"].value
    room = 1.0 - floor if result.higher_is_better else floor
    gained = value - floor if result.higher_is_better else floor - value
    return gained / room if room > 0 else math.nan


def marks(result: ScoreResult) -> tuple[str, ...]:
    """What a reader must see beside the number, as names in `MARKS`."""
    plain = [flag for flag in tables.flags(result) if flag in MARKS]
    part = ["part of the data"] if result.dataset.get("limit") else []
    return (VERDICT_MARK[result.beats_floor.verdict], *plain, *part)


@lru_cache(maxsize=4096)
def find_task(name: str) -> Task | None:
    """The task of that name; None for one that this version does not know."""
    try:
        return catalog.task(name)
    except UnknownName:
        return None


def table_name(result: ScoreResult) -> str:
    """The table of the overview that a result belongs in."""
    task = find_task(result.task)
    if task is None:
        return "Other tasks"
    modality = {"echo": "Echo", "ecg": "ECG"}[catalog.spec(task.dataset).modality]
    if task.target == "view":
        return f"{modality}: views"
    return f"{modality}: {'measurements' if task.kind == 'regression' else 'diagnoses'}"


def overview_tables(entries: Sequence[Entry]) -> list[OverviewTable]:
    """The tables of the overview; a model has a row in each table in which it has a score, under each protocol."""
    by_kind: dict[str, list[Entry]] = {}
    for entry in entries:
        by_kind.setdefault(table_name(entry.result), []).append(entry)
    return [_board(name, own) for name, own in sorted(by_kind.items(), key=lambda pair: _order(pair[0]))]


def _order(kind: str) -> tuple[int, str]:
    return ("Echo: measurements", "Echo: diagnoses", "Echo: views").index(kind) if kind.startswith("Echo") else 9, kind


def _board(name: str, entries: list[Entry]) -> OverviewTable:
    tasks = tuple(sorted({entry.result.task for entry in entries}))
    rows: dict[tuple[str, str, str], dict[str, Entry]] = {}
    several = _several(entries)
    for entry in entries:
        setting = _setting(entry.result) if entry.result.model["name"] in several else ""
        key = (entry.result.model["name"], entry.result.label, setting)
        own = rows.setdefault(key, {})
        if entry.result.task in own:  # one setting twice, such as two seeds: a row of its own
            own = rows.setdefault((*key[:2], f"{setting} seed {entry.result.stamp.get('seed')}".strip()), {})
        own[entry.result.task] = entry
    made = [
        ModelRow(*key, tuple(_cell(own.get(task), key[0], key[1], task) for task in tasks))
        for key, own in sorted(rows.items())
    ]
    return OverviewTable(name, tasks, tuple(made + _without_text(made, tasks)))


def _setting(result: ScoreResult) -> str:
    """Revision and choices of a model, in short."""
    parts = [str(result.model.get("revision") or "")[:12], str(result.model.get("token_pooling") or "")]
    preprocessing = result.model.get("preprocessing")
    variant = preprocessing.get("variant") if isinstance(preprocessing, dict) else ""
    return " ".join(part for part in (*parts, str(variant or "")) if part)


def _several(entries: list[Entry]) -> set[str]:
    """Models that were run in more than one way."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        found.setdefault(entry.result.model["name"], set()).add(_setting(entry.result))
    return {name for name, settings in found.items() if len(settings) > 1}


def _cell(entry: Entry | None, model: str, protocol: str, task: str) -> ScoreCell | str:
    if entry is None:
        return missing_reason(find_card(model), protocol, find_task(task))
    return ScoreCell(entry, skill(entry.result), marks(entry.result))


def missing_reason(card: ModelCard | None, protocol: str, task: Task | None) -> str:
    """Why a cell is empty: `not applicable: ...` where the model's card says so, else `not run`."""
    if card is None or task is None:
        return "not run"
    modality = catalog.spec(task.dataset).modality
    if modality not in card.modalities:
        return f"not applicable: the model takes {' and '.join(card.modalities)}"
    if protocol.startswith("zero_shot") and not card.text:
        return "not applicable: no text tower"
    if protocol.startswith("native") and task.target not in card.native:
        return "not applicable: none of its own heads answers this"
    return "not run"


def _without_text(rows: list[ModelRow], tasks: Sequence[str]) -> list[ModelRow]:
    """Rows that say why a model is not among the zero-shot ones, where others are."""
    asked = sorted({row.protocol for row in rows if row.protocol.startswith("zero_shot")})
    there = {(row.model, row.protocol) for row in rows}
    added = []
    for model in sorted({row.model for row in rows}):
        card = find_card(model)
        if card is not None and not card.text:
            missing = [protocol for protocol in asked if (model, protocol) not in there]
            cells = ("not applicable: no text tower",) * len(tasks)
            added += [ModelRow(model, protocol, "", cells) for protocol in missing]
    return added
