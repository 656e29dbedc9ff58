"""Implement `cardiobench reproduce`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardiobench.core.config import RunConfig
    from cardiobench.core.console import Console
    from cardiobench.extensions.papers.paper_models import Paper
    from cardiobench.models.cards import ModelCard

HELP = "compute the tables of a paper with the models and data that are here, or list what is missing"
GROUP = "run"
EXAMPLES = """\
examples
  cardiobench reproduce ecg --dry-run
  cardiobench reproduce echo --data-dir raw --weights CarDS-Yale/PanEcho=downloads/panecho
--dry-run lists the models and datasets that are on this machine, and where to get the others; nothing is downloaded or written.
Without it, the tables are computed for what is here, with the published settings (--profile paper).
exit code 0: the list is complete, or all runs succeeded, 1: nothing could be computed, or part of a run failed
"""
MODEL_COLUMNS = ("model", "in the paper", "here", "licence", "size", "missing: how to get it")
DATA_COLUMNS = ("dataset", "here", "licence", "missing: how to get it")


@dataclass(frozen=True)
class State:
    """What is on this machine of a model or dataset.

    Attributes:
        complete: Whether a run can use it.
        found: What was found, in words.
        missing: What is missing and how to get it; empty if nothing is.
        generated: Whether a dataset is generated, so that its results are in no table of a paper.
    """

    complete: bool
    found: str
    missing: str = ""
    generated: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("paper", choices=("echo", "ecg"), help="echo: arXiv:2510.00520, ecg: arXiv:2601.21830")
    parser.add_argument("--dry-run", action="store_true", help="only list what is here and what is missing")
    parser.add_argument("--model", nargs="+", default=(), metavar="ID", help="models (default: all of the paper)")
    parser.add_argument(
        "--weights", nargs="+", default=(), metavar="ID=PATH", help="folders or files of models that are not on the Hub"
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folders (default: $CARDIOBENCH_DATA)")
    parser.add_argument("--output-dir", type=Path, default=Path("results"), metavar="DIR", help="results of the runs")


def execute(arguments: argparse.Namespace) -> int:
    """List what is here, or compute the tables, and return the exit code."""
    from cardiobench.cli.eval import run_and_print
    from cardiobench.core.command import command
    from cardiobench.core.console import Console
    from cardiobench.core.errors import MissingData
    from cardiobench.data import catalog
    from cardiobench.extensions.papers.paper_models import PAPERS

    paper, console = PAPERS[arguments.paper], Console()
    if arguments.data_dir and not arguments.data_dir.exists():
        raise MissingData(f"--data-dir {arguments.data_dir} does not exist. Give the folder with the raw data.")
    cards = chosen_cards(paper, arguments.model)
    weights = weights_of(arguments.weights, cards)
    models = {card.id: model_state(card, weights.get(card.id)) for card in cards}
    installed = [name for name in paper.datasets if name in catalog.list_datasets()]
    data = {name: dataset_state(name, arguments.data_dir) for name in installed}
    print_states(paper, cards, models, data, console)
    if arguments.dry_run:
        return 0
    codes = [run_and_print(config) for config in configs(paper, models, data, weights, arguments)]
    if not codes:
        console.print("! nothing was computed: no model and dataset of the paper are both here")
        return 1
    if all(state.generated for state in data.values() if state.complete):
        console.print("! the data are generated, so their results are in no table of the paper")
    else:
        console.print(f"the tables: {command('report', arguments.output_dir, '--layout', 'paper')}")
    return max(codes)


def chosen_cards(paper: "Paper", names: Sequence[str]) -> "list[ModelCard]":
    """Return the cards of some models of a paper, or of all.

    Raises:
        UnknownName: A model is not one of the paper; the message has the most similar name.
    """
    from cardiobench.core.registry import unknown_name

    known = {card.id.lower(): card for card in paper.cards()}
    for name in names:
        if name.lower() not in known:
            raise unknown_name("model of the paper", name, [card.id for card in known.values()])
    return [known[name.lower()] for name in dict.fromkeys(names)] if names else list(known.values())


def weights_of(given: Sequence[str], cards: "Sequence[ModelCard]") -> dict[str, Path]:
    """Read `ID=PATH` pairs.

    Raises:
        BadConfig: A pair has no `=`, or its model is not one of these.
    """
    from cardiobench.core.errors import BadConfig

    known, found = {card.id.lower(): card.id for card in cards}, {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not path or name.lower() not in known:
            raise BadConfig(f"--weights {one}: give ID=PATH, in which ID is one of {', '.join(known.values())}.")
        found[known[name.lower()]] = Path(path)
    return found


def model_state(card: "ModelCard", path: Path | None) -> State:
    """Return which weights of a model are in a given folder or in the cache of the Hub; checksums of given files are compared."""
    from dataclasses import replace

    from huggingface_hub import constants, try_to_load_from_cache

    from cardiobench.core.errors import BadModel
    from cardiobench.extensions.papers.paper_models import loadable
    from cardiobench.models.files import given_files

    if not loadable(card):
        return State(False, "no", f"cannot be loaded here: {card.access}")
    lacking = list(card.weights)
    if path is not None:
        try:
            source = replace(given_files(card.id, path), checksums=card.weights)
            files = [file for name in card.weights if (file := source.find((name,)))]
            for file in files:
                source.verified_digest(file)
        except BadModel as error:
            return State(False, "no", str(error))
        lacking = [] if source.single else [name for name in card.weights if source.find((name,)) is None]
    elif card.hub:
        cached = {"cache_dir": constants.HF_HUB_CACHE, "revision": card.revision}
        lacking = [
            name for name in card.weights if not isinstance(try_to_load_from_cache(card.id, name, **cached), str)
        ]
    if not lacking:
        return State(True, str(path) if path else "in the cache of the Hub")
    found = "no" if len(lacking) == len(card.weights) else "in part"
    where = card.access if path is None else f"not in {path}; {card.access}"
    return State(False, found, f"{', '.join(lacking)}: {where}")


def dataset_state(name: str, data_dir: Path | None) -> State:
    """Return how much of a dataset is here, and what a run would miss."""
    from cardiobench.core.errors import CardioBenchError, MissingData
    from cardiobench.data import catalog
    from cardiobench.data.open import open_dataset

    try:
        dataset = open_dataset(name, data_dir)
    except MissingData as error:
        try:
            catalog.builder(name).find_raw(data_dir)
        except MissingData:
            return State(False, "no", catalog.spec(name).access)
        return State(False, "in part", str(error))
    except CardioBenchError as error:
        return State(False, "unreadable", str(error))
    found = f"{len(dataset.frame):,} recordings{' (generated)' * dataset.generated}"
    return State(True, found, generated=dataset.generated)


def print_states(
    paper: "Paper",
    cards: "Sequence[ModelCard]",
    models: Mapping[str, State],
    data: Mapping[str, State],
    console: "Console",
) -> None:
    """Print a table of the models and one of the datasets of a paper."""
    from cardiobench.data import catalog
    from cardiobench.extensions.papers.paper_models import size_of

    rows = [
        (card.id, paper.models[card.id], models[card.id].found, card.licence, size_of(card), models[card.id].missing)
        for card in cards
    ]
    console.table(f"models of {paper.title}", MODEL_COLUMNS, rows)
    known = {name: catalog.spec(name).licence for name in data}
    console.table("datasets", DATA_COLUMNS, [(name, one.found, known[name], one.missing) for name, one in data.items()])
    for title, states in (("models", models), ("datasets", data)):
        console.print(f"{sum(one.complete for one in states.values())} of {len(states)} {title} are here")


def configs(
    paper: "Paper",
    models: Mapping[str, State],
    data: Mapping[str, State],
    weights: Mapping[str, Path],
    arguments: argparse.Namespace,
) -> "Iterator[RunConfig]":
    """Yield the settings of the runs of each model that is here, limited to datasets that are here and its card's abilities."""
    from cardiobench.core.config import RunConfig, make_config
    from cardiobench.models.cards import card

    places = {"output_dir": arguments.output_dir, **({"data_dir": arguments.data_dir} if arguments.data_dir else {})}
    ready = {name for name, state in data.items() if state.complete}
    for model in (name for name, state in models.items() if state.complete):
        own = places | ({"weights": weights[model]} if model in weights else {})
        offered = {"zero_shot": card(model).text, "native": bool(card(model).native)}
        for tasks, protocols in paper.runs:
            here = tuple(task for task in tasks if task.partition("/")[0] in ready)
            chosen = tuple(protocol for protocol in protocols if offered.get(protocol, True))
            if here and chosen:
                given = {"models": (model,), "tasks": here, "protocols": chosen, "profile": "paper", **own}
                yield make_config(RunConfig, given, flags=True)
