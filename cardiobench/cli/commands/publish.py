"""Implement `cardiobench publish`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

HELP = "publish datasets, metrics or model cards on the Hub; without --yes, only show what would change"
GROUP = "share"
EXAMPLES = """\
examples
  show what would change in all dataset repositories
      cardiobench publish datasets
  publish a dataset with its recordings, where the licence allows it
      cardiobench prepare ptb_xl --data-dir RAW --out prepared
      cardiobench publish datasets ptb_xl --prepared prepared --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "what", metavar="KIND", choices=("datasets", "metrics", "models"), help="datasets, metrics or models"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of datasets, metrics or models (default: all)")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="user or organisation on the Hub (default: CARDIOBENCH_NAMESPACE or cardiobench)",
    )
    parser.add_argument("--private", action="store_true", help="create repositories as private")
    parser.add_argument(
        "--gated",
        action="store_true",
        help="require access requests, which you approve manually (datasets)",
    )
    parser.add_argument(
        "--prepared",
        type=Path,
        metavar="DIR",
        help="folder from `cardiobench prepare`; also publishes the recordings (datasets)",
    )
    parser.add_argument(
        "--i-have-the-right",
        action="store_true",
        help="with --private or --gated: confirm that your agreement allows you to share the recordings with those who can see the files",
    )
    sending = parser.add_mutually_exclusive_group()
    sending.add_argument("--yes", action="store_true", help="write to the Hub")
    sending.add_argument("--dry-run", action="store_true", help="only show what would change (the default)")


def execute(arguments: argparse.Namespace) -> int:
    """Show the changes, write them if requested, and return the exit code."""
    from cardiobench.core.config import hub_namespace
    from cardiobench.core.console import Console
    from cardiobench.core.registry import check_names
    from cardiobench.data.catalog import is_own, list_datasets
    from cardiobench.hub import publish_datasets, publish_metrics, publish_models
    from cardiobench.hub.publish import publish
    from cardiobench.metrics.load import own_metrics

    names, private = arguments.names, arguments.private
    namespace = arguments.namespace or hub_namespace()
    listed: dict[str, Sequence[str]] = {"datasets": list_datasets(), "metrics": own_metrics()}
    known = listed.get(arguments.what, names)
    check_names(arguments.what.rstrip("s"), names, known)
    if arguments.what == "datasets":
        rights = {
            "gated": arguments.gated,
            "i_have_the_right": arguments.i_have_the_right,
            "prepared": arguments.prepared,
        }
        wanted = [
            publication
            for name in names or filter(is_own, known)
            for publication in publish_datasets.publications(name, namespace, private=private, **rights)
        ]
    elif arguments.what == "metrics":
        wanted = publish_metrics.publications(names, namespace, private=private)
    else:
        wanted = publish_models.publications(names, namespace, private=private)
    console = Console()
    written, failed = publish(wanted, dry_run=not arguments.yes, on_diff=console.print)
    changed = sum(bool(done.changes) for done in written)
    if arguments.what == "datasets" and changed and not arguments.prepared:
        console.print(
            "\nThese are cards, builders, split ids and an index, without recordings: `load_dataset` reads the recordings from "
            "--data-dir or $CARDIOBENCH_DATA. To publish them as well, give --prepared DIR."
        )
    if not arguments.yes and changed:
        console.print(f"\n{changed} of {len(wanted)} would change. Nothing was written; add --yes to write it.")
    return 1 if failed else 0
