"""Read published answers, and find those that equal the answers of another model."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import spearmanr

from cardiobench.core.errors import BadData, CardioBenchError
from cardiobench.core.foreign import read_parquet
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.hub.submission import answers_format
from cardiobench.leaderboard.choice import card_of, is_baseline
from cardiobench.results.collect import ResultEntry, model_id
from cardiobench.results.predictions_file import OF_REFITS, refits_of_table
from cardiobench.results.refits import Refits
from cardiobench.tasks.answers import RefitAnswers, refit_columns, stored_refits

EQUAL = 0.9999
"""Smallest rank correlation of answers that are called equal; those of different networks stay below."""
MIN_UNITS = 10
"""Smallest number of common units that are compared."""
NEAR = 0.002
"""Largest difference between a number of two results whose answers a board compares."""

AnswersOf = Callable[[ResultEntry], pd.DataFrame | None]
"""Function that returns the published answers of a result; None without any."""


def read_answers(content: bytes, task: Task) -> pd.DataFrame:
    """Read ids and predictions; raises `BadData` if the file has anything else than these and answers of refits."""
    table = _read(content, task)
    return table.select([name for name in table.column_names if not name.startswith(OF_REFITS)]).to_pandas()


def read_refits(content: bytes, task: Task, record: Refits | None) -> RefitAnswers | None:
    """Read the answers of refits that a result states.

    Args:
        content: Content of a prediction file.
        task: Task that is answered.
        record: Refits of the result.

    Raises:
        BadData: The file has anything else than answers, or other lists than one of this length per row.
        BadPredictions: The file has another number of refits, or an answer is not valid.
    """
    if record is None:
        return None
    table = _read(content, task)
    names = [name for one in refit_columns(task) if (name := f"{OF_REFITS}{one}") in table.column_names]
    for name in names:
        kind = table.schema.field(name).type
        if kind not in (pa.list_(pa.float32(), record.count), pa.list_(pa.string(), record.count)):
            raise BadData(f"{name} is a column of {kind}; expected {record.count} numbers or names per row")
    ids = table["id"].to_pandas().astype(str)
    found = stored_refits(record, refits_of_table(table.select(names)), ids)
    for answers in found.tables(task) if found else ():
        task.rules.check_answers(answers, task, "an answer of a refit")
    return found


def _read(content: bytes, task: Task) -> pa.Table:
    try:
        return read_parquet(content, answers_format(task))
    except BadData as error:
        raise BadData(
            f"its file of predictions of {task.name} holds no predictions that can be read: {error}"
        ) from error


def answers_of(read: Callable[[str], bytes | None]) -> AnswersOf:
    """Return a function that reads the published answers of a result, each file once.

    Args:
        read: Function that returns the content of a file of predictions; None if there is none.
    """

    @cache
    def published(path: str, task: str) -> pd.DataFrame | None:
        try:
            content = read(path)
            table = None if content is None else read_answers(content, catalog.task(task))
            # A repeated id would multiply the rows when tables are joined.
            return table if table is not None and table["id"].is_unique else None
        except CardioBenchError:
            return None  # It cannot be compared; `verify` refuses it.

    return lambda entry: published(predictions_path(entry.result, entry.pushed_by), entry.result.task)


def name_equal_answers(entries: Iterable[ResultEntry], answers: AnswersOf) -> list[ResultEntry]:
    """Return entries with the earlier results of other models whose answers are equal.

    Only results of nearly the same numbers are compared, so that few files are read.
    """
    entries = list(entries)
    by_task: dict[str, list[ResultEntry]] = {}
    for entry in entries:
        by_task.setdefault(entry.result.task, []).append(entry)
    named = []
    for entry in entries:
        near = [one for one in by_task[entry.result.task] if one.date <= entry.date and _near(one, entry)]
        named.append(replace(entry, same_as=equal_answers(entry, near, answers)))
    return named


def equal_answers(entry: ResultEntry, others: Iterable[ResultEntry], answers: AnswersOf) -> tuple[str, ...]:
    """Return the other models, with their owners, whose answers to the same task rank the units as those of an entry do.

    The same model scored by two people and baselines of this project are not named.

    Args:
        entry: Submitted result.
        others: Results of the same dataset of results.
        answers: Function that returns the published answers of a result.
    """
    others = [one for one in others if one.result.task == entry.result.task and _model(one) != _model(entry)]
    own = None if is_baseline(entry.result) or not others else answers(entry)
    if own is None:
        return ()
    found: dict[str, None] = {}
    for other in others:
        name = f"{model_id(str(other.result.model['name']))} of {other.pushed_by}"
        if name not in found and (theirs := answers(other)) is not None and rank_correlation(own, theirs) > EQUAL:
            found[name] = None
    return tuple(found)


def rank_correlation(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return Spearman's correlation of two tables of answers, the median over columns; NaN without common numbers.

    Args:
        one: Answers with id and columns of numbers.
        other: Other answers; units of only one table are left out.
    """
    both = one.merge(other, on="id", suffixes=("", "_other"))
    names = [name for name in one if name != "id" and f"{name}_other" in both and _varies(both, name)]
    if len(both) < MIN_UNITS or not names:
        return float("nan")
    return float(np.median([spearmanr(both[name], both[f"{name}_other"]).statistic for name in names]))


def _varies(table: pd.DataFrame, name: str) -> bool:
    columns = table[[name, f"{name}_other"]]
    return all(map(pd.api.types.is_numeric_dtype, columns.dtypes)) and bool((columns.nunique() > 1).all())


def _model(entry: ResultEntry) -> str:
    """Return the registered id of a model, or its name."""
    card = card_of(entry.result)
    return card.id if card else model_id(str(entry.result.model["name"]))


def _near(one: ResultEntry, other: ResultEntry) -> bool:
    """Return whether a number of two results is nearly equal."""
    mine, theirs = one.result.overall, other.result.overall
    return any(abs(mine[key].value - theirs[key].value) <= NEAR for key in mine.keys() & theirs.keys())
