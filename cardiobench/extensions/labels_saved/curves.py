"""Read learning curves from records and compare the patients that learners need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from cardiobench.extensions.labels_saved.savings import Curve, Saving, saving
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.formatting import model_labels
from cardiobench.scoring.pairs import correct


@dataclass(frozen=True)
class CurveSet:
    """Learning curves of one task.

    Attributes:
        task: Name of the task, `dataset/target`.
        tables: Mapping from curve name to rows of the record's `curve` table.
        curves: Comparable curves with at least two points, which share patients and draws with the first, in record
            order.
        unpaired: Names of curves that cannot be compared.
    """

    task: str
    tables: dict[str, pd.DataFrame]
    curves: tuple[Curve, ...]
    unpaired: tuple[str, ...]

    @property
    def reference(self) -> Curve:
        """Reference curve: a reference such as training from scratch, else the curve with the lowest final score."""
        of_reference = [one for one in self.curves if one.reference]
        lowest = min(self.curves, key=lambda one: one.scores[-1] * (1 if one.higher_is_better else -1))
        return of_reference[0] if of_reference else lowest

    def savings(self) -> Iterator[Saving]:
        """Yield the saving of each curve relative to the reference."""
        yield from (saving(one, self.reference) for one in self.curves if one is not self.reference)


def curves_of(records: Sequence[AnalysisResult]) -> CurveSet:
    """Return the curves of one task's records."""
    tables, found = {}, []
    models = model_labels([record.models[0] for record in records])
    for record, model in zip(records, models, strict=True):
        for learner, rows in record.tables["curve"].groupby("learner", sort=False):
            name = f"{model}, {learner}"
            tables[name] = rows
            found.append(_curve(name, str(learner), rows, record))
    several = [one for one in found if len(one.patients) > 1]
    curves = tuple(one for one in several if one.paired_by == several[0].paired_by)
    return CurveSet(
        records[0].subject, tables, curves, tuple(one.name for one in found if not any(one is kept for kept in curves))
    )


def decide_savings(several: Sequence[CurveSet]) -> tuple[list[list[Saving]], int]:
    """Compare all pairs of the curves of each task, with the p-values of all tasks corrected together.

    Args:
        several: Curves of each task that is shown.

    Returns:
        For each task, the savings of all pairs in both directions, in the order of the curves, and the number of pairs
        that were tested.
    """
    pairs = [
        (task, (one, other), saving(curves.curves[one], curves.curves[other]))
        for task, curves in enumerate(several)
        for one, other in combinations(range(len(curves.curves)), 2)
    ]
    raw = [one.compared.p_adjusted for *_, one in pairs]
    found: list[dict[tuple[int, int], Saving]] = [{} for _ in several]
    for (task, (one, other), there), p_value in zip(pairs, correct(raw), strict=True):
        back = saving(several[task].curves[other], several[task].curves[one])
        for at, way in (((one, other), there), ((other, one), back)):
            found[task][at] = replace(way, compared=way.compared._replace(p_adjusted=p_value))
    return [[of_task[at] for at in sorted(of_task)] for of_task in found], int((~np.isnan(raw)).sum())


def savings_table(savings: Sequence[Saving]) -> pd.DataFrame:
    """Return one row per pair of curves: how many patients one needs for the score that the other has with all of them."""
    return pd.DataFrame([
        {
            "learner": one.name,
            "compared_with": one.other,
            "patients_needed": one.text,
            "times_fewer": one.factor_text,
            "conclusion": one.conclusion,
            "factor": one.factor,
            "low": one.low,
            "high": one.high,
            "p_value": one.compared.found.p_value,
            "p_adjusted": one.compared.p_adjusted,
            "all_patients": one.all,
        }
        for one in savings
    ])  # fmt: skip


def _curve(name: str, learner: str, rows: pd.DataFrame, record: AnalysisResult) -> Curve:
    patients = rows["patients"].to_numpy()
    first = rows.iloc[0]
    columns = [f"{learner} at {count}" for count in patients]
    return Curve(
        name,
        patients,
        rows["score"].to_numpy(dtype=np.float64),
        record.tables["resamples"][columns].to_numpy(dtype=np.float64),
        higher_is_better=first["better"] == "higher",
        test_patients=int(first["test_patients"]),
        reference=first["reference"] if isinstance(first["reference"], str) else "",
        paired_by=str(record.options.get("paired_by", "")),
    )
