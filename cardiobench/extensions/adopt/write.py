"""Write `dataset.yaml`, with a comment above each field, `splits.csv`, and tables of remarks and of rows left out."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import BaseModel

from cardiobench.core.errors import BadConfig, UnwritableOutput
from cardiobench.core.io import remove_orphans, temporary_folder, write_text
from cardiobench.core.tables import write_csv
from cardiobench.data.declared.builder import declared_builder
from cardiobench.data.declared.dataset_file import FILE, LEFT_OUT, SCHEMA, DatasetFile
from cardiobench.data.examine import Examined
from cardiobench.extensions.adopt.proposal import Proposal

REMARKS, SHEET = "remarks.csv", "remarks.png"

HEAD = f"""\
# A dataset of your own, written by `cardiobench adopt` and read by CardioBench; edit it as you like.
# It holds no code. Its JSON Schema is published with the manual: {SCHEMA}.
# Recordings, labels and ids stay on this machine. Scores are pushed only with --local-dataset and its name.
"""


def write_dataset(proposal: Proposal, out: Path, *, overwrite: bool) -> list[Path]:
    """Write a dataset to a temporary folder, validate it, and move it into place.

    Args:
        proposal: The dataset.
        out: Parent of the dataset folder.
        overwrite: Whether to replace an existing adopted dataset.

    Returns:
        Paths of the written files.

    Raises:
        BadConfig: The folder exists, and may not be replaced or was not created by `cardiobench adopt`.
        UnwritableOutput: Writing to `out` fails.
    """
    declared = proposal.declared
    target = out / declared.name
    check_target(target, overwrite=overwrite)
    tables = {declared.splits: proposal.index, LEFT_OUT: proposal.left_out, REMARKS: remark_table(proposal.examined)}
    try:
        remove_orphans(out)  # A killed run leaves a copy of the table of ids.
        with temporary_folder(target) as work:
            folder = work / declared.name
            folder.mkdir()
            path = write_text(HEAD + text_of(declared), folder / FILE)
            for name, table in tables.items():
                if len(table):
                    write_csv(table, folder / name)
            builder = declared_builder(path)
            if declared.recordings is None:
                builder.table(need_media=False)
            else:
                builder.table(declared.recordings.folder, allow_missing=True)
            names = [FILE, *(name for name, table in tables.items() if len(table))]
            if target.exists():
                for name in names:
                    (folder / name).replace(target / name)
                for name in {LEFT_OUT, REMARKS, SHEET} - set(names):
                    (target / name).unlink(missing_ok=True)
            else:
                folder.rename(target)
    except OSError as error:
        raise UnwritableOutput(f"{target} cannot be written: {error.strerror or error}") from None
    return [target / name for name in names]


def remark_table(examined: Examined) -> pd.DataFrame:
    """Return id, check, value and detail of each remark, recordings with the worst first."""
    rows = [
        (name, one.check, f"{one.value:.6g}", one.detail)
        for name in examined.worst_first
        for one in examined.remarks[name]
    ]
    return pd.DataFrame(rows, columns=["id", "check", "value", "detail"])


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse to overwrite an existing folder unless this is allowed.

    Raises:
        BadConfig: The folder holds other files, or a dataset that may not be replaced.
    """
    if target.is_symlink():
        raise BadConfig(
            f"{target} is a link to {target.resolve()}, whose files would be replaced. Remove the link, or name the folder "
            "itself with --datasets-dir and --name."
        )
    if not target.exists():
        return
    if not (target / FILE).is_file():
        raise BadConfig(f"{target} exists and is not an adopted dataset. Choose another --name or --datasets-dir.")
    if not overwrite:
        raise BadConfig(
            f"{target} already exists. Replace its files with --overwrite, or choose another --name or --datasets-dir."
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
