"""Implement `cardiobench doctor`."""

import argparse
from pathlib import Path
from typing import get_args

from cardiobench.cli.flags import add_json
from cardiobench.core.setting import Device

HELP = "check a model, a dataset or a file of embeddings before a run"
GROUP = "run"
EXAMPLES = """\
examples
  cardiobench doctor --model mkaichristensen/echo-clip
  cardiobench doctor --model echonet/EchoPrime --weights ~/downloads/model_data
  your own model: transform and encode a generated recording, and compare each property with the expected one
      cardiobench doctor --model lab.py:Mine
  a dataset here: rows, labels, and some of its recordings
      cardiobench doctor --dataset ptb_xl --data-dir /data/ptb_xl
  existing embeddings, and whether they match a dataset
      cardiobench doctor --embeddings vectors.parquet --dataset ptb_xl

exit code 0 = as expected, 1 = at least one line is not (marked !!), 2 = loading failed (see the last lines)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "--model", metavar="ID", help="Hub id, local folder, weights file, or file.py:Class of your own"
    )
    parser.add_argument("--dataset", metavar="NAME", help="dataset with data on this machine")
    parser.add_argument(
        "--embeddings", type=Path, metavar="FILE", help="file of embeddings, as for `cardiobench eval --embeddings`"
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="folder with raw data of --dataset (default: $CARDIOBENCH_DATA)"
    )
    parser.add_argument("--weights", type=Path, metavar="PATH", help="folder or file of a model that is not on the Hub")
    parser.add_argument("--revision", help="commit of the model on the Hub")
    parser.add_argument("--pooling", metavar="NAME", help="pooling of the network's tokens")
    parser.add_argument("--variant", metavar="NAME", help="variant of the preprocessing")
    parser.add_argument("--device", choices=get_args(Device), default="auto", help="device of the network, as in a run")
    parser.add_argument(
        "--precision", choices=("auto", "fp32", "bf16"), default="auto", help="precision of the models (default: auto)"
    )
    parser.add_argument("--trust-remote-code", action="store_true", help="allow a model repository to run its own code")
    parser.add_argument(
        "--preprocessing",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="input format of a model without a card",
    )
    parser.add_argument(
        "--sheet", type=Path, metavar="FILE", help="PNG with the remarked recordings of --dataset, worst first"
    )
    add_json(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="list every task of the model on its own line")
    parser.add_argument("--quick", action="store_true", help="do not download or read the weights")


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings and return the exit code."""
    from cardiobench.core.errors import BadConfig

    data = arguments.dataset or arguments.embeddings
    if bool(data) == bool(arguments.model):
        mistake = "--model cannot be combined with --dataset or --embeddings" if data else "nothing to check"
        raise BadConfig(
            f"{mistake}. Give --model ID, --dataset NAME, or --embeddings FILE (optionally with --dataset)."
        )
    if arguments.sheet and (arguments.embeddings or not arguments.dataset):
        raise BadConfig("--sheet shows recordings. Give it with --dataset NAME alone, or leave it out.")
    if data:
        return _examine_data(arguments)
    return _examine_model(arguments)


def _examine_model(arguments: argparse.Namespace) -> int:
    from cardiobench.cli.doctor import COLUMNS, examine, print_diagnosis
    from cardiobench.core.config import RunConfig, make_config
    from cardiobench.core.console import Console

    diagnosis = examine(
        arguments.model,
        quick=arguments.quick,
        device=arguments.device,
        weights=arguments.weights,
        revision=arguments.revision,
        pooling=arguments.pooling,
        variant=arguments.variant,
        precision=arguments.precision,
        trust_remote_code=arguments.trust_remote_code,
        preprocessing=make_config(RunConfig, {"preprocessing": arguments.preprocessing}, flags=True).preprocessing,
    )
    if arguments.json:
        tasks = [dict(zip(COLUMNS, row, strict=True)) for row in diagnosis.answers]
        facts, problem = dict(diagnosis.facts), diagnosis.problem
        answer = {"model": arguments.model, "facts": facts, "tasks": tasks, "problem": problem and str(problem)}
        Console().json({**answer, "trial": [vars(one) for one in diagnosis.trial]})
    else:
        print_diagnosis(diagnosis, every_task=arguments.verbose)
    if diagnosis.problem is not None:
        raise diagnosis.problem
    return 0 if all(one.good for one in diagnosis.trial) else 1


def _examine_data(arguments: argparse.Namespace) -> int:
    from cardiobench.cli.contact_sheet import check_sheet, write_sheet
    from cardiobench.cli.doctor_data import COLUMNS, examine_dataset, examine_embeddings
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.data import catalog

    name, file = arguments.dataset, arguments.embeddings
    title = str(file) if file else name
    check_sheet(arguments.sheet)
    console, data = Console(stdout_is_json=arguments.json), None
    if file:
        lines = examine_embeddings(file, name, arguments.data_dir)
    else:
        if arguments.sheet and not catalog.builder(name).has_recordings():
            raise BadConfig(f"--sheet shows recordings, and {name} has none. Leave it out.")
        data = examine_dataset(name, arguments.data_dir)
        lines = data.findings
    if arguments.json:
        console.json({"examined": title, "findings": [vars(one) for one in lines]})
    else:
        rows = [("ok" if one.good else "!!", one.what, one.found, one.expected) for one in lines]
        console.table(title, COLUMNS, rows)
    if arguments.sheet and data is not None:
        write_sheet(data.source, data.examined, arguments.sheet, console)
    return 0 if all(one.good for one in lines) else 1
