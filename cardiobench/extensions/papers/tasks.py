"""Define tasks with the papers' label definitions, derived from the benchmark tasks.

Separate names such as `georgia/cd_paper` and `tmed2/view_named` keep published scores apart from scores of other
definitions. These tasks run when named explicitly, or instead of the benchmark tasks under `--profile paper`.
"""

from dataclasses import replace

from cardiobench.data.spec import BMI_GROUPS, VIEWS, DatasetSpec, Group, Task
from cardiobench.results.anchors import Anchors

NAMED_VIEWS = tuple(name for name in VIEWS if name != "Other")
"""Views with prompts in arXiv:2510.00520."""

_ECG_SUFFIX, _VIEW_SUFFIX = "_paper", "_named"
# Mapping from dataset to targets of arXiv:2601.21830, Table 2, and their label columns.
_ECG_LABELS = {
    "ptb_xl": {"cd": "cd_paper"},
    "georgia": {"cd": "cd_paper", "af": "af_paper"},
    "chapman_ningbo": {"cd": "cd_paper", "af": "af_paper"},
    "code15": {"cd": "cd", "af": "af"},  # The release only has these classes, so both definitions agree.
}
_ECG_LABELS |= {name: _ECG_LABELS["ptb_xl"] for name in ("ptb_xl_500", "ptb_xl_sample")}
# The paper's 10,247 CHN records come from the first hospital.
_ECG_ROWS = {"chapman_ningbo": {"hospital": ("chapman_shaoxing",)}}
# Mapping from task to subgroups that the released code of arXiv:2510.00520 replaces: it takes image quality from a
# patient's first row, which is the two-chamber view, and applies adult body mass index ranges to children.
_GROUPS = {
    "camus/ef": {"image_quality": Group("image_quality", "image_quality", labels=("Poor", "Medium", "Good"))},
    "echonet_pediatric/ef": {"bmi_for_age": BMI_GROUPS},
}


_WITH_OTHER = ("tmed2/view",)
"""Views whose released predictions have the images and the probability of "Other"."""


def definitions(spec: DatasetSpec) -> tuple[Task, ...]:
    """Return the tasks whose definition or name differs from the paper."""
    tasks = []
    for target, column in _ECG_LABELS.get(spec.name, {}).items():
        own = spec.task(target)
        where = _ECG_ROWS.get(spec.name, {})
        tasks.append(
            replace(
                own,
                name=f"{own.name}{_ECG_SUFFIX}",
                target=column,
                where=where,
                groups=tuple(group for group in own.groups if group.column not in where),
                description=f"{own.description}, by the codes of arXiv:2601.21830, Table 2",
            )
        )
    for own in spec.tasks:
        if own.target == "view" and own.classes == VIEWS:
            tasks.append(
                replace(
                    own,
                    name=f"{own.name}{_VIEW_SUFFIX}",
                    classes=NAMED_VIEWS,
                    where={**own.where, "view": NAMED_VIEWS},
                    description=f"{own.description}; of the five named views, without Other",
                )
            )
    return tuple(tasks)


def in_published_groups(task: Task) -> Task:
    """Replace the benchmark's subgroups by those of the released code where they differ."""
    published = _GROUPS.get(task.name, {})
    return replace(task, groups=tuple(published.get(group.name, group) for group in task.groups))


def paper_tasks(spec: DatasetSpec) -> tuple[Task, ...]:
    """Return a dataset's tasks under `--profile paper`.

    ECG datasets used in a paper keep only the published tasks; other datasets keep their own.
    """
    published = definitions(spec)
    if spec.modality == "ecg":
        return published or spec.tasks
    targets = {task.target for task in published}
    return (*(task for task in spec.tasks if task.target not in targets or task.name in _WITH_OTHER), *published)


def anchors(task: str) -> Anchors:
    """Return published scores and human ceilings of a task `<dataset>/<target>`."""
    from cardiobench.extensions.papers.anchors import human_ceilings, published_scores

    return Anchors(published_scores(task), human_ceilings(task))
