"""Implement `cardiobench push`."""

import argparse
from pathlib import Path

HELP = "write results to a model's repository or to a dataset of results; without --yes, only show what would change"
GROUP = "share"
EXAMPLES = """\
examples
  show what would be written to the model's card (by pull request if the model is not yours)
      cardiobench push results --to org/model
  push results of a local model folder to its repository
      cardiobench push results --model ./my_model --to me/my_model --yes
  push results of a local model to the dataset behind a leaderboard
      cardiobench push results --model ./my_model --as me/my_model --to-dataset org/cardiobench-results --yes
  push everything to the dataset behind a leaderboard
      cardiobench push results --to-dataset org/cardiobench-results --with-predictions --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("results", type=Path, metavar="RESULTS", help="folder of results, or one result file")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="ORG/MODEL", help="the model's repository")
    where.add_argument("--to-dataset", metavar="ORG/NAME", help="a dataset of results; created if it does not exist")
    parser.add_argument(
        "--model", metavar="NAME", help="name under which the model was evaluated (default: the repository)"
    )
    parser.add_argument(
        "--as",
        dest="public_name",
        metavar="ORG/MODEL",
        help="with --to-dataset and --model: name of the model in the dataset, for a model with a local name",
    )
    parser.add_argument("--pr", action="store_true", help="open a pull request even if you may write")
    parser.add_argument("--create", action="store_true", help="with --to: create the repository if it does not exist")
    parser.add_argument("--private", action="store_true", help="create the repository or dataset as private")
    parser.add_argument(
        "--include-rehearsals",
        action="store_true",
        help="also write results that are not benchmark scores (--limit, twins, phantoms, incomplete data, "
        "other prompts); they are never added to the card",
    )
    parser.add_argument(
        "--with-predictions",
        action="store_true",
        help="with --to-dataset: add ids and answers, so that `cardiobench verify` can recompute the scores; only if the "
        "release allows its ids to be published",
    )
    parser.add_argument(
        "--local-dataset",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="your own dataset (`cardiobench adopt`) whose scores may be published; its ids never are",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace results even if the new ones are older or less complete"
    )
    sending = parser.add_mutually_exclusive_group()
    sending.add_argument("--yes", action="store_true", help="write to the Hub")
    sending.add_argument("--dry-run", action="store_true", help="only show what would change (the default)")


def execute(arguments: argparse.Namespace) -> int:
    """Show the changes, write them if requested, and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.hub.commit import RepoOptions
    from cardiobench.hub.push_results import find_results, push, reference_sentences, select_model
    from cardiobench.hub.results_dataset import find_predictions, push_to_dataset
    from cardiobench.results.collect import collect

    if arguments.with_predictions and not arguments.to_dataset:
        raise BadConfig("--with-predictions needs --to-dataset; a model's repository holds no predictions.")
    if arguments.public_name and not (arguments.to_dataset and arguments.model):
        raise BadConfig("--as needs --to-dataset and --model: it names one model in a dataset of results.")
    console = Console()
    results = find_results(arguments.results)
    if arguments.public_name:
        results = select_model(results, arguments.model, arguments.public_name)
    if arguments.to:
        name = arguments.model or arguments.to
        chosen = select_model(results, name, arguments.to)
        done = push(
            chosen,
            arguments.to,
            dry_run=not arguments.yes,
            on_diff=console.print,
            as_pull_request=arguments.pr,
            include_rehearsals=arguments.include_rehearsals,
            overwrite=arguments.overwrite,
            local_datasets=arguments.local_dataset,
            create=RepoOptions(arguments.private) if arguments.create else None,
            beside=reference_sentences(collect([arguments.results]).entries, name),
        )
    else:
        done = push_to_dataset(
            results,
            arguments.to_dataset,
            private=arguments.private,
            dry_run=not arguments.yes,
            on_diff=console.print,
            include_rehearsals=arguments.include_rehearsals,
            predictions=find_predictions(arguments.results) if arguments.with_predictions else None,
            local_datasets=arguments.local_dataset,
        )
    if not done.changes:
        console.print(f"{done.target}: nothing to change")
    elif done.url:
        console.print(f"{done.target}: {done.url}")
    else:
        console.print("\nNothing was written; add --yes to write it.")
    return 0
