"""Propose a dataset: combine a folder of recordings with a table of labels."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.core.errors import (
    BadConfig,
    BadData,
    BadMedia,
    MissingData,
    TableWarning,
    UnknownName,
    counted,
    first_n,
)
from cardiobench.core.registry import check_names, unknown_name
from cardiobench.core.tables import check_thousands
from cardiobench.data import catalog
from cardiobench.data.declared.dataset_file import LEFT_OUT, DatasetFile, DeclaredRecordings, DeclaredTask, Labels, Sex
from cardiobench.data.declared.formats import ECHO_FORMATS, check_format, format_of, read_channels
from cardiobench.data.declared.labels import age_cells, read_labels, target_cells
from cardiobench.data.examine import Examined, Examiner
from cardiobench.data.media.channels import Channels, parse_unit
from cardiobench.data.spec import Modality
from cardiobench.data.spelling import folded_column, shown_spellings, spellings
from cardiobench.extensions.adopt import splits as splitting
from cardiobench.extensions.adopt import tasks as labelling
from cardiobench.extensions.adopt.answers import ROLES, AdoptionRequest, column_of_role, columns_of, without_columns
from cardiobench.extensions.adopt.columns import (
    MUCH_MISSING,
    NAMES,
    bare_numbers,
    profile,
    quoted,
    second_header,
    sex_of,
)
from cardiobench.extensions.adopt.locate import ARRAYS, PEEKED, Located, candidates, is_echo, locate
from cardiobench.extensions.adopt.patients import find_patients, without_patient
from cardiobench.extensions.adopt.questions import Questions
from cardiobench.extensions.adopt.recordings import (
    Checked,
    check_recordings,
    check_unit,
    describe_leads,
    left_out_rows,
    refuse_unreadable,
)

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
Report = Callable[[Sequence[tuple[str, str]], Sequence[str]], None]
SPREADSHEET_ERRORS = ("#REF!", "#N/A", "#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!")
LABELS = ("--target", "--multilabel")
OF_RECORDINGS = {
    "--format": "format", "--leads": "leads", "--sampling-rate": "sampling_rate", "--unit": "unit", "--array": "array",
    "--records": "records", "--files": "files", "--file-column": "file_column", "--record-column": "record_column", "--in-order": "in_order",
    "--allow-missing": "allow_missing", "--allow-unreadable": "allow_unreadable",
}  # fmt: skip
"""Mapping from flag to answer, for answers about recordings."""


@dataclass
class Proposal:
    """A dataset proposed for a folder.

    Attributes:
        declared: Content of `dataset.yaml`.
        index: Content of `splits.csv`.
        left_out: Content of `left_out.csv`: id and reason of the rows of the table that are not part of the dataset.
        examined: Remarks on the recordings.
    """

    declared: DatasetFile
    index: pd.DataFrame
    left_out: pd.DataFrame
    examined: Examined


def propose(request: AdoptionRequest, questions: Questions, progress: Progress, report: Report) -> Proposal:
    """Propose a dataset for a folder and a table without writing files.

    Args:
        request: Folder, labels and the user's answers.
        questions: Prompt for facts that the files do not state, and problems found before.
        progress: Function that creates a progress bar from a label and a total.
        report: Function that shows what was found, each (what, it is), and the warnings; also called before a refusal.

    Raises:
        CardioBenchError: The request has problems, all listed in one message.
    """
    return _Adoption(request, questions, progress, report).run()


class _Adoption:
    """Steps of one adoption; each gathers its problems, and the later ones work with what is known."""

    def __init__(self, request: AdoptionRequest, questions: Questions, progress: Progress, report: Report):
        self.request, self.answers, self.questions, self.progress = request, request.answers, questions, progress
        self.report = report
        self.folder = request.folder
        self.found: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.dropped: list[str] = []

    def run(self) -> Proposal:
        """Return the proposed dataset."""
        problems = self.questions
        self._check_answers()
        table = self._read_table()
        if table is None:
            problems.check()
            raise AssertionError("a table that cannot be read is a problem")
        self.table = table
        self._check_columns()
        self._check_errors()
        located = self._locate()
        self._find_roles()
        self._drop_rows()
        self._find_patients()
        tasks = self._tasks()
        self.said += [f"the task of '{name}' is called '{task}'" for name, task in self.answers.renamed.items()]
        self._check_cells()
        self._check_numbers(tasks)
        settings, incomplete = self._settings(located) if located is not None else (None, frozenset())
        if located is None:
            self._ask_about_folder()
        with problems.gather():
            self._refuse_missing(located)
        index = self._index(located)
        checked = self._read_recordings(index, settings, incomplete)
        left_out = left_out_rows(index["id"], self._present(located), dict(checked.unreadable), self.dropped)
        kept = ~index["id"].isin(left_out["id"]).to_numpy()
        if len(left_out) and not problems.problems:
            self.said.append(f"{len(left_out)} rows are left out of the dataset, as {LEFT_OUT} and every result state")
        index = index[kept].reset_index(drop=True)
        self._split(tasks, index, kept, checked)
        self._describe(located, tasks, index, checked)
        self.report(self.found, self.said)
        problems.check()
        declared = self._declare(tasks, settings, left_out=bool(len(left_out)))
        return Proposal(declared, index, left_out, checked.examined)

    # ---- Request --------------------------------------------------------------------------------------------------

    def _check_answers(self) -> None:
        """Find invalid answers before any file is read."""
        answers, gather = self.answers, self.questions.gather
        with gather():
            if self.request.name in catalog.list_datasets():
                folder = catalog.dataset_folder(self.request.name)
                if catalog.is_own(self.request.name) or (folder / "builder.py").is_file():
                    raise BadConfig(
                        f"a dataset called '{self.request.name}' already exists: {folder}. Choose another --name."
                    )
        with gather():
            if answers.unit is not None:
                try:
                    parse_unit(answers.unit)
                except ValueError:
                    raise BadConfig(
                        f"--unit {answers.unit!r:.40} is not a unit of voltage: V, mV, uV, nV, or a factor before it as in '4.88 uV'."
                    ) from None
        with gather():
            if answers.format and answers.format not in ECHO_FORMATS:
                check_format(answers.format)
        with gather():
            if self.folder is not None and not self.folder.is_dir():
                raise MissingData(f"there is no folder {self.folder}. Check the path.")
        with gather():
            given = [flag for flag, name in OF_RECORDINGS.items() if getattr(answers, name)]
            if self.folder is None and given:
                raise BadConfig(
                    f"{', '.join(given)}: {'they describe' if len(given) > 1 else 'it describes'} recordings, but --no-recordings says that there are none. Leave one out."
                )

    def _read_table(self) -> pd.DataFrame | None:
        """Return the table of labels; None if it cannot be read, which is a problem."""
        with warnings.catch_warnings(record=True) as notes, self.questions.gather():
            warnings.simplefilter("always", TableWarning)
            table = read_labels(
                self.request.labels,
                sheet=self.answers.sheet,
                encoding=self.answers.encoding,
                faults=self.questions.problems,
            )
            if "" in table.columns:
                raise BadData(f"{self.request.labels} has a column without a name. Name it, or remove it.")
            self.said += [str(note.message) for note in notes if issubclass(note.category, TableWarning)]
            if (column := second_header(table)) is None:
                return table
            self.questions.problems.append(
                BadData(
                    f"{self.request.labels} seems to have two rows of names: the first cell of the numbers in '{column}' is "
                    f"{table[column].iloc[0]!r:.40}. Keep one row of names."
                )
            )
            facts, table = table.attrs, table.iloc[1:].reset_index(drop=True)
            table.attrs = facts
            return table
        return None

    def _check_columns(self) -> None:
        """Find columns that the user named and the table lacks, and continue without them."""
        absent = {}
        for column, flag in columns_of(self.answers).items():
            with self.questions.gather():
                if column not in self.table:
                    absent[column] = flag
                    problem = unknown_name("column", column, list(self.table))
                    raise UnknownName(f"{flag}: {problem.args[0]}", *problem.args[1:])
        self.named_roles = {role for role, column in self.answers.roles.items() if column in absent}
        self.lost_tasks = any(
            column in absent
            for column in (
                *self.answers.targets.values(),
                *(one for some in self.answers.multilabel.values() for one in some),
            )
        )
        self.answers = without_columns(self.answers, absent)

    def _locate(self) -> Located | None:
        """Find the recordings; None if there are none, or if they are not found, which is a problem."""
        nobody: list[str | None] = [None] * len(self.table)
        self.files, self.records, self.file_column = nobody, nobody, None
        self.modality: Modality = "echo" if self.answers.modality == "echo" else "ecg"
        if self.folder is None:
            if not self.answers.modality:
                self.said.append("the dataset is one of ECGs, unless you give --modality echo")
            return None
        found = None
        with self.questions.gather():
            if not self.folder.is_dir():
                return None  # A problem already.
            found = locate(replace(self.request, answers=self.answers), self.table, self.questions)
        if found is None:
            return None
        self.files, self.records, self.file_column = found.files, found.records, found.column
        self.said += [found.note] if found.note else []
        self.modality = "echo" if set(found.formats) & set(ECHO_FORMATS) else "ecg"
        with self.questions.gather():
            if self.answers.modality and self.answers.modality != self.modality:
                named = first_n([name for name in self.files if name], 2)
                raise BadConfig(
                    f"--modality {self.answers.modality}: the files in the table are {self.modality} ({named}). Leave the flag out, or give another table."
                )
        if found.others:
            self.said.append(f"no row names {counted(found.others, 'recording')} in {self.folder}")
        return found

    # ---- Columns --------------------------------------------------------------------------------------------------

    def _role(self, role: str) -> str | None:
        return column_of_role(role, self.table, self.answers)

    def _find_roles(self) -> None:
        """Find the columns of all roles, and the ids of the recordings."""
        self.roles = {role: self._role(role) for role in ROLES}
        self.ids = pd.Series([f"row {number}" for number in range(1, len(self.table) + 1)])
        self.id_column: str | None = None
        with self.questions.gather():
            self._find_ids()

    def _drop_rows(self) -> None:
        """Leave out rows without a patient if the user allows it."""
        if "patient" not in self.answers.drop_without:
            return
        column = self.roles["patient"]
        with self.questions.gather():
            if self.answers.patient_is_record:
                raise BadConfig("--drop-without patient contradicts --patient-is-record. Leave one of them out.")
        if column is None or self.answers.patient_is_record:
            return
        empty = without_patient(folded_column(self.table[column]))
        if empty.all():
            with self.questions.gather():
                raise BadConfig(
                    f"--drop-without patient leaves no row: column '{column}' names no patient. Remove this flag, and give "
                    "--patient-is-record if patients are unknown."
                )
            return
        self.dropped = list(self.ids[empty])
        facts, kept = self.table.attrs, ~empty
        self.table = self.table[kept].reset_index(drop=True)
        self.table.attrs = facts
        self.ids = self.ids[kept].reset_index(drop=True)
        self.files = [file for file, keep in zip(self.files, kept, strict=True) if keep]
        self.records = [record for record, keep in zip(self.records, kept, strict=True) if keep]
        if self.dropped:
            self.said.append(f"{len(self.dropped)} rows have no patient: {first_n(self.dropped)}")

    def _find_patients(self) -> None:
        """Find the patients and their sex."""
        self.spelled: str | None = None
        self.patients: pd.Series | None = None
        with self.questions.gather():
            if self.roles["patient"] is None or self.answers.patient_is_record:
                self._without_patients()
            if column := self.roles["patient"]:
                self.patients, self.spelled, note = find_patients(
                    self.table[column], self.ids, self.answers.patients, self.questions
                )
                self.said += [note] if note else []
        self.sex: Sex | None = None
        with self.questions.gather():
            self.sex = self._sex()

    def _find_ids(self) -> None:
        named = self.roles["id"]
        if named is not None and not self.answers.roles.get("id") and self.table[named].duplicated().any():
            self.said.append(f"column '{named}' has a value in several rows, so a recording is known by its file")
            named = None
        if named is None and "id" in self.named_roles:
            return  # A problem already.
        named = named or self.file_column
        if named is None and self.folder is not None and self.questions.problems and not self.answers.in_order:
            return  # The recordings were not found, which is a problem already.
        if named is None or (self.records[0] is not None and named == self.file_column):
            named = None
            if self.answers.in_order:
                self.ids = pd.Series([str(number) for number in range(len(self.table))])
                return
        if named is None:
            unique = [name for name in self.table if (self.table[name] != "").all() and self.table[name].is_unique]
            hint = f" Each row has another value in {first_n(map(repr, unique))}." if unique else ""
            raise BadData(f"no column has an id for each recording. Name it: --id-column COLUMN.{hint}")
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
        if "patient" in self.named_roles:
            return  # A problem already.
        doubtful = bare_numbers(self.table)
        maybe = f" {first_n(doubtful)} may number patients or rows." if doubtful else ""
        self.roles["patient"] = self.questions.ask(
            f"No column has a patient's usual name ({', '.join(NAMES['patient'][:4])}).{maybe} Which one names the patient?",
            "--patient-column COLUMN; or --patient-is-record if patients are unknown (recorded in every result)",
            list(self.table),
        )

    def _sex(self) -> Sex | None:
        column, stated = self.roles["sex"], self.answers.sexes
        if column is None:
            if stated and "sex" not in self.named_roles:
                raise BadConfig(
                    f"--sex-values {' '.join(f'{cell}={sex}' for cell, sex in stated.items())}: no column has a usual name of "
                    "the sex. Name it: --sex-column COLUMN."
                )
            return None
        cells = sorted(set(self.table[column]) - {""})
        check_names(f"value in '{column}' (--sex-values)", stated, cells)
        values = sex_of(cells) | dict(stated)
        if unknown := [cell for cell in cells if cell not in values]:
            self.said.append(
                f"{column}: {first_n(map(repr, unknown))} count as unknown; define them with --sex-values {unknown[0]}=F|M ..."
            )
        return Sex(column=column, values=values) if values else None  # type: ignore[arg-type]  # F or M

    # ---- Declared fields ------------------------------------------------------------------------------------------

    def _tasks(self) -> dict[str, DeclaredTask]:
        """Return the tasks without problems."""
        taken = {column for column in (*self.roles.values(), self.file_column) if column}
        gather, answers = self.questions.gather, self.answers
        targets: dict[str, str] = {}
        if not self.lost_tasks or answers.targets or answers.multilabel:
            with gather():
                targets = labelling.choose_targets(self.table, taken, answers, self.questions)
        tasks = {}
        for name, column in targets.items():
            with gather():
                if task := labelling.declare(name, self.table, column, answers, self.questions):
                    tasks[name] = task
        for name, columns in answers.multilabel.items():
            with gather():
                tasks[name] = labelling.declare_multilabel(
                    name, columns, self.table, self.ids, str(self.request.labels), answers
                )
        for name, task in tasks.items():
            with gather():
                if task.average_over == "study" and self.roles["study"] is None and "study" not in self.named_roles:
                    raise BadConfig(f"--per {name}=study: no column names the study. Give it with --study-column.")
            with gather():
                check_names("column", task.where, [*self.table, *tasks])
            self.said += labelling.doubts(name, task, self.table)
        return tasks

    def _check_cells(self) -> None:
        """Find ids that a spreadsheet changed."""
        path, changed = self.request.labels, self.table.attrs.get("changed", {})
        for column in [name for name in self.table if name in self._keys()]:
            with self.questions.gather():
                if column in changed:
                    raise BadData(
                        f"{path}, column '{column}': {changed[column]}. Excel makes them of ids that are typed; format the "
                        "column as text and enter the ids again."
                    )

    def _check_numbers(self, tasks: Mapping[str, DeclaredTask]) -> None:
        """Find columns of numbers in which points may be thousands marks."""
        numbers = [task.column for task in tasks.values() if task.rules.answer == "number" and task.column]
        for column in (*numbers, *filter(None, [self.roles["age"]])):
            with self.questions.gather():
                check_thousands(self.table, [column], str(self.request.labels))

    def _check_errors(self) -> None:
        """Find cells that a spreadsheet could not compute, and continue as if those of labels were empty."""
        keys = {self._role(role) for role in ("id", "patient", "study", "split")}
        flags = columns_of(self.answers)
        for column in [name for name in self.table if name in keys or flags.get(name) in LABELS]:
            wrong = self.table[column].isin(SPREADSHEET_ERRORS)
            if not wrong.any():
                continue
            shown = [f"row {number + 1} ({self.table[column][number]})" for number in np.flatnonzero(wrong)]
            self.questions.problems.append(
                BadData(
                    f"{self.request.labels}, column '{column}': {counted(len(shown), 'cell')} with an error of the spreadsheet: "
                    f"{first_n(shown)}. Correct or empty them."
                )
            )
            if column not in keys:
                self.table[column] = self.table[column].mask(wrong, "")

    def _keys(self) -> set[str | None]:
        """Return the columns that say which recording a row is, and with which others it belongs."""
        return {self.id_column, self.file_column, *(self.roles[role] for role in ("patient", "study", "split"))}

    def _used(self, tasks: Mapping[str, DeclaredTask]) -> list[str]:
        """Return the used columns in the order of the table."""
        used = {
            self.id_column,
            self.file_column,
            self.answers.record_column,
            *self.roles.values(),
            *self.answers.groups,
        }
        for task in tasks.values():
            used |= {task.column, *(task.columns or ()), *task.where}
        return [name for name in self.table if name in used]

    def _settings(self, located: Located) -> tuple[DeclaredRecordings, frozenset[str]]:
        """Return recording settings, asking for those that the first readable files do not state.

        Returns:
            The settings; and the formats for which a setting is still unknown.
        """
        here = [(file, record) for file, record in zip(self.files, self.records, strict=True) if file is not None]
        return self._settings_of(located.formats, located.ids, here)

    def _ask_about_folder(self) -> None:
        """Ask for what the files of a folder do not state although no row names them, so that one message has all questions."""
        if self.folder is None or not self.folder.is_dir():
            return
        files = [name for name in candidates(self.request, self.folder) if not is_echo(self.folder, name)]
        form = self.answers.format
        formats = (form,) if form else tuple(sorted({format_of(name) for name in files}))
        if files and form not in ECHO_FORMATS and self.answers.modality != "echo":
            self._settings_of(formats, self.answers.records, [(name, None) for name in files])

    def _settings_of(
        self, formats: tuple[str, ...], ids: str | None, here: Sequence[tuple[str, str | None]]
    ) -> tuple[DeclaredRecordings, frozenset[str]]:
        """Return recording settings as `_settings`.

        Args:
            formats: Formats of the files.
            ids: Name of the HDF5 dataset of ids; None for none.
            here: Files, each with the id of a record in it or None.
        """
        assert self.folder is not None
        answers = self.answers
        stated = DeclaredRecordings(
            folder=str(self.folder.resolve()), format=formats[0] if len(formats) == 1 else formats, leads=answers.leads,
            sampling_rate=answers.sampling_rate, unit=answers.unit, array=answers.array, records=ids,
        )  # fmt: skip
        if self.modality == "echo":
            given = [name for name in ("leads", "sampling_rate", "unit") if getattr(answers, name) is not None]
            with self.questions.gather():
                if given:
                    raise BadConfig(
                        f"--{given[0].replace('_', '-')} applies to ECGs, but the recordings are echo. Leave it out."
                    )
            return stated, frozenset()
        first = {
            form: one for form in formats if form != "wfdb" and (one := self._peek(stated, form, here)) is not None
        }
        facts: list[tuple[str, str, str, str]] = [
            ("leads", "leads", "Which leads are the {width} channels, in order?", "--leads I,II,III,..."),
            ("sampling_rate", "fs", "What is the sampling rate in Hz?", "--sampling-rate HZ"),
            (
                "unit",
                "units",
                "What is the unit of the samples?",
                "--unit V|mV|uV|nV, or a factor before it as in '4.88 uV'",
            ),
        ]
        incomplete: set[str] = set()
        for setting, fact, question, flag in facts:
            lacking = [form for form, one in first.items() if getattr(one, fact) is None]
            if not lacking or getattr(answers, setting) is not None:
                continue
            which = f" ({', '.join(lacking)})" if len(formats) > 1 else ""
            asked = question.format(width=first[lacking[0]].signal.shape[1])
            text = self.questions.ask(f"{asked[:-1]}{which}?", flag)
            if text is None:
                incomplete |= set(lacking)
                continue
            value = (
                tuple(text.split(",")) if setting == "leads" else _rate(text) if setting == "sampling_rate" else text
            )
            stated = stated.model_copy(update={setting: value})
        if ids is None and here[0][1] is None and set(formats) <= set(ARRAYS) and self.questions.open:
            incomplete |= set(formats)
        return stated, frozenset(incomplete)

    def _peek(self, settings: DeclaredRecordings, form: str, here: Sequence[tuple[str, str | None]]) -> Channels | None:
        """Return the first recording of a format that can be read with the settings in its own file."""
        assert self.folder is not None
        fitting = [one for one in here if isinstance(settings.format, str) or format_of(one[0]) == form]
        for file, record in fitting[:PEEKED]:
            try:
                return read_channels(self.folder / file, record, settings)
            except BadMedia:
                continue
        return None

    def _read_recordings(
        self, index: pd.DataFrame, settings: DeclaredRecordings | None, incomplete: Collection[str]
    ) -> Checked:
        """Read the recordings, and return what was found; nothing if there are none."""
        if settings is None or self.folder is None:
            return Checked(("",) * len(index), (), {}, (), {}, Examiner("").result())
        ids, present = list(index["id"]), sum(file is not None for file in self.files)
        checked = Checked(("",) * len(index), (), {}, (), {}, Examiner("").result())
        with self.questions.gather(), self.progress("recordings", len(index)) as step:
            checked = check_recordings(self.folder, ids, self.files, self.records, settings, step, incomplete)
        with self.questions.gather():
            check_unit(checked, settings)
        self.said += filter(None, (describe_leads(checked), checked.examined.sentence()))
        with self.questions.gather():
            note = refuse_unreadable(checked, present, allowed=self.answers.allow_unreadable)
            self.said += [note] if note else []
        return checked

    def _present(self, located: Located | None) -> list[str | None]:
        """Return the file of each row; a text for each row if nothing is known about the recordings."""
        return list(self.files) if located is not None else [""] * len(self.ids)

    def _split(
        self, tasks: Mapping[str, DeclaredTask], index: pd.DataFrame, kept: np.ndarray, checked: Checked
    ) -> None:
        """Fill the splits of the index, and check them.

        Args:
            tasks: Tasks of the dataset.
            index: Recordings of the dataset.
            kept: Rows of the table that are in the index, (n,) bool.
            checked: Findings in the recordings of all rows.
        """
        table, column = self.table[kept], self.roles["split"]
        known = self.patients is not None or self.answers.patient_is_record
        with self.questions.gather():
            if column is not None:
                self.found.append(("splits", f"column '{column}'"))
                index["split"] = list(splitting.own_splits(table[column]))
            elif known and tasks:
                name, task = next(iter(tasks.items()))
                labels = list(target_cells(table, task, self.ids[kept], str(self.request.labels)))
                seed = self.answers.seed
                self.found.append(("splits", f"by patient, stratified by {name}, seed {seed}"))
                index["split"] = list(splitting.split_patients(list(index["patient_id"]), labels, seed))
            else:
                return
            if known and (note := splitting.check_splits(index, np.array(checked.content, dtype=object)[kept])):
                self.said.append(note)

    def _declare(
        self, tasks: dict[str, DeclaredTask], settings: DeclaredRecordings | None, *, left_out: bool
    ) -> DatasetFile:
        labels = self.request.labels.resolve()
        inside = self.folder is not None and labels.is_relative_to(self.folder.resolve())
        facts = self.table.attrs
        encoding = facts.get("encoding")
        return DatasetFile(
            schema=1, name=self.request.name, title=self.answers.title or self.request.name, version="1", modality=self.modality,
            recordings=settings,
            labels=Labels(
                file=labels.relative_to(self.folder.resolve()).as_posix() if self.folder and inside else str(labels),
                sheet=facts.get("sheet"), encoding=None if encoding in (None, "utf-8-sig", "utf-16") else encoding,
                id=self.id_column, patient=self.roles["patient"], patient_spellings=self.spelled,  # type: ignore[arg-type]
            ),
            left_out=LEFT_OUT if left_out else None,
            patient_is_record=self.roles["patient"] is None,
            sex=self.sex, age=self.roles["age"], site=self.roles["site"], device=self.roles["device"], view=self.roles["view"],
            groups=self.answers.groups, tasks=tasks,
        )  # fmt: skip

    def _refuse_missing(self, located: Located | None) -> None:
        absent = [name for name, file in zip(self.ids, self.files, strict=True) if file is None]
        if not absent or located is None:
            return
        count = f"{len(absent)} of {len(self.ids)} rows name no recording in {self.folder}: {first_n(absent)}"
        if not self.answers.allow_missing:
            raise MissingData(
                f"{count}. Copy them there, or continue with --allow-missing (these rows are then left out of the dataset, as every result states)."
            )
        self.said.append(count)

    def _index(self, located: Located | None) -> pd.DataFrame:
        patients = self.ids if self.patients is None else self.patients
        named = self.table[self.file_column] if self.file_column else self.ids
        index = pd.DataFrame({"id": list(self.ids), "patient_id": list(patients), "split": ""})
        if study := self.roles["study"]:
            index["study_id"] = list(self.table[study])
        if self.folder is not None:
            index["file"] = [file or cell or name for file, cell, name in zip(self.files, named, self.ids, strict=True)]
        if any(record is not None for record in self.records):
            index["record"] = self.records
        return index

    # ---- Messages -------------------------------------------------------------------------------------------------

    def _describe(
        self, located: Located | None, tasks: Mapping[str, DeclaredTask], index: pd.DataFrame, checked: Checked
    ) -> None:
        """Fill the table of what was found and what was not used."""
        head = [("recordings", self._recordings_row(located))]
        if self.id_column or located:
            head.append(("ids", f"column '{self.id_column}'" if self.id_column else "row numbers"))
        if self.patients is not None:
            head.append(("patients", f"{index['patient_id'].nunique()} (column '{self.roles['patient']}')"))
        elif self.answers.patient_is_record:
            head.append(("patients", "not known"))
        if checked.rates:
            unit = "Hz" if self.modality == "ecg" else "frames per second"
            self.found.append(("rate", f"{first_n([f'{rate:g}' for rate in checked.rates])} {unit}"))
        counts = index["split"].value_counts()
        if (index["split"] != "").any():
            sizes = ", ".join(str(int(counts.get(name, 0))) for name in ("train", "validation", "test"))
            self.found.append(("train, validation, test", sizes))
        facts = [
            (role, f"column '{column}'{self._meaning(role)}")
            for role in ("sex", "age", "study", "site", "device", "view")
            if (column := self.roles[role])
        ]
        used = self._used(tasks)
        rest = [(f"task {self.request.name}/{name}", self._task_text(task)) for name, task in tasks.items()]
        unused = [name for name in self.table if name not in used]
        rest += [("columns not used", first_n(map(quoted, unused), 30))] if unused else []
        self.found = [*head, *self.found, *facts, *rest]
        if age := self.roles["age"]:
            filled = self.table[age] != ""
            odd = self.table[age][pd.isna(age_cells(self.table[age])) & filled].value_counts(sort=False)
            if len(odd):
                shown = first_n([f"{cell} ({count})" for cell, count in odd.items()])
                self.said.append(f"{age}: {odd.sum()} cells are not an age from 0 to 120 and count as unknown: {shown}")
        for role in ("sex", "age", "site", "device"):
            if (column := self.roles[role]) and (empty := profile(self.table[column])).filled < (
                1 - MUCH_MISSING
            ) * empty.rows:
                self.said.append(f"{column}: {empty.rows - empty.filled} of {empty.rows} cells are empty")

    def _recordings_row(self, located: Located | None) -> str:
        if self.folder is None:
            return f"none (--no-recordings); {counted(len(self.ids), 'row')}"
        if located is None:
            return "not found"
        source = f"column '{self.file_column}'" if self.file_column else f"rows of {self.files[0]}"
        named = [file for file in self.files if file is not None]
        form = located.formats[0]
        if len(located.formats) > 1:
            counts = Counter(format_of(file) for file in named)
            form = ", ".join(f"{name} ({counts[name]})" for name in located.formats)
        return f"{len(named)} of {self.modality}, {form}, named by {source}"

    def _meaning(self, role: str) -> str:
        """Return how the cells of sex are understood, and the range of the ages."""
        if role == "sex" and self.sex is not None:
            return f": {', '.join(f'{cell} = {sex}' for cell, sex in [*self.sex.values.items()][:8])}"
        if role == "age" and (column := self.roles["age"]) and np.isfinite(ages := age_cells(self.table[column])).any():
            return f": {np.nanmin(ages):g} to {np.nanmax(ages):g} years"
        return ""

    def _task_text(self, task: DeclaredTask) -> str:
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
        return f"{task.kind}, {what}"


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadConfig(f"{text!r:.40} is not a sampling rate in Hz. Give a number such as 500.") from None
