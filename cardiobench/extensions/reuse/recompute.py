"""Recompute some answers of a published result before it is reused."""

from dataclasses import replace

import numpy as np
import pandas as pd

from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.embeddings.repeat import relative_difference, tolerance
from cardiobench.protocols.base import aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.recordings import Cell, task_data, under_conditions
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_here

RECORDINGS = 50
"""Number of test recordings whose answers are recomputed."""
MOST = 2000
"""Maximum number of recordings to encode for it; more would cost what reuse saves."""


class NotRecomputed(CardioBenchError):
    """The answers cannot be recomputed at a small part of the cost; the message is the reason."""


def disagreement(cell: Cell, published: pd.DataFrame, result: ScoreResult, context: RunContext) -> str:
    """Recompute the answers to some test recordings and compare them with published ones.

    The recordings are encoded into the run's own store, and so are the training recordings if the protocol reads them.

    Args:
        cell: Cell of the run.
        published: Published answers with id and the columns of `aggregate`.
        result: Published result.
        context: Run context of the main process.

    Returns:
        The difference in words if it exceeds the tolerance between two encodings, as a fraction of the root mean square
        of the published answers; empty if the answers agree.

    Raises:
        NotRecomputed: A recording cannot be read, or the answers cannot be recomputed at a small part of the cost.
    """
    rows = rows_of_some(cell, published)
    _encode(cell, rows, context)
    protocol = cell.protocol
    if getattr(protocol, "refits", 0):  # Refits widen the interval and change no answer.
        protocol = replace(protocol, refits=0)  # type: ignore[type-var]  # protocols are dataclasses
    data = task_data(cell, rows)
    try:
        output = protocol.predict(data, cell.model.encoder, cell.variant)
    except NotApplicable as error:
        return f"it has answers, but {error}"
    output = cut_by_validation(data, under_conditions(cell, data, output))
    devices = {name.partition(":")[0] for name in (*data.embeddings.devices, str(result.stamp.get("device", "cpu")))}
    return differing(published, aggregate(data, output), tolerance(cell.model, devices))


def differing(published: pd.DataFrame, again: pd.DataFrame, most: float) -> str:
    """Return how published answers differ from recomputed ones; empty if they agree.

    Args:
        published: Published answers with id and the columns of `aggregate`.
        again: Recomputed answers to some of the same units.
        most: Largest difference of equal answers, as a fraction of the root mean square of the published ones.
    """
    there, here = published.set_index("id").loc[again["id"]], again.set_index("id")
    done = f"{len(here)} of its answers were recomputed here"
    names = [name for name in here if name in there and pd.api.types.is_numeric_dtype(here[name])]
    if names:
        difference = relative_difference(there[names].to_numpy(np.float64), here[names].to_numpy(np.float64))
        if difference > most:
            return f"{done}, and differ by up to {difference:.2g} of their root mean square, more than {most:g}"
    wrong = 0 if "y_pred" in names else int((there["y_pred"].astype(str) != here["y_pred"].astype(str)).sum())
    return f"{done}, and {wrong} of them name another class" if wrong else ""


def rows_of_some(cell: Cell, published: pd.DataFrame) -> pd.DataFrame:
    """Return the recordings of some answered test units and, if the protocol reads them, the training recordings."""
    protocol, task = cell.protocol, cell.task
    if protocol.out_of_fold:
        raise NotRecomputed("answers out of fold need every recording")
    if protocol.keeps_training:
        raise NotRecomputed(f"{protocol.name} trains a network")
    rows = protocol.select_rows(cell.rows.reset_index(drop=True), task, cell.variant)
    test = rows[rows["split"] == "test"]
    names = test[task.unit_column].astype(str)
    units = names[names.isin(published["id"].astype(str))].unique()
    # Drawn from the key, so that they are the same in each run and are spread over the table.
    chosen = np.random.default_rng(int(cell.key, 16)).permutation(units)[:RECORDINGS]
    kept = test[names.isin(chosen)]
    if protocol.reads_training(cell.variant):
        kept = pd.concat([rows[rows["split"] != "test"], kept])
    return kept.reset_index(drop=True)


def _encode(cell: Cell, rows: pd.DataFrame, context: RunContext) -> None:
    """Encode the rows that are not stored yet."""
    from cardiobench.embeddings.extract import EncodeJob

    store, dataset = cell.plan.store, cell.dataset
    absent = rows["id"].iloc[store.missing(rows["id"], rows["fingerprint"])]
    if len(absent) > MOST:
        raise NotRecomputed(f"this requires encoding {len(absent):,} recordings")
    numbers = np.flatnonzero(dataset.frame["id"].isin(absent))
    jobs = [EncodeJob(dataset, int(number), store, dataset.spec.media) for number in numbers]
    title = f"{dataset.spec.name} with {cell.model.name}, to check a published result"
    if jobs and (failed := encode_here(cell.model, jobs, title, context)):
        raise NotRecomputed(f"{failed[0].id} cannot be read here: {failed[0].reason}")
