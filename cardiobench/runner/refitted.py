"""Test the information in out-of-fold predictions, which requires refits on the embeddings."""

import numpy as np
import pandas as pd

from cardiobench.protocols.base import ProtocolOutput, TaskData, Units
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import Information
from cardiobench.stats.permuted_labels import refitted_test
from cardiobench.tasks.answers import TableAnswers


def refitted_information(
    predictions: TableAnswers, data: TaskData, output: ProtocolOutput, seed: int
) -> Information | None:
    """Return the test that permutes labels and refits all folds, or None if permuting fixed answers is sufficient.

    The latter applies to predictions that are not out of fold, to other than binary tasks, and to folds that share
    patients.

    Args:
        predictions: Predictions joined with references.
        data: Task data.
        output: Output of the protocol.
        seed: Random seed of the permutations.
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
