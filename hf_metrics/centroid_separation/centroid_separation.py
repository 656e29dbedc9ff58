"""How far the groups of an embedding lie apart, in units of their own spread."""

import numbers

import datasets
import evaluate
import numpy as np

HIGHER_IS_BETTER = True

_DESCRIPTION = """
Distance of two groups' centroids divided by their pooled root-mean-square radius, averaged over all pairs of groups:
|mu_a - mu_b| / sqrt((SS_a + SS_b) / (n_a + n_b)), where SS is the sum of squared distances of a group's vectors to their
centroid. 0 means the same centre; 1 means as far apart as the groups are wide.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): group of each, such as diagnosis (high is good) or dataset (low is good).
Returns:
    dict with `centroid_separation` (float): [0, inf), higher is better when the groups should lie apart; NaN with one
    group or where a pair has no spread at all.
Examples:
    >>> import evaluate
    >>> separation = evaluate.load("hf_metrics/centroid_separation")
    >>> separation.compute(references=[0, 0, 1, 1], predictions=[[-1.0, 0.0], [1.0, 0.0], [-1.0, 3.0], [1.0, 3.0]])
    {'centroid_separation': 3.0}
"""

_CITATION = """
@article{fisher1936use, title={The use of multiple measurements in taxonomic problems}, author={Fisher, Ronald A.},
journal={Annals of Eugenics}, volume={7}, pages={179--188}, year={1936}}
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


def compute(references, predictions):
    """Mean distance between centroids of groups over their pooled radius.

    Args:
        references: group of each vector, (n,), whole numbers or names.
        predictions: embeddings, (n, d), finite; scale the dimensions beforehand where their units differ.

    Returns:
        `centroid_separation`, [0, inf); NaN with one group or where a pair of groups has no spread.

    Raises:
        ValueError: labels or vectors are missing or not finite, or lengths differ; the message counts them.
    """
    label, vectors = _labels(references, "references"), _table(predictions, "predictions")
    if label.size != len(vectors):
        raise ValueError(f"{label.size} references but {len(vectors)} embeddings; give one per reference.")
    sizes = np.bincount(label)
    groups = [vectors[label == group] for group in range(sizes.size)]
    centres = [group.mean(axis=0) for group in groups]
    scatter = [((group - centre) ** 2).sum() for group, centre in zip(groups, centres, strict=True)]
    values = []
    for a in range(sizes.size):
        for b in range(a + 1, sizes.size):
            radius = np.sqrt((scatter[a] + scatter[b]) / (sizes[a] + sizes[b]))
            values.append(np.linalg.norm(centres[a] - centres[b]) / radius if radius > 0 else np.nan)
    return {"centroid_separation": float(np.mean(values)) if values else float("nan")}


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class CentroidSeparation(evaluate.Metric):
    """`compute` as a module of the evaluate library."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
