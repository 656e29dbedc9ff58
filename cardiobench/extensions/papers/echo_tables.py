"""Reproduce Tables 1 to 3 of arXiv:2510.00520 with floors and published scores."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cardiobench.core.errors import MissingData
from cardiobench.data import catalog
from cardiobench.extensions.papers.anchors import PublishedScore, human_ceilings, published_scores
from cardiobench.extensions.papers.comparable import is_comparable
from cardiobench.extensions.papers.floor_table import task_floors
from cardiobench.report.grid import NONE, Block, Grid, GridCell, mark_best
from cardiobench.report.overview import ranked
from cardiobench.report.probe_gain import BEFORE, probes_of
from cardiobench.results.formatting import FLOOR_MEANING
from cardiobench.results.score_result import ScoreResult

MEASURED = tuple(
    [*(f"{name}/ef" for name in ("echonet_dynamic", "camus", "echonet_pediatric"))]
    + [f"echonet_lvh/{target}" for target in ("lvidd", "ivsd", "lvpwd")]
)
DIAGNOSED = (
    "cardiacnet/asd",
    "cardiacnet/pah",
    "hmc_qu/stemi",
    "tmed2/as",
    *(f"segrwma/rwma_{view}" for view in ("a2c", "a3c", "a4c")),
)
PROBED = tuple(task for task in (*MEASURED, *DIAGNOSED) if not task.endswith(("/ef", "/as")))
"""The nine columns of Table 2, which has no ejection fraction and no aortic stenosis."""
VIEWED = (
    *(
        f"{name}/view_named"
        for name in ("echonet_dynamic", "echonet_pediatric", "echonet_lvh", "camus", "cardiacnet", "hmc_qu")
    ),
    "tmed2/view",  # The released predictions have the images and the probability of "Other".
    "segrwma/view_named",
)
NOTE = (
    "MAE in the label's unit (lower is better), macro F1 in % (higher is better). Bold: best, underlined: second, among ours "
    "and among the published ones by themselves. ∅ collapsed: one answer to everything; S: the dataset was in the pretraining data; "
    "† one class in the test set: its F1, in no ranking; ◔ recordings of the test set are missing, in no ranking. Floor: "
    + FLOOR_MEANING
    + ". People: agreement of "
    "readers in other studies and settings, never the ceiling. Published: as printed, on the authors' own run. "
    "Family: models of echocardiograms, of biomedical images, or of any images; ●: reads videos."
)
FAMILY = "family"
NOTE_OF_CHANGES = (
    "Δ: how much better the probe is than the same model's score without training, from the printed digits; for published "
    "scores Table 2 against Table 1. Of several scores without training the first counts: zero-shot by the most similar "
    "prompt, then other zero-shot readings, then the model's own heads. It needs the results of Table 1 in the same folder."
)
PAPER = "arXiv:2510.00520"
FAMILIES = {
    "echo": ("EchoCLIP", "EchoPrime", "PanEcho", "EchoFM"),
    "biomedical": ("BioMedCLIP",),
    "general": ("DINOv3", "SigLIP2"),
}
"""Family -> models of the paper, in the order of its discussion."""
OF_VIDEO = ("EchoPrime", "PanEcho", "EchoFM")
MODELS = {
    "mkaichristensen/echo-clip": "EchoCLIP",
    "mkaichristensen/echo-clip-r": "EchoCLIP",
    "echonet/EchoPrime": "EchoPrime",
    "CarDS-Yale/PanEcho": "PanEcho",
    "sekeun/EchoFM": "EchoFM",
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": "BioMedCLIP",
    **{f"facebook/dinov3-vit{size}16-pretrain-lvd1689m": "DINOv3" for size in "sbl"},
    "facebookresearch/dinotxt-vitl16": "DINOv3",
    **{f"google/siglip2-base-patch16-{size}": "SigLIP2" for size in (224, 512)},
}
"""Registered model -> model of the paper."""
ONE_CLASS = "accuracy"  # Ranking metric of a classification with a single class in the test set.


@dataclass(frozen=True)
class Layout:
    """Layout of a table.

    Attributes:
        number: Table number in the paper.
        title: Title of the reproduced table.
        tasks: Tasks in the columns.
        protocols: Protocols whose results form the rows.
        beside: Number of the table from whose scores each score has a difference, in a column of its own; 0 for none.
    """

    number: int
    title: str
    tasks: tuple[str, ...]
    protocols: tuple[str, ...]
    beside: int = 0


LAYOUTS = (
    Layout(1, "Zero-shot and the models' own heads", (*MEASURED, *DIAGNOSED), ("zero_shot", "native")),
    Layout(2, "Probe on frozen embeddings", PROBED, ("probe",), beside=1),
    Layout(3, "View recognition, zero-shot and the models' own heads", VIEWED, ("zero_shot", "native")),
)


def echo_grids(results: Sequence[ScoreResult], floor: Callable[[str], float] | None = None) -> list[Grid]:
    """Return the three tables, excluding generated recordings.

    Args:
        results: Results of any models; results that no table shows are ignored.
        floor: Mapping from task to floor, NaN if unknown; by default from results or the bundled splits.
    """
    return [echo_grid(layout, results, floor or floors_of(results)) for layout in LAYOUTS]


def own_results(layout: Layout, results: Sequence[ScoreResult]) -> list[ScoreResult]:
    """Return the results that appear in a table: those on the recordings of the paper, as they were released."""
    return [
        result
        for result in results
        if result.protocol in layout.protocols and result.task in layout.tasks and is_comparable(result)
    ]


def echo_grid(layout: Layout, results: Sequence[ScoreResult], floor: Callable[[str], float]) -> Grid:
    """Return one table with floors, new and published scores."""
    ours: dict[str, dict[str, ScoreResult]] = {}
    for result in own_results(layout, results):
        label = f"{result.model['name']} ({result.label})"
        if result.task in ours.get(label, {}):  # Show another configuration of the same model in a separate row.
            label += f" {result.model.get('revision')} {result.model.get('token_pooling', '')} seed {result.stamp.get('seed')}"
        ours.setdefault(label, {})[result.task] = result
    theirs, before = _published(layout.number, layout.tasks), _published(layout.beside, layout.tasks)
    floors = [GridCell("–" if math.isnan(v := floor(task)) else _number(task, v)) for task in layout.tasks]
    rows = {label: [_ours(own.get(task)) for task in layout.tasks] for label, own in ours.items()}
    printed = {
        f"{model}, published": [_theirs(own.get(task)) for task in layout.tasks] for model, own in theirs.items()
    }
    blocks = [
        (("floor", tuple(floors)), ("people, in other settings", tuple(_people(task) for task in layout.tasks))),
        _block(rows, layout.tasks),
        _block(printed, layout.tasks),
    ]
    kinds = {label: family(str(next(iter(own.values())).model["name"])) for label, own in ours.items()}
    kinds |= {f"{model}, published": family(model) for model in theirs}
    head = tuple(f"{task} {'↓' if _measured(task) else '↑'}" for task in layout.tasks)
    if layout.beside:
        changes = {
            **{label: [_change(own.get(task), results) for task in layout.tasks] for label, own in ours.items()},
            **{
                f"{model}, published": [
                    _published_change(own.get(task), before.get(model, {}).get(task)) for task in layout.tasks
                ]
                for model, own in theirs.items()
            },
        }
        empty = [GridCell()] * len(layout.tasks)
        blocks = [
            tuple((label, _between(cells, changes.get(label, empty))) for label, cells in block) for block in blocks
        ]
        head = _between(head, [f"Δ {task} ↑" for task in layout.tasks])
    blocks = [
        tuple(
            (label, (*cells, GridCell(kinds.get(label, NONE))))
            for label, cells in sorted(block, key=lambda row: _place(kinds, row[0]))
        )
        for block in blocks
    ]
    return Grid(
        f"echo_table_{layout.number}",
        f"Table {layout.number}. {layout.title}",
        ("model", *head, FAMILY),
        tuple(block for block in blocks if block),
        f"{NOTE} {NOTE_OF_CHANGES}" if layout.beside else NOTE,
    )


def family(model: str) -> str:
    """Return the family of a model of the paper, with a bullet if it reads videos; a dash for other models."""
    name = MODELS.get(model, model)
    found = next((kind for kind, names in FAMILIES.items() if name in names), NONE)
    return f"{found} ●" if name in OF_VIDEO else found


def _place(kinds: Mapping[str, str], label: str) -> int:
    """Return the place of a row's family; rows of one family keep their order."""
    known = list(FAMILIES)
    kind = kinds.get(label, NONE).partition(" ")[0]
    return known.index(kind) if kind in known else len(known)


