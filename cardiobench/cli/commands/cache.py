"""Implement `cardiobench cache`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.cli.flags import add_json

if TYPE_CHECKING:
    from cardiobench.core.console import Console
    from cardiobench.embeddings.cached import CachedStore

HELP = "list, verify, delete or export stored embeddings"
EXAMPLES = """\
examples
  list the stored embeddings and their sizes
      cardiobench cache list
  check every stored vector against its digest
      cardiobench cache verify --model org/name
  delete embeddings; without --yes, only show what would be deleted
      cardiobench cache delete --model org/name --dataset ptb_xl --yes
  export to a file, for others or for --embeddings
      cardiobench cache export --model org/name --dataset ptb_xl --out vectors.parquet

exit code of verify: 0 = no damage found, 1 = a shard is damaged
"""
ACTIONS = {
    "list": "models and datasets with recordings and sizes",
    "verify": "compare every shard with its digest; damaged shards are set aside",
    "delete": "delete stores; without --yes, only show which",
    "export": "write embeddings as Parquet, NPZ or CSV, in the format of --embeddings",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", help="what to do")
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.add_argument("--model", default="", metavar="ID", help="only embeddings of this model")
        action.add_argument("--dataset", default="", metavar="NAME", help="only embeddings of this dataset")
        action.add_argument(
            "--key", default="", metavar="KEY", help="only the store with this key, or whose key begins with it"
        )
        action.add_argument(
            "--cache-dir",
            type=Path,
            metavar="DIR",
            help="folder of embeddings (default: the same as for `cardiobench eval`)",
        )
        if name == "export":
            action.add_argument(
                "--out", type=Path, required=True, metavar="FILE", help="output file, .parquet, .npz or .csv"
            )
            action.add_argument(
                "--pooling",
                default="",
                choices=("mean", "mean_l2"),
                help="how to pool the vectors of a recording into one (default: as stored with the vectors)",
            )
        else:
            add_json(action)
        if name == "delete":
            action.add_argument("--all", action="store_true", help="delete the embeddings of all models and datasets")
            action.add_argument(
                "--yes", action="store_true", help="delete; without it, only show what would be deleted"
            )


def execute(arguments: argparse.Namespace) -> int:
    """Run the selected action and return the exit code."""
    from cardiobench.core.config import default_cache
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig, MissingData
    from cardiobench.embeddings.cached import find_stores

    cache = arguments.cache_dir or default_cache()
    chosen = arguments.model or arguments.dataset or arguments.key
    if arguments.action == "delete" and not (chosen or arguments.all):
        raise BadConfig("nothing is selected. Give --model, --dataset, --key or --all.")
    if arguments.cache_dir and not cache.is_dir():
        raise MissingData(f"there is no folder {cache}. Check --cache-dir.")
    stores = find_stores(cache, arguments.model, arguments.dataset, arguments.key)
    console = Console(stdout_is_json=getattr(arguments, "json", False))
    if not stores and arguments.action != "export":
        console.print(f"no embeddings {'of that kind ' if chosen else ''}are stored in {cache}")
    match arguments.action:
        case "verify":
            return _verify(stores, console, as_json=arguments.json)
        case "export":
            return _export(stores, arguments, console)
        case "delete":
            return _delete(stores, arguments, console)
    _list(stores, console, as_json=arguments.json)
    return 0


def _list(stores: "list[CachedStore]", console: "Console", *, as_json: bool) -> None:
    from cardiobench.embeddings.cached import describe

    rows = [describe(one) for one in stores]
    if as_json:
        console.json({"stores": rows})
        return
    if rows:
        cells = [
            (
                one["model"],
                one["dataset"],
                str(one["recordings"]),
                _size(one["bytes"]),
                one["key"],
                one["written"],
                one["what"],
            )
            for one in rows
        ]
        console.table("stored embeddings", ("model", "dataset", "recordings", "size", "key", "written", "what"), cells)
        console.print(f"{_count(len(rows))}, {_size(sum(one['bytes'] for one in rows))}")


def _verify(stores: "list[CachedStore]", console: "Console", *, as_json: bool) -> int:
    found = {one: one.problems() for one in stores}
    if as_json:
        console.json({"stores": [{"folder": str(one.folder), "problems": problems} for one, problems in found.items()]})
    for one, problems in found.items():
        console.print(
            f"{'damaged' if problems else 'ok'} {one.model} {one.dataset} {one.key}, {len(one.shards)} shards"
        )
        for problem in problems:
            console.print(f"  {problem}")
    return 1 if any(found.values()) else 0


def _delete(stores: "list[CachedStore]", arguments: argparse.Namespace, console: "Console") -> int:
    size = sum(one.size for one in stores)
    _list(stores, console, as_json=arguments.json)
    if arguments.yes:
        for one in stores:
            one.delete()
        console.print(f"deleted {_count(len(stores))}, {_size(size)}")
    elif stores:
        console.print("Nothing was deleted; add --yes to delete these.")
    return 0


def _export(stores: "list[CachedStore]", arguments: argparse.Namespace, console: "Console") -> int:
    from cardiobench.embeddings.cached import export_stores

    count, pooling = export_stores(stores, arguments.out, arguments.pooling)
    console.print(f"wrote the embeddings of {count} recordings to {arguments.out}")
    if not pooling:
        console.remarks(["the pooling of the vectors is not stored: give --pooling mean or mean_l2 to match the model"])
    elif arguments.out.suffix.lower() == ".csv" and pooling != "mean":
        console.remarks([f"a CSV does not store the pooling: evaluate it with --pooling {pooling}"])
    return 0


def _count(stores: int) -> str:
    return "1 store" if stores == 1 else f"{stores} stores"


def _size(count: int) -> str:
    """Format a number of bytes."""
    return (
        f"{count / 1e9:.2f} GB"
        if count >= 1e9
        else f"{count / 1e6:.1f} MB"
        if count >= 1e6
        else f"{count / 1e3:.0f} kB"
    )
