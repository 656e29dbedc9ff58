"""Propose a dataset: combine a folder of recordings with a table of labels."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig, BadData, BadMedia, MissingData, counted, first_n
from cardiobench.core.registry import check_names
from cardiobench.data import catalog
from cardiobench.data.declared.dataset_file import LEFT_OUT, DatasetFile, DeclaredRecordings, DeclaredTask, Labels, Sex
from cardiobench.data.declared.formats import ECHO_FORMATS, check_format, read_channels
from cardiobench.data.declared.labels import age_cells, read_labels, target_cells
from cardiobench.data.examine import Examined
from cardiobench.data.media.channels import Channels, parse_unit
from cardiobench.data.spec import Modality
from cardiobench.data.spelling import shown_spellings, spellings
from cardiobench.extensions.adopt import splits as splitting
from cardiobench.extensions.adopt import tasks as labelling
from cardiobench.extensions.adopt.answers import ROLES, AdoptionRequest, column_of_role, named_column
from cardiobench.extensions.adopt.columns import MUCH_MISSING, NAMES, SEXES, profile
from cardiobench.extensions.adopt.locate import PEEKED, locate
from cardiobench.extensions.adopt.patients import find_patients
from cardiobench.extensions.adopt.questions import Questions
from cardiobench.extensions.adopt.recordings import (
    check_recordings,
    check_unit,
    describe_leads,
    left_out_rows,
    refuse_unreadable,
)

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass
class Proposal:
    """A dataset proposed for a folder.

    Attributes:
        declared: Content of `dataset.yaml`.
        index: Content of `splits.csv`.
        left_out: Content of `left_out.csv`: id and reason of the rows of the table that are not part of the dataset.
        examined: Remarks on the recordings.
        found: Rows of the findings table, each (property, value).
        said: Warnings, one sentence each.
    """

    declared: DatasetFile
    index: pd.DataFrame
    left_out: pd.DataFrame
    examined: Examined
    found: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def propose(request: AdoptionRequest, questions: Questions, progress: Progress) -> Proposal:
    """Propose a dataset for a folder and a table without writing files.

    Args:
        request: Folder, labels and the user's answers.
        questions: Prompt for facts that the files do not state.
        progress: Function that creates a progress bar from a label and a total.

    Raises:
        CardioBenchError: The table has problems, all listed in one message.
    """
    return _Adoption(request, questions, progress).run()


class _Adoption:
    """Steps of one adoption."""

    def __init__(self, request: AdoptionRequest, questions: Questions, progress: Progress):
        self.request, self.answers, self.questions, self.progress = request, request.answers, questions, progress
        self.folder = request.folder
        self.found: list[tuple[str, str]] = []
        self.said: list[str] = []

    def run(self) -> Proposal:
        """Return the proposed dataset."""
        self._check_answers()
        self.table = read_labels(self.request.labels)
        if "" in self.table.columns:
            raise BadData(f"{self.request.labels} has a column without a name. Name it, or remove it.")
        found = locate(self.request, self.table, self.questions)
        self.files, self.records, self.file_column = found.files, found.records, found.column
        self.format, self.ids_in_file = found.format, found.ids
        self.modality: Modality = "echo" if self.format in ECHO_FORMATS else "ecg"
        if self.answers.modality and self.answers.modality != self.modality:
            named = first_n([name for name in self.files if name], 2)
            raise BadConfig(
                f"--modality {self.answers.modality}: the files in the table are {self.modality} ({named}). Leave the flag out, or give another table."
            )
        if found.others:
            self.said.append(f"{found.others} recordings in {self.folder} are named by no row")
        self._find_roles()
        tasks = self._tasks()
        self.said += [f"the task of '{name}' is called '{task}'" for name, task in self.answers.renamed.items()]
        settings = self._settings()
        self.questions.check()
        declared = self._declare(tasks, settings)
        self._refuse_missing()
        index = self._index(declared)
        advance = self.progress("recordings", len(index))
        with advance as step:
            checked = check_recordings(self.folder, list(index["id"]), self.files, self.records, settings, step)
        check_unit(checked, settings)
        self.said += filter(None, (describe_leads(checked), checked.examined.sentence()))
        if note := refuse_unreadable(
            checked, sum(file is not None for file in self.files), allowed=self.answers.allow_unreadable
        ):
            self.said.append(note)
        left_out = left_out_rows(index["id"], self.files, checked)
        kept = ~index["id"].isin(left_out["id"]).to_numpy()
        if not kept.all():
            declared = declared.model_copy(update={"left_out": LEFT_OUT})
            self.said.append(f"{len(left_out)} rows are left out of the dataset, as {LEFT_OUT} and every result state")
        index = index[kept].reset_index(drop=True)
        index["split"] = self._splits(declared, index, kept)
        if note := splitting.check_splits(index, np.array(checked.content, dtype=object)[kept]):
            self.said.append(note)
        if checked.rates:
            unit = "Hz" if self.modality == "ecg" else "frames per second"
            self.found.append(("rate", f"{first_n([f'{rate:g}' for rate in checked.rates])} {unit}"))
        self._describe(declared, index)
        return Proposal(declared, index, left_out, checked.examined, self.found, self.said)

    def _check_answers(self) -> None:
        """Reject invalid answers before any file is read."""
        if self.request.name in catalog.list_datasets():
            folder = catalog.dataset_folder(self.request.name)
            if catalog.is_own(self.request.name) or (folder / "builder.py").is_file():
                raise BadConfig(
                    f"a dataset called '{self.request.name}' already exists: {folder}. Choose another --name."
                )
        if self.answers.unit is not None:
            try:
                parse_unit(self.answers.unit)
            except ValueError:
                raise BadConfig(
                    f"--unit {self.answers.unit!r:.40} is not a unit of voltage: V, mV, uV, nV, or a factor before it as in '4.88 uV'."
                ) from None
        if self.answers.format and self.answers.format not in ECHO_FORMATS:
            check_format(self.answers.format)

    # ---- Columns --------------------------------------------------------------------------------------------------

    def _column(self, name: str) -> str | None:
        return named_column(name, self.table)

    def _role(self, role: str) -> str | None:
        return column_of_role(role, self.table, self.answers)

    def _find_roles(self) -> None:
        """Find ids, patients and patient attributes."""
        self.roles = {role: self._role(role) for role in ROLES}
        self._find_ids()
        self.spelled: str | None = None
        if self.roles["patient"] is None or self.answers.patient_is_record:
            self._without_patients()
        if column := self.roles["patient"]:
            self.patients, self.spelled, note = find_patients(
                self.table[column], self.ids, self.answers.patients, self.questions
            )
            self.said += [note] if note else []
        self.sex = self._sex()

    def _find_ids(self) -> None:
        named = self.roles["id"]
        if named is not None and not self.answers.roles.get("id") and self.table[named].duplicated().any():
            self.said.append(f"column '{named}' has a value in several rows, so a recording is known by its file")
            named = None
        named = named or self.file_column
        if named is None or (self.records[0] is not None and named == self.file_column):
            named = None
            if self.answers.in_order:
                self.ids = pd.Series([str(number) for number in range(len(self.table))])
                self.id_column: str | None = None
                return
        if named is None:
            raise BadData("no column has an id for each recording. Name it: --id-column COLUMN.")
        cells = self.table[named]
        if empty := int((cells == "").sum()):
            raise BadData(f"column '{named}': {empty} of {len(cells)} rows have no id. Fill them, or remove the rows.")
        if (repeated := cells[cells.duplicated()]).size:
            raise BadData(
                f"column '{named}': {repeated.nunique()} ids occur in several rows: {first_n(repeated.unique())}. Keep one row of each, or name another --id-column."
            )
        if groups := spellings(cells):
            raise BadData(
                f"column '{named}': {counted(len(groups), 'id')} of recordings in several spellings: {first_n(shown_spellings(groups))}. "
                "Keep one row of each, or name another --id-column."
            )
        self.ids, self.id_column = cells, named

    def _without_patients(self) -> None:
        """Continue without patients if the user allows it; otherwise raise."""
        if self.answers.patient_is_record:
            if self.answers.patients:
                raise BadConfig(
                    f"--patients {self.answers.patients} compares patient ids, which --patient-is-record ignores. Leave one of them out."
                )
            self.roles["patient"] = None
            self.said.append("patients are unknown: each recording counts as its own patient, as every result states")
            return
        self.roles["patient"] = self.questions.ask(
            f"No column has a patient's usual name ({', '.join(NAMES['patient'][:4])}). Which one names the patient?",
            "--patient-column COLUMN; or --patient-is-record if patients are unknown (recorded in every result)",
            list(self.table),
        )

    def _sex(self) -> Sex | None:
        column = self.roles["sex"]
        if column is None:
            return None
        cells = sorted(set(self.table[column]) - {""})
        values = {cell: self.answers.sexes.get(cell, SEXES.get(cell.lower())) for cell in cells}
        unknown = [cell for cell, sex in values.items() if sex is None]
        known = {cell: sex for cell, sex in values.items() if sex is not None}
        if unknown:
            self.said.append(
                f"{column}: {first_n(map(repr, unknown))} count as unknown; define them with --sex-values {unknown[0]}=F ..."
            )
        return Sex(column=column, values=known) if known else None  # type: ignore[arg-type]  # F or M

    # ---- Declared fields ------------------------------------------------------------------------------------------

    def _tasks(self) -> dict[str, DeclaredTask]:
        taken = {column for column in (*self.roles.values(), self.file_column) if column}
        targets = labelling.choose_targets(self.table, taken, self.answers, self.questions)
        tasks = {}
        for name, column in targets.items():
            if task := labelling.declare(name, self.table, column, self.answers, self.questions):
                tasks[name] = task
        for name, columns in self.answers.multilabel.items():
            tasks[name] = labelling.declare_multilabel(
                name, columns, self.table, self.ids, str(self.request.labels), self.answers
            )
        for name, task in tasks.items():
            if task.average_over == "study" and self.roles["study"] is None:
                raise BadConfig(f"--per {name}=study: no column names the study. Give it with --study-column.")
            check_names("column", task.where, [*self.table, *tasks])
            self.said += labelling.doubts(task, self.table)
        return tasks

    def _settings(self) -> DeclaredRecordings:
        """Return recording settings, asking for those that the first readable files do not state."""
        answers = self.answers
        stated = DeclaredRecordings(
            folder=str(self.folder.resolve()), format=self.format, leads=answers.leads, sampling_rate=answers.sampling_rate,
            unit=answers.unit, array=answers.array, records=self.ids_in_file,
        )  # fmt: skip
        if self.modality == "echo":
            if given := [name for name in ("leads", "sampling_rate", "unit") if getattr(answers, name) is not None]:
                raise BadConfig(
                    f"--{given[0].replace('_', '-')} applies to ECGs, but the recordings are echo. Leave it out."
                )
            return stated
        if self.format == "wfdb" or self.questions.open:
            return stated
        one = self._peek(stated)
        if one is None:
            return stated  # The later check of all recordings reports why none can be read.
        width = one.signal.shape[1]
        if answers.leads is None and one.leads is None:
            leads = self.questions.ask(f"Which leads are the {width} channels, in order?", "--leads I,II,III,...")
            stated = stated.model_copy(update={"leads": tuple(leads.split(",")) if leads else None})
        if answers.sampling_rate is None and one.fs is None:
            rate = self.questions.ask("What is the sampling rate in Hz?", "--sampling-rate HZ")
            stated = stated.model_copy(update={"sampling_rate": _rate(rate) if rate else None})
        if answers.unit is None and one.units is None:
            unit = self.questions.ask(
                "What is the unit of the samples?", "--unit V|mV|uV|nV, or a factor before it as in '4.88 uV'"
            )
            stated = stated.model_copy(update={"unit": unit})
        return stated

    def _peek(self, settings: DeclaredRecordings) -> Channels | None:
        """Return the first recording that can be read with the settings in its own file."""
        here = [(file, record) for file, record in zip(self.files, self.records, strict=True) if file is not None]
        for file, record in here[:PEEKED]:
            try:
                return read_channels(self.folder / file, record, settings)
            except BadMedia:
                continue
        return None

    def _declare(self, tasks: dict[str, DeclaredTask], settings: DeclaredRecordings) -> DatasetFile:
        labels = self.request.labels.resolve()
        inside = labels.is_relative_to(self.folder.resolve())
        for column in self.answers.groups:
            self._column(column)
        return DatasetFile(
            schema=1, name=self.request.name, title=self.answers.title or self.request.name, version="1", modality=self.modality,
            recordings=settings,
            labels=Labels(
                file=labels.relative_to(self.folder.resolve()).as_posix() if inside else str(labels),
                id=self.id_column, patient=self.roles["patient"], patient_spellings=self.spelled,  # type: ignore[arg-type]
            ),
            patient_is_record=self.roles["patient"] is None,
            sex=self.sex, age=self.roles["age"], site=self.roles["site"], device=self.roles["device"], view=self.roles["view"],
            groups=self.answers.groups, tasks=tasks,
        )  # fmt: skip

    def _refuse_missing(self) -> None:
        absent = [name for name, file in zip(self.ids, self.files, strict=True) if file is None]
        if not absent:
            return
        count = f"{len(absent)} of {len(self.ids)} rows name no recording in {self.folder}: {first_n(absent)}"
        if not self.answers.allow_missing:
            raise MissingData(
                f"{count}. Copy them there, or continue with --allow-missing (these rows are then left out of the dataset, as every result states)."
            )
        self.said.append(count)

    def _index(self, declared: DatasetFile) -> pd.DataFrame:
        patients = self.ids if self.roles["patient"] is None else self.patients
        named = self.table[self.file_column] if self.file_column else self.ids
        index = pd.DataFrame({"id": list(self.ids), "patient_id": list(patients), "split": ""})
        if study := self.roles["study"]:
            index["study_id"] = list(self.table[study])
        index["file"] = [file or cell or name for file, cell, name in zip(self.files, named, self.ids, strict=True)]
        if any(record is not None for record in self.records):
            index["record"] = self.records
        return index

    def _splits(self, declared: DatasetFile, index: pd.DataFrame, kept: np.ndarray) -> list[str]:
        """Return the split of each recording of the index.

        Args:
            declared: Dataset.
            index: Recordings of the dataset.
            kept: Rows of the table that are in the index, (n,) bool.
        """
        table = self.table[kept]
        column = self.roles["split"]
        if column is not None:
            self.found.append(("splits", f"column '{column}'"))
            return list(splitting.own_splits(table[column]))
        name, task = next(iter(declared.tasks.items()))
        labels = list(target_cells(table, task, self.ids[kept], str(self.request.labels)))
        seed = self.answers.seed
        self.found.append(("splits", f"by patient, stratified by {name}, seed {seed}"))
        return list(splitting.split_patients(list(index["patient_id"]), labels, seed))

    # ---- Messages -------------------------------------------------------------------------------------------------

    def _describe(self, declared: DatasetFile, index: pd.DataFrame) -> None:
        """Fill the findings table."""
        counts = index["split"].value_counts()
        source = f"column '{self.file_column}'" if self.file_column else f"rows of {self.files[0]}"
        patients = (
            "not known"
            if declared.patient_is_record
            else f"{index['patient_id'].nunique()} (column '{self.roles['patient']}')"
        )
        head = [
            ("recordings", f"{len(index)} of {declared.modality}, {declared.recordings.format}, named by {source}"),
            ("ids", f"column '{self.id_column}'" if self.id_column else "row numbers"),
            ("patients", patients),
            *self.found,
            (
                "train, validation, test",
                ", ".join(str(int(counts.get(name, 0))) for name in ("train", "validation", "test")),
            ),
        ]
        facts = [
            (role, f"column '{self.roles[role]}'")
            for role in ("sex", "age", "study", "site", "device", "view")
            if self.roles[role]
        ]
        self.found = [*head, *facts, *(self._task_row(name, task) for name, task in declared.tasks.items())]
        if declared.age:
            filled = self.table[declared.age] != ""
            if odd := int((pd.isna(age_cells(self.table[declared.age])) & filled).sum()):
                self.said.append(f"{declared.age}: {odd} cells are not an age from 0 to 120 and count as unknown")
        for role in ("sex", "age", "site", "device"):
            if (column := self.roles[role]) and (empty := profile(self.table[column])).filled < (
                1 - MUCH_MISSING
            ) * empty.rows:
                self.said.append(f"{column}: {empty.rows - empty.filled} of {empty.rows} cells are empty")

    def _task_row(self, name: str, task: DeclaredTask) -> tuple[str, str]:
        if task.columns:
            what = f"{len(task.columns)} labels: {first_n(task.columns)}" + (
                ", empty cells not measured" if task.unmeasured else ""
            )
        elif task.rules.answer == "number" and task.range:
            what = f"{task.range[0]:g} to {task.range[1]:g} {task.unit}"
        else:
            counts = self.table[task.column].value_counts()
            what = ", ".join(f"{value} ({counts[value]})" for value in (task.classes or ())[:8])
            what += f"; positive: {task.classes[-1]}" if task.rules.two_classes and task.classes else ""
        return f"task {self.request.name}/{name}", f"{task.kind}, {what}"


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadConfig(f"{text!r:.40} is not a sampling rate in Hz. Give a number such as 500.") from None
