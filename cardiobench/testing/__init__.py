"""Contract checks for third-party components, similar to scikit-learn's `check_estimator`.

`check_dataset`, `check_metric`, `check_model`, `check_protocol` and `check_extension` run all checks of one kind and
raise `AssertionError` on failure. The tests of this package run them on all registered components.
"""

from cardiobench.testing.dataset import check_dataset
from cardiobench.testing.extension import check_extension
from cardiobench.testing.metric import check_metric
from cardiobench.testing.model import check_model
from cardiobench.testing.protocol import check_protocol

__all__ = ["check_dataset", "check_extension", "check_metric", "check_model", "check_protocol"]
