"""Count recordings, units and patients from a release to the scored units, as in a diagram of STARD."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.versions import data_version_key, describe_version, same_version


@dataclass(frozen=True)
class Box:
    """Box of the diagram.

    Attributes:
        text: What is counted.
        count: Number of recordings, or of units.
        patients: Number of patients; None if unknown.
        left_out: Reason -> number of recordings or units that do not reach the next box.
    """

    text: str
    count: int
    patients: int | None
    left_out: Mapping[str, int]

    @property
    def remaining(self) -> int:
        """Number that reaches the next box."""
        return self.count - sum(self.left_out.values())


@dataclass(frozen=True)
class Flow:
    """Participant flow of a task.

    Attributes:
        task: Name of the task.
        unit: What is scored: "recordings", or the column of the units.
        recordings: Boxes of recordings, each with what the one above leaves.
        units: Box of units that have a label and a recording.
        splits: Split -> box of its units, which add up to those of `units`; the test split states what is not scored.
        scored: Name of a result -> number of scored units; empty without results.
        before: Reason -> number of entries of the release that the benchmark leaves out before any recording is counted,
            such as patients or lines of a table.
        generated: Whether the recordings are generated.
        other: Results of another version of the data, which are not counted.
    """

    task: str
    unit: str
    recordings: tuple[Box, ...]
    units: Box
    splits: Mapping[str, Box]
    scored: Mapping[str, int]
    before: Mapping[str, int]
    generated: bool
    other: tuple[str, ...] = ()


def participant_flow(dataset: OpenDataset, task: Task, results: Sequence[ScoreResult] = ()) -> Flow:
    """Count the recordings and units of a task.

    Args:
        dataset: Opened dataset, which may be incomplete.
        task: One of its tasks.
        results: Results of the task.
    """
    table, frame = dataset.table, dataset.frame
    absent = sum(table.absent.values())
    boxes = [
        Box(
            "recordings of the release" if not absent else "recordings of the release, as far as known",
            len(table.listed) + absent,
            None if absent else _patients(table.listed),
            {"not in the tables of this copy": absent},
        ),
        Box(
            "recordings listed in the tables",
            len(table.listed),
            _patients(table.listed),
            {"file absent or empty": len(table.listed) - len(frame)},
        ),
    ]
    without = {f"no label of {task.name}": int(frame[task.target].isna().sum())}
    rest = frame[frame[task.target].notna()]
    for column, accepted in task.where.items():
        kept = rest[column].isin(accepted)
        without[f"{column} not {' or '.join(map(str, accepted))}"] = int((~kept).sum())
        rest = rest[kept]
    boxes.append(Box("recordings that are available", len(frame), _patients(frame), without))
    boxes.append(Box("recordings of the task", len(rest), _patients(rest), {}))
    units = rest.drop_duplicates(task.unit_column)
    names = list(dict.fromkeys([*dataset.spec.splits, *units["split"].unique()]))
    splits = {name: units[units["split"] == name] for name in names}
    own = data_version_key(dataset.facts)
    same = [one for one in results if same_version(data_version_key(one.dataset), own)]
    names_of = [f"{one.model['name']}, {one.label}" for one in same]
    scored = {
        name if names_of.count(name) == 1 else f"{name}, {number} of {names_of.count(name)}": one.scored
        for name, number, one in zip(names_of, _numbers(names_of), same, strict=True)
    }
    unit = "recordings" if task.unit_column == "id" else task.unit_column.removesuffix("_id") + " units"
    return Flow(
        task.name,
        unit,
        tuple(boxes),
        Box(f"{unit} with a label and a recording", len(units), _patients(units), {}),
        {name: Box(name, len(part), _patients(part), {}) for name, part in splits.items()},
        scored,
        {reason: len(ids) for reason, ids in table.excluded.items() if ids},
        dataset.generated,
        tuple(
            f"{one.model['name']}, {one.label}: scored on {describe_version(data_version_key(one.dataset))}"
            for one in results
            if one not in same
        ),
    )


def _numbers(names: Sequence[str]) -> list[int]:
    """Return how often each name has occurred so far, itself included."""
    return [names[: place + 1].count(name) for place, name in enumerate(names)]


def _patients(rows: pd.DataFrame) -> int:
    return int(rows["patient_id"].nunique())


def check_sums(flow: Flow) -> list[str]:
    """Return the sums that do not add up; empty if all do."""
    wrong = [
        f"{box.text}: {box.remaining} remain, and {below.text} has {below.count}"
        for box, below in zip(flow.recordings[:-1], flow.recordings[1:], strict=True)
        if box.remaining != below.count
    ]
    if (total := sum(box.count for box in flow.splits.values())) != flow.units.count:
        wrong.append(f"the splits have {total} units of {flow.units.count}")
    if flow.unit == "recordings" and flow.units.count != flow.recordings[-1].count:
        wrong.append(f"{flow.recordings[-1].count} recordings are {flow.units.count} units")
    return wrong


def lines(flow: Flow) -> list[str]:
    """Return the flow as lines of text."""
    found = [f"participant flow of {flow.task}" + (" (generated recordings)" if flow.generated else "")]
    found += [f"  left out before: {reason}: {count}" for reason, count in flow.before.items()]
    for box in (*flow.recordings, flow.units):
        found.append(sentence(box))
        found += [f"    - {reason}: {count}" for reason, count in box.left_out.items() if count]
    found += [f"  {sentence(box)}" for box in flow.splits.values()]
    test = flow.splits.get("test")
    for name, count in flow.scored.items():
        of_test = f" of {test.count}" if test and count <= test.count else ""
        found.append(f"    scored for {name}: {count}{of_test} {flow.unit}")
    found += [f"    not counted, other data: {one}" for one in flow.other]
    return found


def sentence(box: Box) -> str:
    """Return the text of a box with its numbers."""
    patients = "" if box.patients is None else f" ({box.patients} patients)"
    return f"{box.text}: {box.count}{patients}"
