"""Adopt a hospital's folder in one go: five formats, a German sheet, and every fault of a request in one message."""

import datetime
import re
import shlex
import unicodedata

import numpy as np
import openpyxl
import pandas as pd
import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.core.errors import MissingData
from cardiobench.data.media import LEADS
from cardiobench.data.open import open_dataset
from cardiobench.extensions.adopt.columns import NAMES, role_column, second_header, sentinels, sex_of, split_of
from tests.data.ecg_files import write_csv
from tests.data.vendor_files import muse
from tests.extensions.adopt.folders import WRITERS, adopt, bundled, write_hospital, write_labels

STATED = ("--target", "Schenkelblock", "--positive", "schenkelblock=ja", "--sampling-rate", "100", "--unit", "mV")
KNOWN = {"format": ["csv", "dicom", "edf", "wfdb", "xml"], "sampling_rate": 100.0, "unit": "mV", "leads": None}


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Return (table, folder) of 30 ECGs in five formats."""
    folder = tmp_path_factory.mktemp("hospital") / "aufnahmen"
    return write_hospital(folder, 30), folder


def said_by(capsys):
    read = capsys.readouterr()
    assert "Traceback" not in read.err
    return " ".join((read.out + read.err).split())


def adopt_with(table, folder, place, *flags):
    """Write the table of labels to a CSV and adopt a folder with it, below a folder for both."""
    table.to_csv(place / "labels.csv", index=False)
    return adopt(folder, place / "labels.csv", place / "own", *flags)


@pytest.mark.slow
def test_folder_of_five_formats_is_adopted_and_scored(tmp_path, capsys):
    table = write_hospital(tmp_path / "aufnahmen")
    table.to_excel(tmp_path / "befunde.xlsx", index=False)
    request = (tmp_path / "aufnahmen", tmp_path / "befunde.xlsx", tmp_path / "own")
    assert adopt(*request, "--target", "Schenkelblock") == 2
    said = said_by(capsys)
    for flag in ("--positive schenkelblock=ja|nein", "rate in Hz (csv)? --sampling-rate HZ", "samples (csv)? --unit"):
        assert flag in said
    assert "columns not used" in said and not (tmp_path / "own").exists()
    assert adopt(*request, *STATED) == 0
    out = ["--output-dir", str(tmp_path / "results")]
    model = ["--model", "cardiobench/ecg-morphology", "--protocols", "probe"]
    assert main(["eval", *model, "--tasks", "mine/schenkelblock", *out]) == 0
    assert re.search(r"mine/schenkelblock .* f1_macro", said_by(capsys))


def test_formats_sheet_and_german_columns_are_adopted_together(hospital, tmp_path, capsys):
    table, folder = hospital
    table.to_excel(tmp_path / "befunde.xlsx", index=False, sheet_name="Befunde")
    assert adopt(folder, tmp_path / "befunde.xlsx", tmp_path / "own", *STATED) == 0
    said = said_by(capsys)
    assert "30 of ecg, csv (6), dicom (6), edf (6), wfdb (6), xml (6)" in said
    assert "sex column 'Geschlecht': männlich = M, weiblich = F" in said
    declared = yaml.safe_load((tmp_path / "own" / "mine" / "dataset.yaml").read_text("utf-8"))
    assert {key: declared["recordings"][key] for key in KNOWN} == KNOWN
    assert declared["labels"]["sheet"] == "Befunde" and declared["labels"]["patient"] == "Patientennummer"
    dataset = open_dataset("mine")
    original, signals = bundled(30)
    for number in range(30):  # Two by two, all formats give the ECG that was written.
        assert np.abs(dataset.recording(number).signal - signals[number]).max() < 0.01
        assert dataset.frame["sex"].iloc[number] == original["sex"].iloc[number]
        assert dataset.frame["age"].iloc[number] == original["age"].iloc[number]


def test_all_problems_of_a_request_are_in_one_message(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table.loc[[3, 9], "Patientennummer"] = ""
    table.loc[[10, 11], "Patientennummer"] = "P7", "p07"
    table.loc[5, "Datei"] = "fehlt"
    table.loc[4, "Schenkelblock"] = "#REF!"
    table.to_csv(tmp_path / "many.csv", index=False, sep=";", encoding="cp1252")
    flags = ["--target", "Schenkelblock", "Befund", "--range", "ef=a", "--sex-values", "divers=M", "--group", "Station"]
    before = sorted(tmp_path.rglob("*"))
    assert adopt(folder, tmp_path / "many.csv", tmp_path / "own", *flags, "--unit", "volts", "--name", "Mine") == 2
    said = said_by(capsys)
    for part in (
        "many.csv is not UTF-8, so it is read as cp1252 (Windows)",
        "9 problems of the request; nothing was written",
        "--name 'Mine'",
        "--range 'a': expected LOW:HIGH",
        "--unit 'volts' is not a unit of voltage",
        "--group: no column 'Station'",
        "--target: no column 'Befund'",
        "--drop-without patient",
        "--allow-missing",
        "no value in 'Geschlecht' (--sex-values) 'divers'",
        "--sampling-rate HZ",
        "--patients same; or --patients as-written",
        "columns not used",
    ):
        assert part in said, part
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_without_patient_are_dropped_on_request_and_counted(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table.loc[[3, 9], "Patientennummer"] = "", " "
    assert adopt_with(table, folder, tmp_path, *STATED) == 2
    assert "2 of 30 rows have no patient: ekg003, ekg009" in said_by(capsys)
    assert adopt_with(table, folder, tmp_path, *STATED, "--drop-without", "patient") == 0
    dataset = open_dataset("mine")
    assert dataset.left_out == 2 and len(dataset.frame) == 28
    assert dict(dataset.table.excluded) == {"no patient in the labels at adoption": ("ekg003", "ekg009")}


def test_words_for_an_unknown_patient_are_no_patients(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table.loc[[3, 9, 11], "Patientennummer"] = "", "unbekannt", "k.A."
    table.to_csv(tmp_path / "labels.csv", index=False)
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *STATED) == 2
    assert "3 of 30 rows have no patient (empty cells, or 'k.A.', 'unbekannt')" in said_by(capsys)
    table["Patientennummer"] = "unbekannt"
    table.to_csv(tmp_path / "none.csv", index=False)
    assert adopt(folder, tmp_path / "none.csv", tmp_path / "own", *STATED, "--drop-without", "patient") == 2
    assert "--drop-without patient leaves no row: column 'Patientennummer' names no patient" in said_by(capsys)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--range", "schenkelblock=0:1"), "--range of 'schenkelblock' are for numbers"),
        (("--label-unit", "schenkelblock=mV"), "--label-unit of 'schenkelblock' are for numbers"),
    ],
)
def test_flags_of_numbers_do_not_fit_classes(hospital, tmp_path, capsys, flags, said):
    table, folder = hospital
    assert adopt_with(table, folder, tmp_path, *STATED, *flags) == 2
    assert said in said_by(capsys)


def test_positive_value_of_several_classes_is_refused(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table.loc[[3, 9], "Schenkelblock"] = "unklar"
    assert adopt_with(table, folder, tmp_path, *STATED) == 2
    said = said_by(capsys)
    assert "column 'Schenkelblock' has 3 different values and not two: ja, nein, unklar" in said
    assert "leave them out with --missing schenkelblock=CELL,CELL" in said
    assert adopt_with(table, folder, tmp_path, *STATED, "--missing", "schenkelblock=unklar") == 0
    assert open_dataset("mine").frame["schenkelblock"].isna().sum() == 2


def test_sex_values_need_a_column_and_a_cell(hospital, tmp_path, capsys):
    table, folder = hospital
    table.drop(columns="Geschlecht").to_csv(tmp_path / "labels.csv", index=False)
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *STATED, "--sex-values", "w=F") == 2
    assert "--sex-values w=F: no column has a usual name of the sex. Name it: --sex-column" in said_by(capsys)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Geschlecht", "sex"), ("Sexe", "sex"), ("SEXO", "sex"), ("Sesso", "sex"), ("Género", "sex"), ("Gender", "sex"),
        ("Alter (Jahre)", "age"), ("Âge", "age"), ("Edad", "age"), ("Età", "age"), ("Idade", "age"), ("age", "age"),
        ("Alter in Jahren", "age"), ("Patienten-ID", "patient"), ("N° patient", "patient"), ("Pat.-Nr.", "patient"),
        ("Numéro de patient", "patient"), ("ID paciente", "patient"), ("Codice paziente", "patient"), ("Alterung", None),
        ("Numéro patient", "patient"), ("Doente", "patient"), ("N.º doente", "patient"), ("Nº paciente", "patient"),
        ("N.º", None), ("Geschl.", "sex"), ("Alter (J.)", "age"), ("Sexe [F/H]", "sex"), ("EF (age)", None), ("NHC", "patient"), ("IPP", "patient"),
    ],
)  # fmt: skip
def test_usual_names_in_six_languages(name, role):
    found = [one for one in NAMES if role_column(one, pd.DataFrame({name: ["1"]}), ()) is not None]
    assert found == ([role] if role else [])


@pytest.mark.parametrize(
    ("cells", "meaning"),
    [
        (["weiblich", "männlich", "divers"], {"weiblich": "F", "männlich": "M"}),
        (["W", "M"], {"W": "F", "M": "M"}),
        (["Féminin", "Masculin"], {"Féminin": "F", "Masculin": "M"}),
        (["Mujer", "Varón"], {"Mujer": "F", "Varón": "M"}),
        (["donna", "uomo"], {"donna": "F", "uomo": "M"}),
        (["H", "M"], {}),  # Spanish: hombre, mujer.
        (["V", "M"], {}),
        (["H", "F"], {"H": "M", "F": "F"}),  # French: homme, femme.
        (["V", "F", "?"], {"V": "M", "F": "F"}),
        (["H", "F", "M"], {"F": "F"}),
        (["H"], {}),
        (["0", "1"], {}),
    ],
)
def test_sex_is_known_only_where_it_is_clear(cells, meaning):
    assert sex_of(cells) == meaning


# ---- Cells --------------------------------------------------------------------------------------------------------


def test_cells_beside_numbers_are_in_the_first_refusal_with_the_questions(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["LVEF"] = [f"{40 + number / 2}" for number in range(30)]
    table.loc[[3, 9, 11], "LVEF"] = "<15", ">90", "55-60"
    assert adopt_with(table, folder, tmp_path, "--target", "LVEF") == 2
    said = said_by(capsys)
    for part in (
        "column 'LVEF' is not numeric: 3 cells such as '<15', '>90', '55-60'.",
        "--missing 'lvef=<15,>90,55-60'; or give --kind lvef=multiclass",
        "What is the unit of 'LVEF' (40 to 54.5)? --label-unit lvef=UNIT",
        "--sampling-rate HZ",
        "--unit V|mV|uV|nV",
    ):
        assert part in said, part
    flags = ["--target", "LVEF", "--label-unit", "lvef=%", "--missing", "lvef=<15,>90,55-60", *STATED[4:]]
    assert adopt_with(table, folder, tmp_path, *flags) == 0
    labels = open_dataset("mine").frame["lvef"]
    assert labels.isna().sum() == 3 and labels.max() == 54.5


def test_numbers_with_units_in_cells_are_in_the_first_refusal(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["LVEF"] = [f"{40 + number},5 %" for number in range(30)]
    table["QRS (ms)"] = [str(80 + number) for number in range(30)]
    table.to_csv(tmp_path / "labels.csv", index=False, sep=";")
    request = (folder, tmp_path / "labels.csv", tmp_path / "own")
    assert adopt(*request, "--target", "LVEF", "QRS (ms)", *STATED[4:]) == 2
    said = said_by(capsys)
    assert "column 'LVEF' is not numeric: 30 cells such as '40,5 %', '41,5 %'" in said and "--kind qrs" not in said
    assert adopt(*request, "--target", "QRS (ms)", *STATED[4:]) == 0
    said = said_by(capsys)
    assert "regression, 80 to 109 ms" in said and "ids?" not in said


def test_percent_format_of_excel_is_explained(hospital, tmp_path, capsys):
    """An ejection fraction of 50.2 with a percent format is 5020 % in Excel, too."""
    table, folder = hospital
    table.assign(LVEF=[40.2 + number for number in range(30)]).to_excel(tmp_path / "labels.xlsx", index=False)
    book = openpyxl.load_workbook(tmp_path / "labels.xlsx")
    for row in book.active.iter_rows(min_row=2):
        row[-1].number_format = "0.0%"
    book.save(tmp_path / "labels.xlsx")
    request = (folder, tmp_path / "labels.xlsx", tmp_path / "own", "--target", "LVEF")
    assert adopt(*request) == 2
    said = said_by(capsys)
    assert "'4020 %'" in said and "percent format shows 69.2 as 6920 %; give such cells the format of numbers" in said


def test_names_with_commas_are_read_and_quoted_in_lists(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["LVEF, %"] = [f"{40 + number % 20},5" for number in range(30)]
    table = table.rename(columns={"Bemerkung": "Bemerkung, frei, kurz, von Hand, selten"})
    table.to_csv(tmp_path / "labels.csv", index=False, sep=";")
    request = (folder, tmp_path / "labels.csv", tmp_path / "own", *STATED[4:])
    assert adopt(*request) == 2
    said = said_by(capsys)
    assert "'LVEF, %' (regression: 40.5 to 59.5)" in said
    assert "'Bemerkung, frei, kurz, von Hand, selten'" in said.split("columns not used")[1]
    assert adopt(*request, "--target", "LVEF, %") == 0, "the name states the unit"
    assert "regression, 40.5 to 59.5 %" in said_by(capsys)


def test_faults_of_a_sheet_are_in_the_message_with_all_other_problems(hospital, tmp_path, capsys):
    table, folder = hospital
    table.to_excel(tmp_path / "befunde.xlsx", index=False)
    book = openpyxl.load_workbook(tmp_path / "befunde.xlsx")
    sheet = book.active
    sheet.insert_rows(1)
    sheet["A1"] = "Befunde 2024"
    sheet.merge_cells("B5:B6")
    sheet.row_dimensions[7].hidden = True
    sheet["B9"] = datetime.datetime(2024, 3, 1)
    book.save(tmp_path / "befunde.xlsx")
    assert adopt(folder, tmp_path / "befunde.xlsx", tmp_path / "own", "--target", "Schenkelblock") == 2
    said = said_by(capsys)
    for part in (
        "1 range of merged cells",
        "1 hidden row",
        "row 1 seems to be a title",
        "column 'Patientennummer': 1 of 30 cells are dates, such as 2024-03-01",
        "--positive schenkelblock=ja|nein",
        "--sampling-rate HZ",
        "--unit V|mV|uV|nV",
    ):
        assert part in said, part
    assert "rows have no patient" not in said, "a merged cell counts as filled while other problems are looked for"


def test_bare_number_is_named_as_a_possible_patient(hospital, tmp_path, capsys):
    table, folder = hospital
    table = table.rename(columns={"Patientennummer": "N.º"})
    assert adopt_with(table, folder, tmp_path, *STATED) == 2
    said = said_by(capsys)
    assert "'N.º' (30 different values in 30 rows) may number patients or rows. Which one names the patient? " in said
    table["N.º"] = range(1, 31)
    assert adopt_with(table, folder, tmp_path, *STATED) == 2
    assert "'N.º' (1, 2, 3 ... like rows) may number patients or rows." in said_by(capsys)


def test_rate_and_unit_that_a_csv_states_are_not_asked_for(tmp_path, capsys):
    frame, signals = bundled(12)
    (tmp_path / "csv").mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        columns = {"time (s)": np.arange(len(signal)) / 100}
        columns |= {f"{lead} (\xb5V)": 1000 * signal[:, place] for place, lead in enumerate(LEADS)}
        pd.DataFrame(columns).round(3).to_csv(tmp_path / "csv" / f"{name}.csv", index=False)
    labels = write_labels(frame, tmp_path / "labels.csv")
    own = ("--target", "cd", "--positive", "cd=CD")
    assert adopt(tmp_path / "csv", labels, tmp_path / "own", *own) == 0
    ecg = open_dataset("mine").recording(3)
    assert ecg.fs == 100 and np.abs(ecg.signal - signals[3]).max() < 1e-5
    assert adopt(tmp_path / "csv", labels, tmp_path / "own", *own, "--unit", "mV", "--overwrite") == 2
    assert "but mV was given" in said_by(capsys)


def test_sentinels_are_remarked_and_can_be_left_out(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["LVEF"] = [f"{40 + number / 2}" for number in range(30)]
    table.loc[[3, 9, 11], "LVEF"] = "-9", "999", "999"
    table.loc[[4, 5, 6], "Alter"] = "-1", "999", "999"
    request = (table, folder, tmp_path, "--target", "LVEF", "--label-unit", "lvef=%")
    assert adopt_with(*request, *STATED[4:], "--dry-run") == 0
    said = said_by(capsys)
    assert (
        "LVEF: -9 (1), 999 (2) may mean not measured, and count as measurements; --missing lvef=-9,999 leaves" in said
    )
    assert "Alter: 3 cells are not an age from 0 to 120 and count as unknown: -1 (1), 999 (2)" in said
    assert adopt_with(*request, *STATED[4:], "--range", "lvef=0:100") == 2
    assert "2 different numbers are outside --range 0:100: -9 to 999. Correct the range, or leave" in said_by(capsys)
    assert adopt_with(*request, *STATED[4:], "--range", "lvef=0:100", "--missing", "lvef=-9.0,999") == 0
    assert "may mean not measured" not in said_by(capsys)
    labels = open_dataset("mine").frame["lvef"]
    assert labels.isna().sum() == 3 and labels.between(40, 54.5).sum() == 27
    assert adopt_with(*request, *STATED[4:], "--missing", "lvef=-9,77", "--overwrite") == 2
    assert "--missing lvef=-9,77: no cell of 'LVEF' is '77'" in said_by(capsys)


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["50", "-9", "999", "61", "999"], {"-9": 1, "999": 2}),
        (["40", "99", "61"], {"99": 1}),
        (["97", "98", "99"], {}),
        (["-1", "2", "-3"], {}),
        (["-1", "-9"], {}),
        (["", "a", "50.5", "-9.0", "60"], {"-9.0": 1}),
    ],
)
def test_numbers_that_stand_apart_are_sentinels(cells, found):
    assert sentinels(pd.Series(cells)) == found


def test_points_that_may_mark_thousands_are_a_problem_of_targets(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["NT-proBNP"] = [f"1.{200 + number}" if number % 2 else str(300 + number) for number in range(30)]
    table.to_csv(tmp_path / "labels.csv", index=False, sep=";")
    request = (folder, tmp_path / "labels.csv", tmp_path / "own", *STATED[4:])
    assert adopt(*request, "--target", "NT-proBNP", "--label-unit", "nt_probnp=ng/l") == 2
    assert "column 'NT-proBNP': in '1.201' beside '300' the point may be a thousands mark" in said_by(capsys)
    assert adopt(*request, *STATED[:4]) == 0


# ---- Files --------------------------------------------------------------------------------------------------------


def test_lost_zeros_of_file_names_are_proposed(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), tmp_path / "numbers"
    folder.mkdir()
    ecgs = open_dataset("ptb_xl_sample")
    for number in range(30):
        write_csv(folder, f"{number + 1:03}", ecgs.recording(number).signal)
    table["Datei"] = range(1, 31)
    table.to_excel(tmp_path / "labels.xlsx", index=False)
    request = (folder, tmp_path / "labels.xlsx", tmp_path / "own", *STATED)
    assert adopt(*request) == 2
    assert "'Datei' names 30 recordings in another spelling than the folder: '1' = 001.csv, '2' = 002.csv" in (
        said := said_by(capsys)
    )
    assert "--files same; or --files as-written" in said and "--allow-missing" not in said
    assert adopt(*request, "--files", "as-written") == 2
    assert "names a recording in" in said_by(capsys)
    assert adopt(*request, "--files", "same") == 0
    assert "30 names of 'Datei' differ from those of the files in spelling: '1' = 001.csv" in said_by(capsys)
    dataset = open_dataset("mine")
    assert list(dataset.frame["id"][:2]) == ["1", "2"] and list(dataset.frame["media"][:2]) == ["001.csv", "002.csv"]


def test_two_rows_are_not_paired_with_one_file(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    for name in ("007", "8"):
        write_csv(tmp_path / "folder", name, open_dataset("ptb_xl_sample").recording(0).signal)
    table = pd.DataFrame({"file": ["7", "07", "8", "x"], "patient_id": list("abcd"), "y": ["0", "1", "0", "1"]})
    table.to_csv(tmp_path / "l.csv", index=False)
    assert adopt(tmp_path / "folder", tmp_path / "l.csv", tmp_path / "own", "--target", "y", *STATED[4:]) == 2
    said = said_by(capsys)
    assert "--files" not in said and "3 of 4 rows name no recording" in said


def test_questions_about_files_are_asked_although_no_row_names_them(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    table["Datei"] = [f"aufnahme {number}" for number in range(30)]
    table.loc[3, "Patientennummer"] = ""
    assert adopt_with(table, folder, tmp_path, "--target", "Schenkelblock") == 2
    said = said_by(capsys)
    for part in (
        "names a recording in",
        "1 of 30 rows have no patient",
        "--positive schenkelblock=ja|nein",
        "What is the sampling rate in Hz (csv)? --sampling-rate HZ",
        "What is the unit of the samples (csv)? --unit",
    ):
        assert part in said, part


@pytest.mark.parametrize(
    ("cell", "split"),
    [
        ("Training", "train"), ("Entraînement", "train"), ("Validierung", "validation"), ("VALIDACIÓN", "validation"),
        ("Teste", "test"), ("held-out", "test"), ("Held out", "test"), ("", ""), ("none", ""),
    ],
)  # fmt: skip
def test_usual_names_of_splits(cell, split):
    assert split_of(cell) == split


def test_second_row_of_names_is_named(hospital, tmp_path, capsys):
    table, folder = hospital[0].astype(str), hospital[1]
    assert second_header(table) is None
    second = dict.fromkeys(table, "") | {"Alter": "Jahre", "Schenkelblock": "ja/nein"}
    pd.concat([pd.DataFrame([second]), table]).to_excel(tmp_path / "two.xlsx", index=False)
    assert adopt(folder, tmp_path / "two.xlsx", tmp_path / "own", *STATED) == 2
    assert "two rows of names: the first cell of the numbers in 'Alter' is 'Jahre'" in said_by(capsys)


def test_ids_that_excel_made_dates_of_are_refused(hospital, tmp_path, capsys):
    table, folder = hospital
    table.to_excel(tmp_path / "dates.xlsx", index=False)
    book = openpyxl.load_workbook(tmp_path / "dates.xlsx")
    book.active["B5"] = pd.Timestamp("2026-12-03").to_pydatetime()
    book.save(tmp_path / "dates.xlsx")
    assert adopt(folder, tmp_path / "dates.xlsx", tmp_path / "own", *STATED) == 2
    assert "column 'Patientennummer': 1 of 30 cells are dates, such as 2026-12-03" in said_by(capsys)


def test_decomposed_file_names_are_found_by_composed_cells(hospital, tmp_path):
    table = hospital[0].head(20).assign(Datei=[f"Müller {number}" for number in range(20)])
    (tmp_path / "mac").mkdir()
    for name, signal in zip(table["Datei"], bundled(20)[1], strict=True):
        WRITERS[1](tmp_path / "mac", unicodedata.normalize("NFD", name), signal)
    assert adopt_with(table, tmp_path / "mac", tmp_path, *STATED) == 0
    dataset = open_dataset("mine")
    assert list(dataset.frame["id"]) == list(table["Datei"]) and dataset.recording(3).signal.shape[1] == 12


def test_links_to_files_are_read_and_links_to_folders_are_named(hospital, tmp_path, capsys):
    table, folder = hospital
    (tmp_path / "links").mkdir()
    for path in folder.iterdir():
        (tmp_path / "links" / path.name).symlink_to(path)
    assert adopt_with(table, tmp_path / "links", tmp_path, *STATED) == 0
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "pacs").symlink_to(folder)
    (tmp_path / "far" / "broken.dcm").symlink_to(tmp_path / "nothing")
    (tmp_path / "far" / "loop").symlink_to(tmp_path / "far")
    assert adopt_with(table, tmp_path / "far", tmp_path, *STATED, "--overwrite") == 2
    assert "Its 2 links to folders, such as loop, are not followed" in said_by(capsys)


def test_unreadable_files_are_named_beside_the_open_questions(hospital, tmp_path, capsys):
    table, folder = hospital[0].copy(), tmp_path / "broken"
    folder.mkdir()
    for path in hospital[1].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    hostile = muse(prolog='<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>')
    (folder / "ekg004.xml").write_bytes(hostile)
    content = (folder / "ekg002.edf").read_bytes()
    (folder / "ekg002.edf").write_bytes(content[:236] + b"0       " + content[244:])  # No records.
    (folder / "ekg006.csv").write_text("I,II\n1,x\n")
    assert adopt_with(table, folder, tmp_path, "--target", "Schenkelblock") == 2
    said = said_by(capsys)
    assert "3 of 30 recordings cannot be read: ekg002, ekg004, ekg006" in said and "--positive" in said
    assert adopt_with(table, folder, tmp_path, *STATED, "--allow-unreadable") == 0
    assert open_dataset("mine").left_out == 3


def test_wrong_unit_of_one_format_is_found_beside_the_others(hospital, tmp_path, capsys):
    table, folder = hospital
    assert adopt_with(table, folder, tmp_path, *STATED[:-1], "uV") == 2
    assert "with --unit 'uV' for csv the median amplitude is" in said_by(capsys)


def test_ecgs_and_echo_are_not_mixed(hospital, tmp_path, capsys):
    (tmp_path / "both").mkdir()
    write_csv(tmp_path / "both", "a", np.zeros((10, 12)))
    (tmp_path / "both" / "b.avi").write_bytes(b"RIFF")
    pd.DataFrame({"file": ["a", "b"], "patient_id": ["1", "2"], "x": ["0", "1"]}).to_csv(
        tmp_path / "l.csv", index=False
    )
    assert adopt(tmp_path / "both", tmp_path / "l.csv", tmp_path / "own", "--target", "x") == 2
    assert "both ECGs (csv) and echo (clip)" in said_by(capsys)


# ---- Without recordings ---------------------------------------------------------------------------------------------


@pytest.fixture
def without(hospital, tmp_path):
    """Adopt the table of 150 rows alone; return it with its splits."""
    table = pd.concat([hospital[0].assign(Datei=lambda t, k=k: t["Datei"] + f"_{k}", Patientennummer=lambda t, k=k: t["Patientennummer"] + k * 10**6) for k in range(5)])  # fmt: skip
    table.to_excel(tmp_path / "labels.xlsx", index=False)
    line = ["adopt", "--labels", str(tmp_path / "labels.xlsx"), "--no-recordings", "--name", "mine"]
    line += ["--datasets-dir", str(tmp_path / "own"), "--id-column", "Datei", *STATED[:4]]
    assert main(line) == 0
    splits = pd.read_csv(tmp_path / "own" / "mine" / "splits.csv")
    assert list(splits) == ["id", "patient_id", "split"]
    return table.merge(splits, left_on="Datei", right_on="id")


def test_predictions_are_scored_without_recordings(without, tmp_path, capsys):
    test = without[without["split"] == "test"]
    answers = pd.DataFrame({"id": test["id"], "p_ja": np.where(test["Schenkelblock"] == "ja", 0.8, 0.2)})
    answers.to_excel(tmp_path / "answers.xlsx", index=False)
    line = ["eval", "--predictions", str(tmp_path / "answers.xlsx"), "--task", "mine/schenkelblock"]
    assert main([*line, "--output-dir", str(tmp_path / "results")]) == 0
    assert re.search(r"f1_macro % ↑ 100\.00", said_by(capsys))


def test_audit_and_doctor_check_a_table_without_recordings(without, tmp_path, capsys):
    assert main(["audit", "mine"]) == 0
    said = said_by(capsys)
    assert "mine was adopted without recordings, so only its table is checked" in said
    assert re.search(r"mine/schenkelblock test \d+ id \d+ patients; nein \d+, ja \d+", said)
    assert main(["doctor", "--dataset", "mine"]) == 0
    assert "none: adopted without recordings, for answers and vectors made elsewhere" in said_by(capsys)
    for line in (["audit", "mine"], ["doctor", "--dataset", "mine"]):
        assert main([*line, "--sheet", str(tmp_path / "sheet.png")]) == 2
        assert "--sheet shows recordings, and mine has none. Leave it out." in said_by(capsys)


def test_embeddings_are_evaluated_without_recordings(without, tmp_path, capsys):
    vectors = pd.DataFrame(
        np.random.default_rng(0).normal(size=(len(without), 4)).astype("f4"), columns=["v0", "v1", "v2", "v3"]
    )
    vectors["v0"] += 5 * (without["Schenkelblock"] == "ja")
    vectors.assign(id=list(without["id"])).to_parquet(tmp_path / "vectors.parquet")
    line = ["eval", "--embeddings", str(tmp_path / "vectors.parquet"), "--tasks", "mine/schenkelblock"]
    line += ["--model-name", "lab/net", "--protocols", "probe", "--output-dir", str(tmp_path / "results")]
    assert main(line) == 2 and "--seen-in-pretraining none" in said_by(capsys)
    assert main([*line, "--seen-in-pretraining", "none"]) == 0
    assert re.search(r"lab/net probe f1_macro % ↑ (9\d|100)", said_by(capsys))


def test_models_cannot_read_a_dataset_without_recordings(without, tmp_path, capsys):
    with pytest.raises(MissingData, match=r"--predictions.*--embeddings"):
        open_dataset("mine")
    line = ["eval", "--model", "cardiobench/ecg-morphology", "--tasks", "mine/schenkelblock"]
    assert main([*line, "--output-dir", str(tmp_path / "results")]) == 2
    assert "mine was adopted without recordings, so no model can read it" in said_by(capsys)


def test_flags_about_recordings_contradict_their_absence(hospital, tmp_path, capsys):
    hospital[0].to_csv(tmp_path / "labels.csv", index=False)
    line = [
        "adopt",
        "--labels",
        str(tmp_path / "labels.csv"),
        "--name",
        "mine",
        "--datasets-dir",
        str(tmp_path / "own"),
        *STATED,
    ]
    assert main([*line, "--no-recordings", "--allow-missing"]) == 2
    said = said_by(capsys)
    assert "--sampling-rate, --unit, --allow-missing: they describe recordings" in said
    assert (
        "no column has an id for each recording. Name it: --id-column COLUMN. Each row has another value in 'Datei'"
        in said
    )
    assert main(line) == 2
    assert "the folder of the recordings is missing. Name it, or give --no-recordings" in said_by(capsys)
    assert main([*line[:1], str(hospital[1]), *line[1:], "--no-recordings"]) == 2
    assert "--no-recordings contradicts the folder" in said_by(capsys)


def test_printed_command_works_for_a_folder_with_a_space_and_missing_rows(hospital, tmp_path, capsys):
    table = hospital[0].copy()
    table.loc[5, "Datei"] = "fehlt"
    table.to_csv(tmp_path / "labels.csv", index=False)
    assert adopt(hospital[1], tmp_path / "labels.csv", tmp_path / "my own", *STATED, "--allow-missing") == 0
    printed = re.search(r"evaluate a model: cardiobench (.*)", capsys.readouterr().out.replace("\n", " "))
    line = ["cardiobench/constant" if word == "ID" else word for word in shlex.split(printed[1])]
    assert main([*line, "--output-dir", str(tmp_path / "results")]) == 0
