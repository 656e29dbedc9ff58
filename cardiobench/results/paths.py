"""Build paths of results: `<output>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`."""

from pathlib import Path

PATTERN = "*__*.json"
"""File pattern of results and analyses."""


BESIDE = ".predictions.parquet"
"""Suffix of prediction files."""


def folder_name(model: str) -> str:
    """Convert a model name to a folder name: `org/name` to `org__name`; of a path, the last two parts are used."""
    parts = [part for part in Path(model).parts if part not in ("/", ".", "..")]
    return "__".join(parts[-2:])


def result_path(folder: Path, label: str, subject: str) -> Path:
    """Return the path of a result in a model folder.

    Args:
        folder: Folder of the model and revision.
        label: Protocol and variant.
        subject: Task, dataset, or label across datasets.
    """
    name = subject.replace("/", "__")
    return folder / label / f"{name if '__' in name else f'across__{name}'}.json"


def validation_path(path: Path) -> Path:
    """Return the path of validation predictions for a result."""
    return path.with_suffix(".validation.parquet")


def predictions_path(path: Path) -> Path:
    """Return the path of predictions for a result."""
    return path.with_suffix(BESIDE)
