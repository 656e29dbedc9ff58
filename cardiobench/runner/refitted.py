"""Information test of a cell whose answers are out of fold: it needs the embeddings, which the answers do not show."""

import numpy as np
import pandas as pd

from cardiobench.protocols.base import ProtocolOutput, TaskData, Units
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.dealt_labels import refitted_test
from cardiobench.stats.information import Information
from cardiobench.tasks.answers import TableAnswers


def refitted_information(
    predictions: TableAnswers, data: TaskData, output: ProtocolOutput, seed: int
) -> Information | None:
    """Return the test of embeddings that deals labels and fits all folds again; None where answers are dealt as they are.

    These are answers that are not out of fold, tasks of other than two classes, and folds that share patients.

    Args:
        predictions: Answers joined with their references.
        data: Recordings of the task.
        output: Output of the protocol.
        seed: Seed of the dealings.
    """
    if output.folds is None or not data.task.rules.two_classes:
        return None
    units, clusters = Units.of(data, output.indices), Clusters.of(predictions.patients)
    fold_of_unit = np.empty(len(units.ids), dtype=np.int64)
    fold_of_unit[units.of_recording] = output.folds
    place = pd.Index(units.ids.astype(str)).get_indexer(predictions.frame["id"])
    folds = fold_of_unit[place]
    if len(np.unique(np.stack([clusters.of_row, folds], axis=1), axis=0)) > clusters.count:
        return None
    features = units.mean(data.features[output.indices])[place]
    return refitted_test(features, predictions.sample().y_true, folds, clusters, seed=seed)
