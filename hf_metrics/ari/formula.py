"""Adjusted Rand index of clusters and labels; embeddings are clustered by a Gaussian mixture first."""

import numbers

import numpy as np

NUMBERS = {"ari": {"better": "higher", "range": (-0.5, 1)}}


# Copied: formulas are self-contained, and all copies are identical.
def _labels(values, name):
    """Check labels (n,), whole numbers or text; raise a ValueError with the number of invalid ones."""
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
    return array.astype(str if text else np.int64)


# Copied: formulas are self-contained, and all copies are identical.
def _whole(value):
    return isinstance(value, numbers.Real) and abs(value) <= 2**53 and float(value).is_integer()


def _pair(references, predictions):
    truth, clusters = _labels(references, "references"), _labels(predictions, "predictions")
    if truth.size != clusters.size:
        raise ValueError(f"{truth.size} references but {clusters.size} predictions; give one cluster per reference.")
    return truth, clusters


def cluster(embeddings, components, covariance="diag", n_init=10, seed=42):
    """Cluster embeddings by a Gaussian mixture on z-scored dimensions.

    Args:
        embeddings: Finite vectors, (n, d).
        components: Number of clusters, at most n.
        covariance: `full`, `tied`, `diag` or `spherical`.
        n_init: Starts, of which the most likely is used.
        seed: Seed of the starts.

    Returns:
        Cluster of each row, (n,) int.
    """
    from sklearn.mixture import GaussianMixture

    table = np.asarray(embeddings, dtype=np.float64)
    bad = int(np.sum(~np.isfinite(table)))
    if bad:
        raise ValueError(f"{bad} of {table.size} embedding values are not finite; every row needs a complete vector.")
    if not 1 <= components <= len(table):
        raise ValueError(f"{components} components for {len(table)} embeddings; ask for 1 to {len(table)}.")
    spread = table.std(axis=0)
    scaled = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1)
    mixture = GaussianMixture(components, covariance_type=covariance, n_init=n_init, random_state=seed)
    return mixture.fit_predict(scaled)


def compute_resamples(references, predictions, weights):
    """Compute the ARI for many weightings of the same rows at once; copies of a row count as separate rows.

    Args:
        references: Labels, (n,), whole numbers or names.
        predictions: Clusters, (n,).
        weights: Multiplicity of each row, shape (B, n), whole numbers.

    Returns:
        `ari`, (B,) float64; 1 if both partitions are the same trivial one, NaN for fewer than two rows.
    """
    truth, clusters = _pair(references, predictions)
    weights = np.asarray(weights, dtype=np.float64)
    label, group = (np.unique(values, return_inverse=True)[1] for values in (truth, clusters))
    both = _pairs(weights, label * (group.max() + 1) + group)
    in_label, in_group = _pairs(weights, label), _pairs(weights, group)
    total = weights.sum(axis=1)
    total = total * (total - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = in_label * (in_group / total)
        best = (in_label + in_group) / 2
        ari = np.where(best == expected, 1.0, (both - expected) / (best - expected))
    return {"ari": np.where(total > 0, ari, np.nan)}


def _pairs(weights, part):
    """Count the pairs of rows in the same cluster. Returns an array (B,)."""
    order = np.argsort(part, kind="stable")
    starts = np.flatnonzero(np.diff(part[order], prepend=-1))
    sizes = np.add.reduceat(weights[:, order], starts, axis=1)
    return (sizes * (sizes - 1) / 2).sum(axis=1)


def compute(references, predictions, components=None, covariance="diag", n_init=10, seed=42):
    """Compute the adjusted Rand index of clusters, or of embeddings clustered by a Gaussian mixture.

    Args:
        references: Labels, (n,), whole numbers or names.
        predictions: Clusters, (n,); or embeddings, (n, d) numbers.
        components: Number of clusters for embeddings; None means the number of distinct labels.
        covariance: Covariance of the mixture, `full`, `tied`, `diag` or `spherical`.
        n_init: Number of starts of the mixture.
        seed: Seed of the mixture.

    Returns:
        `ari` in [-0.5, 1]; NaN for a single row, which has no pairs.

    Raises:
        ValueError: Labels are missing, values are not finite, or lengths differ; the message counts them.
    """
    if np.ndim(predictions) == 2:
        labels = _labels(references, "references")
        if labels.size != len(predictions):
            raise ValueError(f"{labels.size} references but {len(predictions)} embeddings; give one per reference.")
        parts = len(np.unique(labels)) if components is None else components
        predictions = cluster(predictions, parts, covariance, n_init, seed)
    truth, clusters = _pair(references, predictions)
    return {"ari": float(compute_resamples(truth, clusters, np.ones((1, truth.size)))["ari"][0])}
