"""Implement `cardiobench list`: show datasets, tasks, models, protocols and local data."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.cli.flags import add_json

if TYPE_CHECKING:
    from cardiobench.core.console import Console

HELP = "list datasets, tasks, models and protocols, and the data on this machine"
GROUP = "run"

# Show distinguishing facts of models in one line each; longer texts have a separate table to keep columns wide.
MODEL_COLUMNS = ("model", "modality", "text", "native outputs", "public weights", "datasets seen")
LICENCE_COLUMNS = ("model", "licence", "access")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="folder with raw folders (default: $CARDIOBENCH_DATA)"
    )
    parser.add_argument("--models", action="store_true", help="list only models")
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the lists and return the exit code."""
    from cardiobench.core.console import Console

    print_list(Console(stdout_is_json=arguments.json), arguments.data_dir, arguments.models, arguments.json)
    return 0


def print_list(
    console: "Console", data_dir: Path | None = None, models_only: bool = False, as_json: bool = False
) -> None:
    """Print tables, or the underlying records as JSON."""
    from cardiobench.core import plugins
    from cardiobench.protocols import shown_protocols
    from cardiobench.scoring.suites import list_suites, load_suite

    installed = {name: plugins.package_of(point) for name, point in plugins.entry_points("models").items()}
    datasets = [] if models_only else dataset_records(data_dir)
    models = model_records()
    if as_json:
        records = {"datasets": datasets, "models": models, "installed_models": installed}
        names, problem = shown_protocols()
        records |= {"protocols": names, "suites": list_suites(), **({"problems": [problem]} if problem else {})}
        console.json(records)
        return
    console.tree("datasets", dataset_tree(datasets))
    console.table("models", MODEL_COLUMNS, [_model_row(record) for record in models])
    console.table(
        "models: licence and source of the weights",
        LICENCE_COLUMNS,
        [(record["model"], record["licence"], record["access"]) for record in models],
    )
    for name, package in installed.items():
        console.print(f"model {name}: of the installed package {package}")
    names, problem = shown_protocols()
    console.print(f"protocols: {', '.join(names)}")
    console.remarks([problem] if problem else [])
    for name in list_suites():
        console.print(f"suite {name}: {load_suite(name).title}")


def dataset_records(data_dir: Path | None) -> list[dict[str, Any]]:
    """Return facts of every dataset and the number of local recordings by split, or None if not available."""
    from cardiobench.core.errors import CardioBenchError, MissingData
    from cardiobench.data import catalog
    from cardiobench.data.open import open_dataset

    records = []
    for name in catalog.list_datasets():
        spec, here, problem = catalog.spec(name), None, ""
        try:
            counts = open_dataset(name, data_dir, allow_missing=True).frame["split"].value_counts()
            here = {split: int(counts.get(split, 0)) for split in spec.splits}
        except CardioBenchError as error:
            problem = "" if isinstance(error, MissingData) else str(error)
        records.append(
            {
                "dataset": name,
                "modality": spec.modality,
                "tasks": [task.name for task in spec.all_tasks],
                "release": dict(spec.expected),
                "generated": spec.generated,
                "here": here,
                "problem": problem,
                "licence": spec.licence,
                "access": spec.access or "comes with the package",
            }
        )
    return records


def model_records() -> list[dict[str, Any]]:
    """Return the card facts of every model."""
    from cardiobench.models.cards import card, list_models

    return [
        {
            "model": found.id,
            "modalities": list(found.modalities),
            "text": bool(found.text),
            "native": list(found.native),
            "public_weights": found.public_weights,
            "datasets_seen": list(found.seen),
            "datasets_seen_unknown": list(found.seen_unknown),
            "licence": found.licence,
            "access": found.access,
        }
        for found in map(card, list_models())
    ]


def dataset_tree(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tree of datasets: local ones by modality, then the others."""
    tree: dict[str, Any] = {}
    for record in records:
        here, released = record["here"], f"release: {_release(record)}"
        tasks = ", ".join(name.partition("/")[2] for name in record["tasks"])
        facts = (
            [] if record["generated"] else [released, f"licence: {record['licence']}", f"access: {record['access']}"]
        )
        if record["problem"]:
            facts.insert(0, f"unreadable: {record['problem']}")
        elif here:
            facts.insert(0, f"here: {' / '.join(map(str, here.values()))} ({' / '.join(here)})")
        place = "on this machine" if here or record["problem"] else "not on this machine"
        label = f"{record['dataset']}{' (generated)' if record['generated'] else ''}: {tasks}"
        tree.setdefault(place, {}).setdefault(record["modality"], {})[label] = {fact: {} for fact in facts}
    return dict(sorted(tree.items(), reverse=True))


def _release(record: dict[str, Any]) -> str:
    """Return row counts of the complete release, by split if known."""
    from cardiobench.data.spec import TOTAL

    expected = record["release"]
    if not expected:
        return "generated" if record["generated"] else "not known"
    if TOTAL in expected:
        return f"{expected[TOTAL]} in all"
    return " / ".join(str(expected.get(split, "?")) for split in ("train", "validation", "test"))


def _model_row(record: dict[str, Any]) -> tuple[str, ...]:
    from cardiobench.models.cards import seen_text

    return (
        record["model"],
        " + ".join(record["modalities"]),
        "yes" if record["text"] else "no",
        ", ".join(record["native"]) or "none",
        "yes" if record["public_weights"] else "no",
        seen_text(dataset_groups(record["datasets_seen"]), dataset_groups(record["datasets_seen_unknown"])),
    )


def dataset_groups(names: Sequence[str]) -> list[str]:
    """Abbreviate dataset names that extend others: ptb_xl, ptb_xl_500 and ptb_xl_sample become ptb_xl*."""
    heads = [name for name in names if not any(name.startswith(f"{other}_") for other in names)]
    return [f"{head}*" if any(name.startswith(f"{head}_") for name in names) else head for head in heads]
