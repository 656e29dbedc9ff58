"""How features are brought to a common scale before a classifier sees them, learned on the lines given."""

import numpy as np


def mean_and_std(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a column that never varies gets 1, so that it stays zero afterwards."""
    mean = features.mean(axis=0)
    deviation = features.std(axis=0)
    return mean, np.where(deviation > 1e-12 * np.maximum(np.abs(mean), 1.0), deviation, 1.0)
