"""Paths of results: `<output>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`, predictions beside them."""

from pathlib import Path

PATTERN = "*__*.json"
"""Pattern of the file names of results and analyses."""


BESIDE = ".predictions.parquet"
"""Suffix of the file of predictions beside a result."""


def folder_name(model: str) -> str:
    """Return a model's name as one folder: `org/name` -> `org__name`; for a path its last two parts."""
    parts = [part for part in Path(model).parts if part not in ("/", ".", "..")]
    return "__".join(parts[-2:])


def result_path(folder: Path, label: str, subject: str) -> Path:
    """Return the path of a result in a model's folder.

    Args:
        folder: Folder of the model and its revision.
        label: Protocol with its variant.
        subject: Task, dataset, or a label across datasets.
    """
    name = subject.replace("/", "__")
    return folder / label / f"{name if '__' in name else f'across__{name}'}.json"


def validation_path(path: Path) -> Path:
    """Return the path of the predictions for validation units beside a result."""
    return path.with_suffix(".validation.parquet")


def predictions_path(path: Path) -> Path:
    """Return the path of the predictions beside a result."""
    return path.with_suffix(BESIDE)
