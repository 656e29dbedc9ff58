"""Tasks over several datasets together: those of one view have nothing to tell apart, together they have all views."""

from cardiobench.data.spec import VIEWS, Task

POOLED_TASKS = (
    Task("echo/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view, over all datasets at hand"),
)
"""Named `<modality>/<target>`. Members are the tasks of datasets with the same target and classes."""
