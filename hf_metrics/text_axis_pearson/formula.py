"""Correlation of measured values with positions on the axis of text embeddings that differ in a number."""

import numbers

import numpy as np

NUMBERS = {
    "text_axis_pearson": {"better": "higher", "range": (-1, 1)},
    "spearman": {"better": "higher", "range": (-1, 1)},
    "r2": {"better": "higher", "range": (0, 1)},
    "explained_variance": {"better": None, "range": (0, 1)},
    "p_value": {"better": None, "range": (0, 1)},
}


# Copied: formulas are self-contained, and all copies are identical.
def _table(values, name):
    """Check vectors (n, d), finite float64; raise a ValueError with the number of invalid rows."""
    try:
        table = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"the {len(values)} rows of {name} have different lengths; the shape must be (n, d)."
        ) from None
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iuf":
        raise ValueError(f"{name} have shape {table.shape} and type {table.dtype}; give numbers of shape (n, d).")
    bad = int(np.sum(~np.isfinite(table).all(axis=1)))
    if bad:
        raise ValueError(f"{bad} of {len(table)} rows of {name} are not finite; every row needs a complete vector.")
    return table.astype(np.float64)


# Copied: formulas are self-contained, and all copies are identical.
def _numbers(values, name):
    """Check numbers (n,), finite float64; raise a ValueError with the number of invalid ones."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}; give one number per row, shape (n,).")
    if array.dtype.kind not in "iuf":
        odd = [value for value in array if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real)]
        if odd:
            raise ValueError(f"{len(odd)} of {array.size} {name} are not numbers (first: {odd[0]!r}).")
    try:
        array = array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"some of the {array.size} {name} exceed the range of float64.") from None
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise ValueError(
            f"{bad} of {array.size} {name} are not finite; every row needs a number, and no row is skipped."
        )
    return array


# Copied: formulas are self-contained, and all copies are identical.
def _unit(vectors, name):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    empty = int((length == 0).sum())
    if empty:
        raise ValueError(f"{empty} of {len(vectors)} rows of {name} have length 0, so their direction is undefined.")
    return vectors / length


def text_axis(text_embeddings, text_values=None):
    """Compute the direction in which text embeddings move as the number in the text grows.

    Args:
        text_embeddings: Embeddings of the texts, (p, d), finite, not zero.
        text_values: Numbers of the texts, (p,); None means 0 to p - 1.

    Returns:
        Unit vector (d,), or None if the texts do not differ, and the share of the texts' variance along this direction.
    """
    texts = _table(text_embeddings, "text_embeddings")
    values = np.arange(len(texts), dtype=np.float64) if text_values is None else _numbers(text_values, "text_values")
    if len(values) != len(texts):
        raise ValueError(f"{len(texts)} texts but {len(values)} text_values; give one number per text.")
    texts = _unit(texts, "text_embeddings")
    centred = texts - texts.mean(axis=0)
    _, strengths, directions = np.linalg.svd(centred, full_matrices=False)
    if strengths[0] <= 1e-12 * np.sqrt(len(texts)):
        return None, float("nan")
    axis = directions[0]
    if (centred @ axis) @ (values - values.mean()) < 0:
        axis = -axis
    return axis, float(strengths[0] ** 2 / (strengths**2).sum())


def _standard(values):
    """Standardise values to mean 0 and length 1; None if they do not vary."""
    centred = values - values.mean()
    length = np.linalg.norm(centred)
    return centred / length if length > 1e-12 * max(1.0, np.abs(values).max()) else None


def _permuted(patients, rng):
    """Return the row whose value each row receives in a random permutation of patients. The shape is (n,).

    The rows of the donor are used in a shuffled order from a random start, and repeated if the patient has more rows.
    """
    _, who, size = np.unique(patients, return_inverse=True, return_counts=True)
    other = rng.permutation(size.size)[who]
    order = np.lexsort((rng.random(who.size), who))
    start = np.cumsum(size) - size
    rank = np.empty(who.size, dtype=np.int64)
    rank[order] = np.arange(who.size) - start[who[order]]
    begin = rng.integers(0, 2**31, size.size)[who]
    return order[start[other] + (begin + rank) % size[other]]


def compute(references, predictions, text_embeddings, text_values=None, permutations=1000, seed=0, patients=None):
    """Correlate measured values with the position of recordings on the text axis.

    Args:
        references: Measured values, (n,), finite.
        predictions: Embeddings of recordings, (n, d), finite, not zero.
        text_embeddings: Embeddings of texts that differ only in a number, (p, d).
        text_values: Numbers of the texts, (p,); None means 0 to p - 1.
        permutations: Number of draws of the permutation test.
        seed: Seed of the draws.
        patients: Patient of each row, (n,); values are permuted between whole patients. None means that every row is a
            patient.

    Returns:
        `text_axis_pearson`, `spearman`, `r2` (square of the former), `explained_variance` of the axis and `p_value`:
        share of permutations, including the observed order, with at least the same |r|.

    Raises:
        ValueError: Values are missing or not finite, or lengths or dimensions differ; the message counts them.
    """
    from scipy.stats import rankdata

    truth, vectors = _numbers(references, "references"), _table(predictions, "predictions")
    if truth.size != len(vectors):
        raise ValueError(f"{truth.size} references but {len(vectors)} embeddings; give one per reference.")
    axis, explained = text_axis(text_embeddings, text_values)
    if axis is not None and axis.size != vectors.shape[1]:
        raise ValueError(
            f"texts have {axis.size} dimensions but recordings {vectors.shape[1]}; use towers of one model."
        )
    place = np.zeros(truth.size) if axis is None else _unit(vectors, "predictions") @ axis
    x, y = _standard(place), _standard(truth)
    if x is None or y is None:
        nan = float("nan")
        return {"text_axis_pearson": nan, "spearman": nan, "r2": nan, "explained_variance": explained, "p_value": nan}
    r = float(np.clip(x @ y, -1, 1))
    rng = np.random.default_rng(seed)
    if patients is None:
        drawn = np.array([x @ rng.permutation(y) for _ in range(permutations)])
    elif len(patients) != truth.size:
        raise ValueError(f"{truth.size} references but {len(patients)} patients; give one patient per reference.")
    else:
        who = np.unique([str(name) for name in patients], return_inverse=True)[1]
        permuted = (_standard(place[_permuted(who, rng)]) for _ in range(permutations))
        drawn = np.array([0.0 if column is None else column @ y for column in permuted])
    at_least = int((np.abs(drawn) >= abs(r) - 1e-12).sum())
    return {
        "text_axis_pearson": r,
        "spearman": float(np.clip(_standard(rankdata(place)) @ _standard(rankdata(truth)), -1, 1)),
        "r2": r * r,
        "explained_variance": explained,
        "p_value": (at_least + 1) / (permutations + 1),
    }
