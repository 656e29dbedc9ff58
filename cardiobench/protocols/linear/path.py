"""Common result of the linear solvers, and its distance from the minimum."""

from collections.abc import Iterator

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]
"""Coefficients (d, outputs) and intercepts (outputs,), in the units of the features."""
Path = Iterator[tuple[float, Layer]]
"""Each penalty with its layer, strongest first, fitted on demand because a search may stop early."""

TOLERANCE = 1e-8
"""Maximum excess of the mean log loss over its minimum."""
SEARCH_TOLERANCE = 1e-6  # Sufficient for choosing a penalty; scikit-learn's default is less accurate.
