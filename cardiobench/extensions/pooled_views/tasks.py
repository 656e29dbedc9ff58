"""The task over several datasets together: those of one view have nothing to tell apart, together they have all views."""

from cardiobench.data.spec import VIEWS, Task

POOLED = Task(
    "echo/view", "multiclass", "view", ("f1_macro",), VIEWS, description="echo view, over all datasets at hand"
)
POOLED_TASKS = (POOLED,)
