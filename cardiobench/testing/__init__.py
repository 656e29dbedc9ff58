"""The contracts of CardioBench for parts of one's own, as scikit-learn's `check_estimator`: silent, or an `AssertionError`.

`check_dataset`, `check_metric`, `check_model`, `check_protocol` and `check_extension` run every check of a kind; the tests of this package run
the same ones over everything that is registered.
"""

from cardiobench.testing.dataset import check_dataset
from cardiobench.testing.extension import check_extension
from cardiobench.testing.metric import check_metric
from cardiobench.testing.model import check_model
from cardiobench.testing.protocol import check_protocol

__all__ = ["check_dataset", "check_extension", "check_metric", "check_model", "check_protocol"]
