"""Tabulate scores relative to floors for models and tasks, with marks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cardiobench.core.errors import UnknownName
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.results import formatting as tables
from cardiobench.results.collect import ResultEntry, model_id
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import Rank, Verdict

MARKS: dict[str, tuple[str, str]] = {
    **{verdict: (verdict.sign, verdict.meaning) for verdict in Verdict},
    tables.REUSED: ("R", "taken from a dataset of results; the answers were computed by its owner"),
    "collapsed": ("∅", "(nearly) the same answer to every recording"),
    EMBEDDINGS: ("E", "the embeddings were supplied by the user; their origin was not verified"),
    "seen in pretraining": ("S", "the dataset was in the model's pretraining data"),
    "incomplete": ("◔", "predictions are missing; the verdict uses the worst case"),
    "generated data": ("~", "generated recordings: the score says nothing about patients"),
    "synthetic twin": ("~", "generated recordings: the score says nothing about patients"),
    tables.OWN_DATA: ("H", "private data of the user"),
    "patients not known": ("P", "patients are unknown; each recording counts as one patient"),
    "part of the data": ("½", "only the first patients of each split were used"),
}
"""Mapping from mark to sign and meaning: verdicts first, then flags."""

NOT_APPLICABLE = "not applicable"
"""Prefix of the reason why a model does not apply to a task."""
NO_TEXT = f"{NOT_APPLICABLE}: no text tower"
GENERATED = "Generated recordings,"
"""Names of tables with phantoms and twins, which never contain scores on patients."""
STEPS = (-0.25, -0.02, 0.02, 0.15, 0.35, 0.6)
"""Thresholds of the heat table's shades, as fractions from the floor (0) to a perfect score (1)."""


@dataclass(frozen=True)
class ScoreCell:
    """Result in the overview.

    Attributes:
        entry: Loaded result.
        skill: Position between the floor (0) and a perfect score (1); negative below the floor, NaN if undefined.
        marks: Names in `MARKS`.
    """

    entry: ResultEntry
    skill: float
    marks: tuple[str, ...]

    @property
    def signs(self) -> str:
        """Signs of the marks."""
        return "".join(MARKS[mark][0] for mark in self.marks)

    @property
    def wins(self) -> bool:
        """Return whether the verdict ranks above the floor."""
        return self.entry.result.verdict.word.rank is Rank.WINS

    @property
    def score_text(self) -> str:
        """Score with its 95 % interval."""
        result = self.entry.result
        score = result.score
        if math.isnan(score.low):
            return f"{tables.number(score.value, result)} (no CI)"
        return f"{tables.number(score.value, result)} [{tables.number(score.low, result)}, {tables.number(score.high, result)}]"

    @property
    def shade(self) -> int:
        """Step of the colour scale, from -2 (far below the floor) to 4 (nearly perfect), with 0 near the floor."""
        return 0 if math.isnan(self.skill) else sum(self.skill >= step for step in STEPS) - 2


