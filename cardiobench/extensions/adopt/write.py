"""Write `dataset.yaml`, with a comment above each field, and `splits.csv`."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import BaseModel

from cardiobench.core.errors import BadConfig, UnwritableOutput
from cardiobench.core.io import temporary_folder, write_text
from cardiobench.core.tables import write_csv
from cardiobench.data.declared.builder import declared_builder
from cardiobench.data.declared.dataset_file import FILE, SCHEMA, DatasetFile

HEAD = f"""\
# A dataset of your own, written by `cardiobench adopt` and read by CardioBench; edit it as you like.
# It holds no code. Its JSON Schema is published with the manual: {SCHEMA}.
# Recordings, labels and ids stay on this machine. Scores are pushed only with --local-dataset and its name.
"""


def write_dataset(declared: DatasetFile, index: pd.DataFrame, out: Path, *, overwrite: bool) -> Path:
    """Write a dataset to a temporary folder, validate it, and move it into place.

    Args:
        declared: Content of `dataset.yaml`.
        index: Content of `splits.csv`.
        out: Parent of the dataset folder.
        overwrite: Whether to replace an existing adopted dataset.

    Returns:
        Path of the dataset folder.

    Raises:
        BadConfig: The folder exists, and may not be replaced or was not created by `cardiobench adopt`.
        UnwritableOutput: Writing to `out` fails.
    """
    target = out / declared.name
    check_target(target, overwrite=overwrite)
    try:
        with temporary_folder(target) as work:
            folder = work / declared.name
            folder.mkdir()
            path = write_text(HEAD + text_of(declared), folder / FILE)
            write_csv(index, folder / declared.splits)
            builder = declared_builder(path)
            builder.table(declared.recordings.folder, allow_missing=True)
            if target.exists():
                for name in (FILE, declared.splits):
                    (folder / name).replace(target / name)
            else:
                folder.rename(target)
    except OSError as error:
        raise UnwritableOutput(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse to overwrite an existing folder unless this is allowed.

    Raises:
        BadConfig: The folder holds other files, or a dataset that may not be replaced.
    """
    if not target.exists():
        return
    if not (target / FILE).is_file():
        raise BadConfig(f"{target} exists and is not an adopted dataset. Choose another --name or --out.")
    if not overwrite:
        raise BadConfig(
            f"{target} already exists. Replace its two files with --overwrite, or choose another --name or --out."
        )


def text_of(declared: DatasetFile) -> str:
    """Return `dataset.yaml` with a description above each field."""
    return "".join(_lines(declared, ""))


def _lines(model: BaseModel, indent: str) -> list[str]:
    """Return model fields as commented YAML, nested models indented."""
    lines = []
    for name, field in type(model).model_fields.items():
        value, key = getattr(model, name), field.alias or name
        comment = f"{indent}# {field.description}\n" if field.description else ""
        if isinstance(value, BaseModel):
            lines += [f"{indent}{key}:\n", *_lines(value, indent + "  ")]
        elif isinstance(value, dict) and value and all(isinstance(one, BaseModel) for one in value.values()):
            lines.append(f"{comment}{indent}{key}:\n")
            for inner, one in value.items():
                lines += [f"{indent}  {inner}:\n", *_lines_without_comments(one, indent + "    ")]
        else:
            lines.append(comment + _entry(key, value, indent))
    return lines


def _lines_without_comments(model: BaseModel, indent: str) -> list[str]:
    stated = model.model_dump(mode="json", exclude_defaults=True)
    return [_entry(key, value, indent) for key, value in stated.items()]


def _entry(key: str, value: Any, indent: str) -> str:
    plain = list(value) if isinstance(value, tuple) else value
    if isinstance(plain, BaseModel):
        plain = plain.model_dump(mode="json")
    text = yaml.safe_dump({key: plain}, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=True)
    return f"{indent}{text.strip()[1:-1]}\n"
