"""What there is: datasets and their tasks, models, and what data is on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import IN_ALL, DatasetSpec

if TYPE_CHECKING:
    from cardiobench.models.cards import ModelCard


# What tells models apart, a line each; sentences stand in a table of their own, so that no column squeezes another.
MODEL_COLUMNS = ("model", "modality", "text", "native outputs", "public weights", "datasets seen")
LICENCE_COLUMNS = ("model", "licence", "access")


def _release(spec: DatasetSpec) -> str:
    """Rows of the complete release, by split where that is known."""
    if not spec.expected:
        return "generated" if spec.generated else "not known"
    if IN_ALL in spec.expected:
        return f"{spec.expected[IN_ALL]} in all"
    return " / ".join(str(spec.expected.get(split, "?")) for split in spec.splits)


def print_listing(data_dir: Path | None = None, *, datasets: bool = True) -> None:
    """Print the tables of datasets (with the data found here) and of models."""
    from cardiobench.models.cards import card, list_models

    console = Console()
    if datasets:
        rows = []
        for name in catalog.list_datasets():
            spec = catalog.spec(name)
            try:
                source = open_dataset(name, data_dir, allow_missing=True)
                counts = source.frame["split"].value_counts()
                here = " / ".join(str(int(counts.get(split, 0))) for split in spec.splits)
            except CardioBenchError as error:
                here = "no" if type(error).__name__ == "MissingData" else f"unreadable: {error}"
            rows.append(
                (
                    name,
                    spec.modality,
                    ", ".join(task.name.partition("/")[2] for task in spec.tasks),
                    _release(spec),
                    here,
                    spec.licence,
                    spec.access or "comes with the package",
                )
            )
        console.table(
            "datasets",
            ("dataset", "modality", "tasks", "release: train / validation / test", "here", "licence", "access"),
            rows,
        )
    known = [card(name) for name in list_models()]
    console.table("models", MODEL_COLUMNS, [model_row(found) for found in known])
    console.table(
        "models: what the licence of the weights says, and where they come from",
        LICENCE_COLUMNS,
        [(found.id, found.licence, found.access) for found in known],
    )


def model_row(found: "ModelCard") -> tuple[str, ...]:
    """A model in the words of its card, as `MODEL_COLUMNS`; datasets that share a beginning are named once, with a star."""
    return (
        found.id,
        " + ".join(found.modalities),
        "yes" if found.text else "no",
        ", ".join(found.native) or "none",
        "yes" if found.public_weights else "no",
        ", ".join(families(found.seen)) or "none",
    )


def families(names: Sequence[str]) -> list[str]:
    """Names of datasets, those that only add to another's name left out: ptb_xl, ptb_xl_500 and ptb_xl_sample are ptb_xl*."""
    heads = [name for name in names if not any(name.startswith(f"{other}_") for other in names)]
    return [f"{head}*" if any(name.startswith(f"{head}_") for name in names) else head for head in heads]
