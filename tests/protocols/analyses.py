"""A study of a task whose embeddings a test has made."""

from cardiobench.data.references import references_of
from cardiobench.protocols.analysis import Analysis


def study_of(data, changed=None, resamples=100, seed=0) -> Analysis:
    """`changed` gives the data of a change."""

    def opened(task, change):
        return data if change is None else changed(change)

    return Analysis(
        data.task.name, (data.task,), {}, seed, resamples, opened, lambda task: references_of(data.rows, task)
    )
