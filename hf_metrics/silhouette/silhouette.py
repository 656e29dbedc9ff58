"""Silhouette of an embedding whose groups are known."""

import numbers

import datasets
import evaluate
import numpy as np

HIGHER_IS_BETTER = True

_DESCRIPTION = """
Mean silhouette: for each vector (b - a) / max(a, b), where a is its mean distance to the other vectors of its own group
and b the smallest mean distance to another group; a vector that is alone in its group counts 0.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): group of each vector.
    metric (str): `euclidean` or `cosine`; default `euclidean`.
Returns:
    dict with `silhouette` (float): [-1, 1], higher is better when groups should lie apart; NaN with one group, or when
    every vector is a group of its own.
Examples:
    >>> import evaluate
    >>> silhouette = evaluate.load("hf_metrics/silhouette")
    >>> result = silhouette.compute(references=[0, 0, 1, 1], predictions=[[0.0], [1.0], [10.0], [11.0]])
    >>> round(result["silhouette"], 4)
    0.8997
"""

_CITATION = """
@article{rousseeuw1987silhouettes, title={Silhouettes: a graphical aid to the interpretation and validation of cluster
analysis}, author={Rousseeuw, Peter J.}, journal={Journal of Computational and Applied Mathematics}, volume={20},
pages={53--65}, year={1987}}
"""


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


def compute(references, predictions, metric="euclidean"):
    """Mean silhouette of vectors in known groups.

    Args:
        references: group of each vector, (n,), whole numbers or names.
        predictions: embeddings, (n, d), finite.
        metric: `euclidean` or `cosine`.

    Returns:
        `silhouette`, [-1, 1]; NaN with one group, or when every vector is a group of its own.

    Raises:
        ValueError: labels or vectors are missing or not finite, or lengths differ; the message counts them.
    """
    from sklearn.metrics import silhouette_score

    label, vectors = _labels(references, "references"), _table(predictions, "predictions")
    if label.size != len(vectors):
        raise ValueError(f"{label.size} references but {len(vectors)} embeddings; give one per reference.")
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"no distance {metric!r}; there are 2: 'euclidean' and 'cosine'.")
    if not 2 <= np.unique(label).size < label.size:
        return {"silhouette": float("nan")}
    return {"silhouette": float(silhouette_score(vectors, label, metric=metric))}


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Silhouette(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references, metric="euclidean"):
        return compute(references, predictions, metric)
