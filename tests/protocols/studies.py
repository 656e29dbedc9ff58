"""A study of a task whose embeddings a test has made."""

from cardiobench.protocols.study import Study
from cardiobench.scoring.references import references_of


def study_of(data, changed=None, resamples=100, seed=0) -> Study:
    """`changed` gives the data of a change."""

    def opened(task, change):
        return data if change is None else changed(change)

    return Study(data.task.name, (data.task,), {}, seed, resamples, opened, lambda task: references_of(data.rows, task))
