"""Tasks with the label definitions of the two papers, derived from the benchmark's own tasks.

They have names of their own (`georgia/cd_paper`, `tmed2/view_named`), so that no published number stands beside a score
of another question. They are run when named, and instead of the benchmark's own under `--profile paper`.
"""

from dataclasses import replace

from cardiobench.data.spec import BMI_GROUPS, VIEWS, DatasetSpec, Group, Task

NAMED_VIEWS = tuple(name for name in VIEWS if name != "Other")
"""The views that arXiv:2510.00520 has prompts for."""

_ECG_SUFFIX, _VIEW_SUFFIX = "_paper", "_named"
# Dataset -> targets of arXiv:2601.21830, Table 2, and the column with its labels.
_ECG_LABELS = {
    "ptb_xl": {"cd": "cd_paper"},
    "georgia": {"cd": "cd_paper", "af": "af_paper"},
    "chapman_ningbo": {"cd": "cd_paper", "af": "af_paper"},
    "code15": {"cd": "cd", "af": "af"},  # The release has these classes only, so both definitions agree.
}
_ECG_LABELS |= {name: _ECG_LABELS["ptb_xl"] for name in ("ptb_xl_500", "ptb_xl_sample")}
# The paper's 10,247 records of CHN are those of the first hospital.
_ECG_ROWS = {"chapman_ningbo": {"hospital": ("chapman_shaoxing",)}}
# Task -> breakdown of the benchmark -> the one of the released code of arXiv:2510.00520 in its place: the image quality of a
# patient's first row, which is the two-chamber view, and ranges of the body mass index of adults for children.
_GROUPS = {
    "camus/ef": {"image_quality": Group("image_quality", "image_quality")},
    "echonet_pediatric/ef": {"bmi_for_age": BMI_GROUPS},
}


def published_tasks(spec: DatasetSpec) -> tuple[Task, ...]:
    """Return the tasks of a dataset whose definition in a paper differs from, or bears another name than, the benchmark's own."""
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
    """Return a task with the breakdowns of the released code in place of the benchmark's own; the same where they agree."""
    published = _GROUPS.get(task.name, {})
    return replace(task, groups=tuple(published.get(group.name, group) for group in task.groups))


def paper_tasks(spec: DatasetSpec) -> tuple[Task, ...]:
    """Return the tasks of a dataset under `--profile paper`: the published ones in place of the benchmark's own.

    A dataset of ECGs has the published tasks only; one that no paper used keeps its own.
    """
    published = published_tasks(spec)
    if spec.modality == "ecg":
        return published or spec.tasks
    targets = {task.target for task in published}
    return (*(task for task in spec.tasks if task.target not in targets), *published)
