"""Compare embeddings of the same records by linear CKA."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.metrics.load import load_metric
from cardiobench.protocols.sample import BalancedSample

ALL = "all"
COLUMNS = ["model", "other", "dataset", "linear_cka", "records"]


def similarity(samples: Sequence[tuple[str, BalancedSample]]) -> pd.DataFrame:
    """Return linear CKA of all pairs of models on shared records, by dataset and overall.

    Args:
        samples: Pairs of model name and records.

    Returns:
        Table with the columns model, other, dataset (`all` for all datasets), linear_cka and records.
    """
    formula = load_metric("linear_cka").compute
    rows = []
    for (one, left), (other, right) in combinations(samples, 2):
        theirs = {part.name: part for part in right.parts}
        pairs = []
        for part in left.parts:
            if part.name in theirs:
                _, mine, yours = np.intersect1d(part.ids, theirs[part.name].ids, return_indices=True)
                pairs.append((part.name, part.features[mine], theirs[part.name].features[yours]))
        if len(pairs) > 1:
            pairs.append((ALL, np.concatenate([x for _, x, _ in pairs]), np.concatenate([y for *_, y in pairs])))
        rows += [(one, other, name, formula(x, y)["linear_cka"], len(x)) for name, x, y in pairs if len(x) > 1]
    return pd.DataFrame(rows, columns=COLUMNS)


def names_of(models: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return model names, with token pooling or revision if a name occurs twice."""
    names = [model["name"] for model in models]
    if len(set(names)) < len(names):
        names = [f"{model['name']} {model.get('token_pooling') or model['revision'][:7]}" for model in models]
    return names
