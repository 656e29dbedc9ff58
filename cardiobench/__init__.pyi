"""Types of the names that `__init__.py` imports when they are asked for."""

from cardiobench.api import compare as compare
from cardiobench.api import evaluate as evaluate
from cardiobench.api import load_dataset as load_dataset
from cardiobench.api import load_references as load_references
from cardiobench.api import score as score
from cardiobench.data.catalog import list_datasets as list_datasets
from cardiobench.data.catalog import list_tasks as list_tasks
from cardiobench.metrics.load import list_metrics as list_metrics
from cardiobench.metrics.load import load_metric as load_metric
from cardiobench.models.cards import list_models as list_models
from cardiobench.models.custom import BaseEncoder as BaseEncoder
from cardiobench.protocols import list_protocols as list_protocols

__version__: str