@dataclass(frozen=True)
class ModelRow:
    """Model under one protocol.

    Attributes:
        model: Name of the model.
        protocol: Protocol and variant.
        setting: Revision, pooling or other setting, if the model was run with several.
        cells: Cell of each task, or the reason for its absence.
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
    """Table of tasks of one kind.

    Attributes:
        name: Table name, such as `Echo: measurements`.
        tasks: Tasks in the columns.
        rows: Models with their protocols.
    """

    name: str
    tasks: tuple[str, ...]
    rows: tuple[ModelRow, ...]

    @property
    def generated(self) -> bool:
        """Return whether the recordings are phantoms or twins."""
        return self.name.startswith(GENERATED)


def skill(result: ScoreResult) -> float:
    """Return the position of the score between the floor (0) and a perfect score (1), comparable across metrics.

    For errors this is 1 - score / floor; for fractions (score - floor) / (1 - floor). It is NaN if the floor is perfect
    or undefined, or if there is no perfect score.
    """
    return result.number().skill(result.score.value, result.floor.value)


def marks(result: ScoreResult) -> tuple[str, ...]:
    """Return the names in `MARKS` that must accompany the number."""
    plain = [flag for flag in tables.flags(result) if flag in MARKS]
    part = ["part of the data"] if result.dataset.get("limit") else []
    reused = [tables.REUSED] if result.computed_by else []
    return (result.verdict.word, *reused, *plain, *part)


@lru_cache(maxsize=4096)
def find_task(name: str) -> Task | None:
    """Return the task with the given name, or None if this version does not know it."""
    try:
        return catalog.task(name)
    except UnknownName:
        return None


def table_name(result: ScoreResult) -> str:
    """Return the name of the overview table that contains a result."""
    kind = task_kind(result.task)
    if kind is None:
        return f"{GENERATED} other tasks" if result.generated else "Other tasks"
    return f"{GENERATED} {kind}" if result.generated else kind


@lru_cache(maxsize=4096)
def task_kind(name: str) -> str | None:
    """Return modality and kind of a task, such as "Echo: views"; None if this version does not know it."""
    if (task := find_task(name)) is None:
        return None
    modality = {"echo": "Echo", "ecg": "ECG"}[catalog.modality(task)]
    if task.dense:
        return f"{modality}: single frames"
    return f"{modality}: {'views' if task.target == 'view' else 'diagnoses' if task.classes else 'measurements'}"


def table_names(entries: Iterable[ResultEntry]) -> list[str]:
    """Return the names of the overview tables in order."""
    return sorted({table_name(entry.result) for entry in entries}, key=_table_order)


def overview_tables(entries: Sequence[ResultEntry]) -> list[OverviewTable]:
    """Return overview tables with one row per model and protocol in each table where it has a score."""
    by_table: dict[str, list[ResultEntry]] = {}
    for entry in entries:
        by_table.setdefault(table_name(entry.result), []).append(entry)
    return [_overview_table(name, by_table[name]) for name in sorted(by_table, key=_table_order)]


def _table_order(name: str) -> tuple[int, str]:
    first = ("Echo: measurements", "Echo: diagnoses", "Echo: views", "Echo: single frames")
    order = first.index(name) if name in first else len(first)
    return order + 10 * name.startswith(GENERATED), name


def _overview_table(name: str, entries: Sequence[ResultEntry]) -> OverviewTable:
    tasks = tuple(sorted({entry.result.task for entry in entries}))
    settings: dict[str, set[str]] = {}
    for entry in entries:
        settings.setdefault(entry.result.model["name"], set()).add(_setting(entry.result))
    rows: dict[tuple[str, str, str], dict[str, ResultEntry]] = {}
    for entry in entries:
        result = entry.result
        model = result.model["name"]
        setting = _setting(result) if len(settings[model]) > 1 else ""
        # Keep duplicates, such as two seeds, in separate rows.
        if result.task in rows.get((model, result.label, setting), {}):
            setting = f"{setting} seed {result.stamp.get('seed')}".strip()
        rows.setdefault((model, result.label, setting), {})[result.task] = entry
    scored = [
        ModelRow(*key, tuple(_cell(row.get(task), key[0], key[1], task) for task in tasks))
        for key, row in sorted(rows.items(), key=lambda item: (_external(item[1]), item[0]))
    ]
    return OverviewTable(name, tasks, tuple(scored + _rows_without_text(scored, tasks)))


def _external(row: Mapping[str, ResultEntry]) -> bool:
    return all(entry.result.external for entry in row.values())


def _setting(result: ScoreResult) -> str:
    """Return a short text with a model's revision and settings."""
    preprocessing = result.model.get("preprocessing")
    variant = preprocessing.get("variant") if isinstance(preprocessing, dict) else None
    facts = (str(result.model.get("revision") or "")[:12], result.model.get("token_pooling"), variant)
    return " ".join(str(fact) for fact in facts if fact)


def _cell(entry: ResultEntry | None, model: str, protocol: str, task: str) -> ScoreCell | str:
    if entry is None:
        return missing_reason(find_card(model_id(model)), protocol, find_task(task))
    return ScoreCell(entry, skill(entry.result), marks(entry.result))


def missing_reason(card: ModelCard | None, protocol: str, task: Task | None) -> str:
    """Return why a cell is empty: `not applicable: ...` by the model's card, otherwise `not run`."""
    if card is None or task is None:
        return "not run"
    if catalog.modality(task) not in card.modalities:
        return f"{NOT_APPLICABLE}: the model takes {' and '.join(card.modalities)}"
    if protocol.startswith("zero_shot") and not card.text:
        return NO_TEXT
    if protocol.startswith("native") and task.target not in card.native:
        return f"{NOT_APPLICABLE}: none of its heads predicts this"
    return "not run"


def _rows_without_text(rows: Sequence[ModelRow], tasks: Sequence[str]) -> list[ModelRow]:
    """Return rows that explain why models have no zero-shot result if others do."""
    zero_shot = sorted({row.protocol for row in rows if row.protocol.startswith("zero_shot")})
    scored = {(row.model, row.protocol) for row in rows}
    return [
        ModelRow(model, protocol, "", (NO_TEXT,) * len(tasks))
        for model in sorted({row.model for row in rows})
        if (card := find_card(model_id(model))) is not None and not card.text
        for protocol in zero_shot
        if (model, protocol) not in scored
    ]


def ranked(result: ScoreResult) -> bool:
    """Return whether a result can be ranked: it needs several classes, a floor and current rules."""
    return result.verdict.word.rank is not Rank.NONE and not result.outdated
