"""Define the view task over several datasets, because a single dataset may contain only one view."""

from cardiobench.data.spec import VIEWS, Task

POOLED = Task(
    "echo/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view, over all datasets at hand"
)
COMBINED = (POOLED,)
