"""Adjustment of p-values for several comparisons."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def holm(p_values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Adjust p-values by Holm's step-down method, in the given order.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979).

    Raises:
        ValueError: A value is not in [0, 1].
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"expected p-values in [0, 1], one per comparison, got {p_values!r}")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted
