"""Define the profile `paper`; `docs/papers.md` lists all published settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from cardiobench.core.config import RunConfig
from cardiobench.data.spec import DatasetSpec, Task
from cardiobench.extensions.papers.tasks import in_published_groups, paper_tasks
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol
from cardiobench.protocols.profile import ModelChoice, RunProfile, chosen_poolings

PAPER = "paper"
PAPER_PROBE = "paper_probe"
"""Preprocessing variant of the released probe of arXiv:2510.00520: one whole RGB frame."""
POOLINGS = ("last", "max")
"""Token poolings of ECG models in arXiv:2601.21830; echo models do not offer the last token."""


class PaperProfile(RunProfile):
    """Mapping from protocol to its published recipe."""

    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "probe": {"profile": PAPER},
        "knn": {"profile": PAPER},
        "cross_validation": {"search": "flat", "grouped": False, "one_a_patient": False},
        "representation": {"profile": PAPER, "folds": 15},
        "alignment": {"draw_maps": True},
        "stress": {"kinds": ("shuffle",), "patients": None},
    }
    recipes: ClassVar[Mapping[str, str]] = {
        "probe": "cardiobench.extensions.papers.probe:PaperProbe",
        "knn": "cardiobench.extensions.papers.knn:PaperNeighbours",
    }
    seed = 42

    def tasks(self, spec: DatasetSpec) -> Sequence[Task]:
        """Return the tasks with published definitions."""
        return paper_tasks(spec)

    def task(self, task: Task) -> Task:
        """Return a task with the subgroups of the released code."""
        return in_published_groups(task)

    def model_choices(self, name: str, config: RunConfig, protocols: Sequence[BaseProtocol]) -> list[ModelChoice]:
        """Apply published poolings and preprocessing supported by the model, unless the user set others.

        If a model supports the preprocessing of the released probe, other protocols use its second preprocessing.
        """
        from cardiobench.models.load import plan_model

        plan = plan_model(
            name, revision=config.revision, weights=config.weights, trust_remote_code=config.trust_remote_code
        )
        published = POOLINGS if set(POOLINGS) <= set(plan.poolings) else (None,)
        offered: list[str | None] = [variant for variant in (PAPER, PAPER_PROBE) if variant in plan.variants]
        variants = [config.variant] if config.variant else offered or [None]
        apart = {PAPER, PAPER_PROBE} <= set(variants)
        chosen = {
            variant: [one for one in protocols if not apart or (one.name == "probe") == (variant == PAPER_PROBE)]
            for variant in variants
        }
        poolings = chosen_poolings(config) or published
        return [(pooling, variant, ran) for variant, ran in chosen.items() if ran for pooling in poolings]

    def with_warning(self, model: LoadedModel, variant: str | None) -> LoadedModel:
        """Add a warning to models without known published preprocessing."""
        if variant in (PAPER, PAPER_PROBE) or not model.weight_files:
            return model
        sentence = f"profile paper: the papers define no preprocessing of {model.name}; its own default is used"
        return replace(model, warnings=(*model.warnings, sentence))
