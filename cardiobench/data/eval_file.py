"""The `eval.yaml` of a dataset's repository, from which the Hub builds the dataset's leaderboards."""

import yaml

from cardiobench.data.spec import DatasetSpec

FRAMEWORK = "cardiobench"


def eval_file(spec: DatasetSpec) -> str:
    """Return the content of `eval.yaml`: one entry per task and metric of the dataset.

    Args:
        spec: Dataset specification; the text of each task comes from its `description`.
    """
    tasks = spec.all_tasks
    content = {
        "name": spec.title,
        "description": "; ".join(f"{task.target} = {task.description or task.target}" for task in tasks),
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {"id": entry_id(task.name, metric), "config": "default", "split": "test"}
            for task in tasks
            for metric in task.metrics
        ],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def entry_id(task: str, metric: str) -> str:
    """Return the id of an entry, such as `tmed2_as_f1_macro`."""
    return f"{task.replace('/', '_')}_{metric}"
