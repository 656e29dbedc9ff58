"""What there is: datasets and their tasks, models, and what data is on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.data import catalog
from cardiobench.data.source import open_source
from cardiobench.data.spec import IN_ALL, DatasetSpec
from cardiobench.errors import CardioBenchError
from cardiobench.report.console import Console

if TYPE_CHECKING:
    from cardiobench.models.cards import ModelCard


MODEL_COLUMNS = ("model", "modality", "text", "native outputs", "licence", "access", "datasets seen", "public weights")


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

    screen = Console()
    if datasets:
        rows = []
        for name in catalog.list_datasets():
            spec = catalog.spec(name)
            try:
                source = open_source(name, data_dir, allow_missing=True)
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
        screen.table(
            "datasets",
            ("dataset", "modality", "tasks", "release: train / validation / test", "here", "licence", "access"),
            rows,
        )
    rows = [model_row(card(name)) for name in list_models()]
    screen.table("models", MODEL_COLUMNS, rows)


def model_row(found: "ModelCard") -> tuple[str, ...]:
    """A model in the words of its card."""
    return (
        found.id,
        " + ".join(found.modalities),
        "yes" if found.text else "no",
        ", ".join(found.native) or "none",
        found.licence,
        found.access,
        ", ".join(found.seen) or "none",
        "yes" if found.public_weights else "no",
    )
