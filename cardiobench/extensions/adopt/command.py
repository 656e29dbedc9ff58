"""Implement `cardiobench adopt`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.cli.flags import SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from cardiobench.core.console import Console
    from cardiobench.data.media.types import Clip, Ecg
    from cardiobench.extensions.adopt.answers import AdoptionRequest, Answers
    from cardiobench.extensions.adopt.proposal import Proposal
    from cardiobench.extensions.adopt.questions import Questions

HELP = "make a dataset from a folder of recordings and a table of labels, without code; nothing leaves this machine"
GROUP = "data"
EXAMPLES = """\
examples
  ECGs in WFDB; the table has the columns file, patient_id and stemi
      cardiobench adopt recordings --labels labels.csv --name my_hospital --datasets-dir my_datasets --target stemi --positive stemi=1
  echo cines; one ejection fraction per patient
      cardiobench adopt cines --labels labels.csv --name my_echo --datasets-dir my_datasets --target ef --label-unit ef=% --range ef=0:100 --per ef=patient
  then
      cardiobench eval --model cardiobench/minirocket --tasks my_hospital/stemi --datasets-dir my_datasets
"""
ROLES = {
    "id": "id of a recording",
    "patient": "patient",
    "split": "split (train, validation, test); none: create a split by patient",
    "study": "study",
    "sex": "sex",
    "age": "age in years",
    "site": "hospital",
    "device": "device",
    "view": "echo view",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="folder of the recordings")
    parser.add_argument(
        "--no-recordings",
        action="store_true",
        help="there is no FOLDER: the dataset serves --predictions and --embeddings made elsewhere",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV, Excel (.xlsx) or Parquet, one row per recording",
    )
    parser.add_argument(
        "--encoding", default="", help="encoding of a CSV (default: UTF-8, UTF-16 with its mark, else cp1252)"
    )
    parser.add_argument("--sheet", default="", help="sheet of a workbook (default: the only one with cells)")
    parser.add_argument("--name", required=True, help="name of the dataset: lower-case letters, digits and underscores")
    # Under another name in the namespace: unlike that of other commands, the folder need not exist yet.
    parser.add_argument(
        "--datasets-dir",
        dest="out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of your datasets, made if absent",
    )
    parser.add_argument("--title", default="", help="display name (default: the name)")
    parser.add_argument("--overwrite", action="store_true", help="replace an adopted dataset with the same name")
    parser.add_argument("--dry-run", action="store_true", help="show the proposal without writing files")
    columns = parser.add_argument_group("columns", "detected by name unless given; 'none' if there is no such column")
    columns.add_argument(
        "--file-column",
        default="",
        metavar="COLUMN",
        help="column with the path or name of a file (default: detected from its values)",
    )
    for role, what in ROLES.items():
        columns.add_argument(f"--{role}-column", default="", metavar="COLUMN", help=what)
    columns.add_argument(
        "--record-column", default="", metavar="COLUMN", help="column with the row or id in an array of many recordings"
    )
    columns.add_argument(
        "--in-order", action="store_true", help="the rows of the table are the rows of the array, in order"
    )
    columns.add_argument(
        "--files",
        choices=("same", "as-written"),
        default="",
        help="names that differ from those of files only in spelling, such as 7 for 007.edf, are the same or, as written, none",
    )
    columns.add_argument(
        "--patient-is-record",
        action="store_true",
        help="treat each recording as its own patient because patients are unknown; recorded in every result",
    )
    columns.add_argument(
        "--patients",
        choices=("same", "as-written"),
        default="",
        help="patient ids that differ only in spelling, such as 7 and 07, are the same person or, as written, different people",
    )
    columns.add_argument(
        "--drop-without",
        choices=("patient",),
        nargs="+",
        default=[],
        action="extend",
        help="leave rows out that have no patient; every result states their number",
    )
    columns.add_argument(
        "--sex-values", nargs="+", default=[], action="extend", metavar="CELL=F|M", help="meaning of a value"
    )
    columns.add_argument(
        "--group",
        nargs="+",
        default=[],
        action="extend",
        metavar="COLUMN",
        help="column that defines subgroups with scores of their own",
    )
    labels = parser.add_argument_group(
        "labels", "NAME is the task's name: the column's in lower case, unless set by --target NAME=COLUMN"
    )
    entries = {
        "--target": ("[NAME=]COLUMN", "columns with labels, one task each; the split is stratified by the first"),
        "--multilabel": (
            "NAME=COLUMN,COLUMN",
            "multilabel task from several columns with 0, 1 or an empty cell (not measured)",
        ),
        "--kind": ("NAME=KIND", "binary, multiclass or regression"),
        "--positive": ("NAME=VALUE", "value of the positive class"),
        "--label-unit": ("NAME=UNIT", "unit of a number"),
        "--range": ("NAME=LOW:HIGH", "range of valid numbers (default: range in the table)"),
        "--missing": ("NAME=CELL,CELL", "cells that mean not measured, such as -9 or 999"),
        "--per": (
            "NAME=UNIT",
            "unit of scoring: recording, study or patient; predictions of its recordings are averaged",
        ),
        "--where": ("NAME:COLUMN=VALUE,VALUE", "recordings that belong to the task"),
        "--metric": ("NAME=METRIC", "metric that ranks models (default: metric of the task kind)"),
    }
    for flag, (metavar, text) in entries.items():
        labels.add_argument(flag, nargs="+", default=[], action="extend", metavar=metavar, help=text)
    recordings = parser.add_argument_group("recordings", "required if the files do not state them")
    recordings.add_argument(
        "--format",
        default="",
        help="wfdb, dicom, edf, csv, npy, hdf5, parquet, xml (MUSE, aECG, Sierra), scp, ishne, mfer, edan, clip, image, "
        "or a reader of an installed package",
    )
    recordings.add_argument(
        "--modality",
        choices=("ecg", "echo"),
        default="",
        help="expected modality; recordings of the other one are rejected",
    )
    recordings.add_argument("--leads", default="", metavar="I,II,...", help="channel names in order")
    recordings.add_argument(
        "--sampling-rate", type=float, metavar="HZ", help="sampling rate of ECGs in files that do not state it"
    )
    recordings.add_argument(
        "--unit", help="unit of the samples: V, mV, uV or nV, with a factor as in '4.88 uV' if needed"
    )
    recordings.add_argument("--array", metavar="NAME", help="dataset of an HDF5 file with the samples")
    recordings.add_argument("--records", metavar="NAME", help="dataset of an HDF5 file with the ids of its records")
    recordings.add_argument("--allow-missing", action="store_true", help="leave rows out whose recordings are missing")
    recordings.add_argument("--allow-unreadable", action="store_true", help="leave recordings out that cannot be read")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the split (default: %(default)s)")


def execute(arguments: argparse.Namespace) -> int:
    """Show the proposal, write the dataset, and return the exit code."""
    import sys
    from collections.abc import Sequence

    from cardiobench.core.command import command
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.core.workbook import slow_to_read
    from cardiobench.data.declared.dataset_file import is_name
    from cardiobench.extensions.adopt.answers import AdoptionRequest
    from cardiobench.extensions.adopt.proposal import propose
    from cardiobench.extensions.adopt.questions import Questions
    from cardiobench.extensions.adopt.write import SHEET, check_target, write_dataset

    console = Console()
    terminal = sys.stdin is not None and sys.stdin.isatty() and console.out.is_terminal
    questions = Questions(input if terminal else None)
    with questions.gather():
        if not is_name(arguments.name):
            raise BadConfig(
                f"--name {arguments.name!r:.80}: expected lower case letters, digits and underscores, such as my_hospital"
            )
        check_target(arguments.out / arguments.name, overwrite=arguments.overwrite or arguments.dry_run)
    with questions.gather():
        if (arguments.folder is None) != arguments.no_recordings:
            raise BadConfig(
                "the folder of the recordings is missing. Name it, or give --no-recordings if there are none."
                if arguments.folder is None
                else f"--no-recordings contradicts the folder {arguments.folder}. Leave one of them out."
            )
    request = AdoptionRequest(arguments.folder, arguments.labels, arguments.name, answers_of(arguments, questions))

    def report(found: Sequence[tuple[str, str]], said: Sequence[str]) -> None:
        console.table(f"Dataset {arguments.name}", ("what", "it is"), found)
        console.remarks(said)

    console.remarks(filter(None, [slow_to_read(arguments.labels)]))
    proposal = propose(request, questions, lambda label, total: console.progress(label, total, doing="reading"), report)
    if arguments.dry_run:
        console.print("nothing was written (--dry-run)")
        return 0
    written = write_dataset(proposal, arguments.out, overwrite=arguments.overwrite)
    for path in (*written, *_sheet(request, proposal, written[0].parent / SHEET, console)):
        console.print(f"wrote {path}")
    task = f"{arguments.name}/{next(iter(proposal.declared.tasks))}"
    own = ("--datasets-dir", arguments.out)
    if request.folder is None:
        console.print(f"score predictions: {command('eval', '--predictions', 'FILE', '--task', task, *own)}")
    else:
        console.print(f"evaluate a model: {command('eval', '--model', 'ID', '--tasks', task, *own)}")
    return 0


def _sheet(request: "AdoptionRequest", proposal: "Proposal", path: Path, console: "Console") -> list[Path]:
    """Draw the remarked recordings, and return the path of the sheet; without matplotlib, say how to get it."""
    from cardiobench.core.errors import MissingExtra
    from cardiobench.extensions.adopt.recordings import read_again
    from cardiobench.report.plots.contact_sheet import write_contact_sheet

    index, settings, folder = proposal.index.set_index("id"), proposal.declared.recordings, request.folder
    if settings is None or folder is None:
        return []

    def read(name: str) -> "Clip | Ecg":
        row = index.loc[name]
        return read_again(folder, row["file"], row.get("record"), settings)

    try:
        drawn = write_contact_sheet(proposal.examined, read, path, f"Remarked recordings of {request.name}")
    except MissingExtra as error:
        console.remarks([f"no contact sheet of the remarked recordings: {error}"])
        return []
    return [path] if drawn else []


def answers_of(arguments: argparse.Namespace, questions: "Questions") -> "Answers":
    """Convert flags to `Answers`; malformed entries are problems and left out."""
    from cardiobench.core.errors import BadConfig
    from cardiobench.data.declared.builder import UNITS
    from cardiobench.extensions.adopt.answers import Answers, by_task, listed, number_range, pairs
    from cardiobench.extensions.adopt.columns import slug
    from cardiobench.extensions.adopt.tasks import KINDS

    def parsed(parse: "Callable[..., dict[str, str]]", *given: Any, **texts: str) -> dict[str, str]:
        with questions.gather():
            return parse(*given, **texts)
        return {}

    named = [entry.partition("=")[0] for entry in (*arguments.target, *arguments.multilabel)]
    entries = [entry if "=" in entry else f"{entry}={entry}" for entry in arguments.target]
    targets = parsed(by_task, entries, "--target", value="COLUMN")
    kinds, per = parsed(by_task, arguments.kind, "--kind"), parsed(by_task, arguments.per, "--per")
    sexes = parsed(pairs, arguments.sex_values, "--sex-values", key="CELL", value="F|M")
    for flag, given, known in (
        ("--kind", kinds, KINDS),
        ("--per", per, tuple(UNITS)),
        ("--sex-values", sexes, ("F", "M")),
    ):
        for name, value in [*given.items()]:
            with questions.gather():
                if value not in known:
                    del given[name]
                    raise BadConfig(f"{flag} {name}={value}: expected one of {', '.join(known)}")
    where: dict[str, dict[str, tuple[str, ...]]] = {}
    for entry, values in parsed(pairs, arguments.where, "--where", key="NAME:COLUMN").items():
        with questions.gather():
            name, colon, column = entry.partition(":")
            if not colon or not column:
                raise BadConfig(f"--where {entry}={values}: expected NAME:COLUMN=VALUE,VALUE")
            where.setdefault(slug(name), {})[column] = listed(values)
    ranges: dict[str, tuple[float, float]] = {}
    for name, text in parsed(by_task, arguments.range, "--range").items():
        with questions.gather():
            ranges[name] = number_range(text, "--range")
    multilabel = parsed(by_task, arguments.multilabel, "--multilabel")
    return Answers(
        roles={role: value for role in ROLES if (value := getattr(arguments, f"{role}_column"))},
        file_column=arguments.file_column,
        record_column=arguments.record_column,
        in_order=arguments.in_order,
        files=arguments.files,
        targets=targets,
        kinds=kinds,
        positive=parsed(by_task, arguments.positive, "--positive"),
        units=parsed(by_task, arguments.label_unit, "--label-unit", value="UNIT"),
        ranges=ranges,
        per=per,
        where=where,
        missing={
            name: listed(cells)
            for name, cells in parsed(by_task, arguments.missing, "--missing", value="CELL,CELL").items()
        },
        metrics=parsed(by_task, arguments.metric, "--metric", value="METRIC"),
        multilabel={name: listed(columns) for name, columns in multilabel.items()},
        sexes=sexes,
        groups=tuple(arguments.group),
        modality=arguments.modality,
        format=arguments.format,
        leads=listed(arguments.leads) or None,
        sampling_rate=arguments.sampling_rate,
        unit=arguments.unit,
        array=arguments.array,
        records=arguments.records,
        title=arguments.title,
        patient_is_record=arguments.patient_is_record,
        patients=arguments.patients,
        drop_without=tuple(arguments.drop_without),
        sheet=arguments.sheet,
        encoding=arguments.encoding,
        allow_missing=arguments.allow_missing,
        allow_unreadable=arguments.allow_unreadable,
        seed=arguments.seed,
        renamed={name: slug(name) for name in named if slug(name) != name},
    )
