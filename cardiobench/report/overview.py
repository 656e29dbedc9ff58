"""Results as tables of models and tasks: scores relative to their floors, with their marks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cardiobench.core.errors import UnknownName
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.results import formatting as tables
from cardiobench.results.collect import ResultEntry
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import Rank, Verdict

MARKS: dict[str, tuple[str, str]] = {
    **{verdict: (verdict.sign, verdict.meaning) for verdict in Verdict},
    "collapsed": ("∅", "(nearly) the same answer to everything"),
    EMBEDDINGS: ("E", "the vectors were given: how they were made was not seen"),
    "seen in pretraining": ("S", "the dataset was in the model's pretraining data"),
    "incomplete": ("◔", "answers are missing; the verdict is judged on the worst case"),
    "generated data": ("~", "generated recordings: the score says nothing about patients"),
    "synthetic twin": ("~", "generated recordings: the score says nothing about patients"),
    tables.OWN_DATA: ("H", "data of the user's own, which nobody else has"),
    "patients not known": ("P", "nobody knows which recordings are of one patient; each counts as one"),
    "part of the data": ("½", "only the first patients of each split were used"),
}
"""Name of a mark -> its sign and its meaning: the verdicts, then the flags."""

NOT_APPLICABLE = "not applicable"
"""Beginning of the reason why a model cannot take part in a task."""
NO_TEXT = f"{NOT_APPLICABLE}: no text tower"
GENERATED = "Generated recordings,"
"""How tables of phantoms and twins are called; they never hold a score on patients."""
STEPS = (-0.25, -0.02, 0.02, 0.15, 0.35, 0.6)
"""Where the shades of the heat table change, in shares of the way from the floor to a perfect score."""


@dataclass(frozen=True)
class ScoreCell:
    """One result in the overview.

    Attributes:
        entry: The result.
        skill: Share of the way from the floor to a perfect score; negative below the floor, NaN where undefined.
        marks: Names in `MARKS`.
    """

    entry: ResultEntry
    skill: float
    marks: tuple[str, ...]

    @property
    def signs(self) -> str:
        """The marks as signs."""
        return "".join(MARKS[mark][0] for mark in self.marks)

    @property
    def wins(self) -> bool:
        """Return whether the verdict counts as better than the floor."""
        return self.entry.result.verdict.word.rank is Rank.WINS

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
        model: Model name.
        protocol: Protocol with its variant.
        setting: Revision, pooling or another choice, where one model was run in several.
        cells: One a task: a cell, or why there is none.
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
        name: Such as `Echo: measurements`.
        tasks: Tasks in the columns.
        rows: Models under protocols.
    """

    name: str
    tasks: tuple[str, ...]
    rows: tuple[ModelRow, ...]

    @property
    def generated(self) -> bool:
        """Return whether the recordings are phantoms or twins."""
        return self.name.startswith(GENERATED)


def skill(result: ScoreResult) -> float:
    """Return the share of the way from the floor (0) to a perfect score (1), the same for every metric.

    Errors: 1 - score / floor. Fractions: (score - floor) / (1 - floor). NaN where the floor is perfect or undefined, and
    where no perfect score is known.
    """
    return result.number().skill(result.score.value, result.floor.value)


def marks(result: ScoreResult) -> tuple[str, ...]:
    """Return the marks that must accompany the number, as names in `MARKS`."""
    plain = [flag for flag in tables.flags(result) if flag in MARKS]
    part = ["part of the data"] if result.dataset.get("limit") else []
    return (result.verdict.word, *plain, *part)


@lru_cache(maxsize=4096)
def find_task(name: str) -> Task | None:
    """Return the task of that name; None for one that this version does not know."""
    try:
        return catalog.task(name)
    except UnknownName:
        return None


def table_name(result: ScoreResult) -> str:
    """Return the name of the overview's table that a result belongs in."""
    kind = _kind_of(result.task)
    if kind is None:
        return f"{GENERATED} other tasks" if result.generated else "Other tasks"
    return f"{GENERATED} {kind}" if result.generated else kind


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> str | None:
    """Return modality and kind of a task, such as "Echo: views"; None for a task that this version does not know."""
    if (task := find_task(name)) is None:
        return None
    modality = {"echo": "Echo", "ecg": "ECG"}[catalog.modality(task)]
    if task.dense:
        return f"{modality}: single frames"
    return f"{modality}: {'views' if task.target == 'view' else 'diagnoses' if task.classes else 'measurements'}"


def table_names(entries: Iterable[ResultEntry]) -> list[str]:
    """Return the names of the overview's tables, in their order."""
    return sorted({table_name(entry.result) for entry in entries}, key=_table_order)


def overview_tables(entries: Sequence[ResultEntry]) -> list[OverviewTable]:
    """Return the tables of the overview; a model has a row in each table in which it has a score, under each protocol."""
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
        if result.task in rows.get((model, result.label, setting), {}):  # Duplicates, such as two seeds.
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
    """Return revision and choices of a model, in short."""
    preprocessing = result.model.get("preprocessing")
    variant = preprocessing.get("variant") if isinstance(preprocessing, dict) else None
    facts = (str(result.model.get("revision") or "")[:12], result.model.get("token_pooling"), variant)
    return " ".join(str(fact) for fact in facts if fact)


def _cell(entry: ResultEntry | None, model: str, protocol: str, task: str) -> ScoreCell | str:
    if entry is None:
        return missing_reason(find_card(model), protocol, find_task(task))
    return ScoreCell(entry, skill(entry.result), marks(entry.result))


def missing_reason(card: ModelCard | None, protocol: str, task: Task | None) -> str:
    """Return why a cell is empty: `not applicable: ...` where the model's card says so, else `not run`."""
    if card is None or task is None:
        return "not run"
    if catalog.modality(task) not in card.modalities:
        return f"{NOT_APPLICABLE}: the model takes {' and '.join(card.modalities)}"
    if protocol.startswith("zero_shot") and not card.text:
        return NO_TEXT
    if protocol.startswith("native") and task.target not in card.native:
        return f"{NOT_APPLICABLE}: none of its own heads answers this"
    return "not run"


def _rows_without_text(rows: Sequence[ModelRow], tasks: Sequence[str]) -> list[ModelRow]:
    """Return rows that say why a model is not among the zero-shot ones, where others are."""
    zero_shot = sorted({row.protocol for row in rows if row.protocol.startswith("zero_shot")})
    scored = {(row.model, row.protocol) for row in rows}
    return [
        ModelRow(model, protocol, "", (NO_TEXT,) * len(tasks))
        for model in sorted({row.model for row in rows})
        if (card := find_card(model)) is not None and not card.text
        for protocol in zero_shot
        if (model, protocol) not in scored
    ]


def ranked(result: ScoreResult) -> bool:
    """Return whether a result may be ranked: more than one class in its test set, a floor, and the present rules."""
    return result.verdict.word.rank is not Rank.NONE and not result.outdated
