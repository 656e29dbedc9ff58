"""Analysis of a task with synthetic embeddings."""

import numpy as np

from cardiobench.data.references import references_of
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.linear.model import LinearModel


def study_of(data, changed=None, resamples=100, seed=0) -> Analysis:
    """Return an analysis; `changed` returns the data of a change."""

    def opened(task, change):
        return data if change is None else changed(change)

    return Analysis(
        data.task.name, (data.task,), {}, seed, resamples, opened, lambda task: references_of(data.rows, task)
    )


def layers_of(monkeypatch, analyze):
    """Return the weights of every linear layer fitted during a call, in order."""
    layers, init = [], LinearModel.__init__

    def recorded(self, *args, **options):
        init(self, *args, **options)
        layers.append(np.vstack([self.coefficients, self.intercepts]))

    with monkeypatch.context() as patch:
        patch.setattr(LinearModel, "__init__", recorded)
        analyze()
    assert layers, "no layer was fitted"
    return layers
