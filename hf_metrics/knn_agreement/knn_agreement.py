"""Whether the nearest neighbours of a vector carry the same label."""

import numbers

import datasets
import evaluate
import numpy as np

HIGHER_IS_BETTER = {"knn_agreement": True, "chance": None}

_DESCRIPTION = """
Share of the k nearest neighbours of each vector that have its label, averaged over all vectors; a vector is not its own
neighbour. `chance` is the same share for neighbours drawn at random. Neighbours at the same distance as the k-th share
its place evenly, so the order of the rows does not matter.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): labels, such as diagnosis (high agreement is good) or dataset (low is good).
    k (int): neighbours looked at, below n; default 10.
    metric (str): `euclidean` or `cosine`; default `euclidean`.
Returns:
    dict of float: `knn_agreement`, [0, 1], higher is better when neighbours should share the label; `chance`, [0, 1].
Examples:
    >>> import evaluate
    >>> knn_agreement = evaluate.load("hf_metrics/knn_agreement")
    >>> vectors = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]]
    >>> knn_agreement.compute(references=[0, 0, 0, 1, 1, 1], predictions=vectors, k=2)
    {'knn_agreement': 1.0, 'chance': 0.4}
"""

_CITATION = """
@article{cover1967nearest, title={Nearest neighbor pattern classification}, author={Cover, Thomas and Hart, Peter},
journal={IEEE Transactions on Information Theory}, volume={13}, pages={21--27}, year={1967}}
"""
_BLOCK = 512  # rows of the distance matrix that are held at once


def _labels(values, name):
    """Codes 0, 1, ... of one label a row, or a ValueError that counts what is wrong."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one label per row, shape (n,).")
    if array.size == 0:
        raise ValueError(f"0 {name}: there is nothing to score.")
    text = isinstance(array[0], str)
    if array.dtype.kind not in "iubU":
        odd = [value for value in array.tolist() if not (isinstance(value, str) if text else _whole(value))]
        if odd:
            raise ValueError(
                f"{len(odd)} of {array.size} {name} are not labels (first: {odd[0]!r}); give whole numbers, or names."
            )
    return np.unique(array.astype(str if text else np.int64), return_inverse=True)[1]


def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


def _table(values, name):
    """One vector a row, (n, d) finite float64, or a ValueError that counts what is wrong."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"the {len(values)} rows of {name} have different lengths; the shape has to be (n, d)."
        ) from None
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iuf":
        raise ValueError(f"{name} have shape {table.shape} and type {table.dtype}; give numbers of shape (n, d).")
    bad = int(np.sum(~np.isfinite(table).all(axis=1)))
    if bad:
        raise ValueError(f"{bad} of {len(table)} rows of {name} are not finite; every row needs a whole vector.")
    return table.astype(np.float64)


def compute(references, predictions, k=10, metric="euclidean"):
    """Agreement of labels among nearest neighbours.

    Args:
        references: labels, (n,), whole numbers or names.
        predictions: embeddings, (n, d), finite.
        k: neighbours looked at, 1 to n - 1.
        metric: `euclidean` or `cosine`.

    Returns:
        `knn_agreement` and `chance`, fractions in [0, 1].

    Raises:
        ValueError: labels or vectors are missing or not finite, lengths differ, or k does not fit.
    """
    label, vectors = _labels(references, "references"), _table(predictions, "predictions")
    n = len(vectors)
    if label.size != n:
        raise ValueError(f"{label.size} references but {n} embeddings; give one per reference.")
    if not 1 <= k < n:
        raise ValueError(f"{k} neighbours of {n} embeddings; ask for 1 to {n - 1}.")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"no distance {metric!r}; there are 2: 'euclidean' and 'cosine'.")
    vectors = vectors - vectors.mean(axis=0) if metric == "euclidean" else _unit(vectors)
    squares = np.einsum("nd,nd->n", vectors, vectors)
    agreement = 0.0
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        distance = squares[rows, None] + squares - 2 * vectors[rows] @ vectors.T
        distance[np.arange(len(rows)), rows] = np.inf
        edge = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
        slack = 1e-12 * (squares[rows, None] + squares.max())  # rounding of the matrix product
        nearer = distance < edge - slack
        tied = (distance <= edge + slack) & ~nearer
        same = label[rows, None] == label
        open_places = k - nearer.sum(axis=1)
        agreement += ((nearer & same).sum(axis=1) + open_places * (tied & same).sum(axis=1) / tied.sum(axis=1)).sum()
    sizes = np.bincount(label)
    return {"knn_agreement": float(agreement / (n * k)), "chance": float((sizes * (sizes - 1)).sum() / (n * (n - 1)))}


def _unit(vectors):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    empty = int((length == 0).sum())
    if empty:
        raise ValueError(f"{empty} of {len(vectors)} embeddings have length 0 and no direction; use 'euclidean'.")
    return vectors / length


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class KnnAgreement(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references, k=10, metric="euclidean"):
        return compute(references, predictions, k, metric)