def _between(first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
    """Return the entries of two sequences in turn."""
    return tuple(one for pair in zip(first, second, strict=True) for one in pair)


def _published(table: int, tasks: Sequence[str]) -> dict[str, dict[str, PublishedScore]]:
    """Return the published scores of a table of the paper, by model and then by task; empty for no table."""
    found: dict[str, dict[str, PublishedScore]] = {}
    for task in tasks:
        for row in published_scores(task):
            if row.source == f"{PAPER} Table {table}":
                found.setdefault(row.model, {})[task] = row
    return found


def _change(after: ScoreResult | None, results: Sequence[ScoreResult]) -> GridCell:
    """Return how much better a probe is than the same model without training, from the scores as printed."""
    if after is None:
        return GridCell()
    earlier = [one for one in results if one.protocol in BEFORE and after in probes_of(one, list(results))]
    first = min(earlier, key=lambda one: (BEFORE.index(one.protocol), one.variant), default=None)
    if first is None or math.isnan(first.score.value) or math.isnan(after.score.value):
        return GridCell()
    old, new = (round(one.number().factor * published_quantity(one), 2) for one in (first, after))
    return GridCell(_signed(old - new if _measured(after.task) else new - old))


def _published_change(after: PublishedScore | None, before: PublishedScore | None) -> GridCell:
    """Return how much better a printed score of Table 2 is than that of Table 1."""
    if after is None or before is None:
        return GridCell()
    old, new = float(before.printed), float(after.printed)
    return GridCell(_signed(old - new if _measured(after.task) else new - old))


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


def echo_numbers(grids: Sequence[Grid]) -> dict[str, pd.DataFrame]:
    """Return the values of each table: model, family, task, value (NaN if not compared), text and rank."""
    return {
        grid.name: pd.DataFrame(
            [
                {
                    "model": label,
                    "family": cells[-1].text,
                    "task": task,
                    "value": cell.value,
                    "text": cell.text,
                    "place": cell.place,
                }
                for block in grid.blocks
                for label, cells in block
                for task, cell in zip(grid.head[1:-1], cells[:-1], strict=True)
            ]
        )
        for grid in grids
    }


def floors_of(results: Sequence[ScoreResult]) -> Callable[[str], float]:
    """Return a function from task to its floor, from real results or the bundled split."""
    known = {r.task: r.floor.value for r in results if not r.generated}

    def floor(task: str) -> float:
        if task not in known:
            try:
                known[task] = task_floors(catalog.task(task)).floors["best_uninformed"].value
            except MissingData:
                known[task] = math.nan
        return known[task]

    return floor


def _block(rows: dict[str, list[GridCell]], tasks: Sequence[str]) -> Block:
    """Mark the best and second-best cells of every column."""
    if not rows:
        return ()
    columns = [
        mark_best(column, not _measured(task))
        for task, column in zip(tasks, zip(*rows.values(), strict=True), strict=True)
    ]
    return tuple(zip(rows, zip(*columns, strict=True), strict=True))


def _measured(task: str) -> bool:
    return catalog.task(task).rules.answer == "number"


def _number(task: str, value: float) -> str:
    return f"{value:.2f}" if _measured(task) else f"{100 * value:.2f}"


def _ours(result: ScoreResult | None) -> GridCell:
    if result is None or math.isnan(result.score.value):
        return GridCell("–" if result is None else "undefined")
    incomplete = result.expected is not None and result.scored < result.expected
    marks = "∅" * result.collapsed + "S" * bool(result.seen_in_pretraining) + "†" * (not ranked(result))
    marks += "◔" * incomplete
    factor = result.number().factor
    value = round(factor * result.score.value, 2) if ranked(result) and not incomplete else math.nan
    return GridCell(f"{_number(result.task, published_quantity(result))} {marks}".strip(), value)


def published_quantity(result: ScoreResult) -> float:
    """Return the score of a result by the formula of the paper.

    The paper averages the F1 of the classes in the test set. For a single class, whose score here is the share a of
    correct answers, all its answers are correct, and its F1 is 2 a / (1 + a).
    """
    value = result.score.value
    return 2 * value / (1 + value) if result.metric == ONE_CLASS else value


def _people(task: str) -> GridCell:
    """Return the first human ceiling in the task's metric."""
    metric = catalog.task(task).metrics[0]
    for ceiling in human_ceilings(task):
        if ceiling.metric == metric:
            ends = dict.fromkeys(_number(task, value) for value in (ceiling.low, ceiling.high))
            return GridCell(" to ".join(ends))
    return GridCell()


def _theirs(row: PublishedScore | None) -> GridCell:
    return GridCell() if row is None else GridCell(row.printed, float(row.printed))
