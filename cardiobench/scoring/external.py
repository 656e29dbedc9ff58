"""Join predictions from elsewhere with references; the coverage refers to the release, or is unknown."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadPredictions
from cardiobench.data import catalog
from cardiobench.data.open import absence
from cardiobench.data.references_file import References
from cardiobench.data.spec import Task
from cardiobench.results.versions import references_command
from cardiobench.scoring.predictions import Predictions, read_predictions, source_name


def join_external(
    predictions: str | Path | pd.DataFrame,
    references: References,
    *,
    renewal: str,
    split: str = "test",
    allow_missing: bool = False,
) -> Predictions:
    """Read predictions from elsewhere and join them with references.

    Args:
        predictions: File or frame with an id and an answer per unit.
        references: References of the task.
        renewal: Command that writes the references again, for the warning if their release is unknown.
        split: Split to score.
        allow_missing: Whether units may have no answer; the verdict is then that of the worst case.

    Returns:
        The joined predictions. `expected` is the number of units of the complete release, or None if unknown.
    """
    task, source = references.task, source_name(predictions)
    answers = read_predictions(predictions, task)
    advice = f"{references.problem}. Write them anew: {renewal}"
    try:
        joined = Predictions.join(
            references.table,
            answers,
            task,
            source=source,
            split=split,
            allow_missing=allow_missing,
            unlabelled=references.unlabelled,
        )
    except BadPredictions as error:
        if references.release is None:  # Such references may omit units without a label.
            raise BadPredictions(f"{error} This may be due to the references: {advice}") from error
        raise
    joined = joined.with_doubts()
    joined = replace(joined, warnings=(*joined.warnings, *_shared_patients(references.table, split)))
    if references.release is not None:
        return replace(joined, expected=references.expected(split))
    warning = f"the coverage is unknown and the score is not ranked, because of the references: {advice}"
    return replace(joined, expected=None, warnings=(*joined.warnings, warning))


def _shared_patients(table: pd.DataFrame, split: str) -> list[str]:
    """Describe how many patients of the scored split are also in the training data."""
    scored, train = (set(table.loc[table["split"] == name, "patient_id"]) for name in (split, "train"))
    shared = len(scored & train) if split != "train" else 0
    if not shared:
        return []
    patients = f"{shared} of {len(scored)} patients of the {split} split are in the train split too"
    return [f"{patients}, by the references: a model may have learned them, and the score may be too high"]


def renewal_command(task: Task, source: str | Path | pd.DataFrame, data_dir: Path | None = None) -> str:
    """Return the command that writes a file of references again.

    Args:
        task: Task of the references.
        source: File of the references; a data frame, or an empty text, has no file name.
        data_dir: Raw folder, if the user named one.
    """
    out = "references.csv" if isinstance(source, pd.DataFrame) or not str(source) else str(source)
    if data_dir is not None:
        return references_command(task.name, out, str(data_dir))
    found = task.dataset in catalog.list_datasets() and absence(task.dataset) is None
    return references_command(task.name, out, None if found else "DIR")
