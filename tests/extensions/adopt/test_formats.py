"""Check that every format returns the written samples, and that missing information is requested."""

import sys

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.data.media.types import LEADS
from cardiobench.data.open import open_dataset
from tests.data.ecg_files import write_edf
from tests.extensions.adopt.folders import FORMATS, adopt, bundled, write_labels

LABEL = ("--target", "cd", "--positive", "cd=CD")


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


@pytest.fixture(scope="module")
def some():
    return bundled(24)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_each_format_stores_written_samples(form, some, tmp_path):
    frame, signals = some
    write, flags, error = FORMATS[form]
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write(folder, name, signal)
    labels = write_labels(frame, tmp_path / "labels.csv")
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *flags) == 0
    dataset = open_dataset("mine")
    assert list(dataset.frame["id"]) == list(frame["id"]) and list(dataset.frame["cd"]) == list(frame["cd"])
    assert list(dataset.frame["split"]) == list(frame["split"])
    for number, signal in enumerate(signals):
        read = dataset.recording(number)
        assert read.fs == 100 and np.abs(read.signal - signal).max() <= error + 1e-6
        assert read.facts["sex"] in ("F", "M")


@pytest.mark.parametrize("form", [name for name, (_, flags, _) in FORMATS.items() if flags])
def test_missing_information_is_requested_with_its_flag(form, some, tmp_path, capsys):
    frame, signals = some
    write, flags, _ = FORMATS[form]
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write(folder, name, signal)
    assert adopt(folder, write_labels(frame, tmp_path / "labels.csv"), tmp_path / "own", *LABEL) == 2
    said = capsys.readouterr().err
    assert "questions have no answer" in said and not (tmp_path / "own").exists()
    for flag in flags[::2]:
        assert flag in said


@pytest.mark.slow
def test_one_array_of_all_recordings_is_read_in_order_by_row_or_by_id(some, tmp_path):
    import h5py

    frame, signals = some
    shortest = min(map(len, signals))
    array = np.stack([signal[:shortest] for signal in signals])
    folder = tmp_path / "recordings"
    folder.mkdir()
    with h5py.File(folder / "all.h5", "w") as file:
        file["tracings"], file["exam"] = array[::-1], [name.encode() for name in frame["id"]][::-1]
    labels = write_labels(frame, tmp_path / "labels.csv", file="")
    said = ("--unit", "mV", "--sampling-rate", "100", "--leads", "I,II,III,aVR,aVL,aVF,V1,V2,V3,V4,V5,V6")
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *said, "--records", "exam", name="by_id") == 0
    np.save(folder / "all.npy", array)
    (folder / "all.h5").unlink()
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *said, "--in-order", name="in_order") == 0
    labels = write_labels(frame, tmp_path / "rows.csv", file="", row=range(len(frame)))
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *said, "--record-column", "row", name="by_row") == 0
    (tmp_path / "all").mkdir()
    with h5py.File(tmp_path / "all" / "all.h5", "w") as file:
        file["tracings"], file["exam"] = array[::-1], [name.encode() for name in frame["id"]][::-1]
    for name in ("by_id", "in_order", "by_row"):
        dataset = open_dataset(name, tmp_path / "all" if name == "by_id" else None)
        for number in (0, 7, 23):
            assert np.array_equal(dataset.recording(number).signal, array[number])


@pytest.mark.parametrize(("leads", "there"), [("II", "II"), ("I,II", "I, II, III, aVR, aVL, aVF")])
def test_recordings_of_fewer_leads_are_taken_and_counted(leads, there, some, tmp_path, capsys):
    frame, signals = some
    folder, columns = tmp_path / "recordings", [LEADS.index(lead) for lead in leads.split(",")]
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        kept = signal[:, columns]
        np.save(folder / f"{name}.npy", kept[:, 0] if len(columns) == 1 else kept)
    flags = ("--leads", leads, "--unit", "mV", "--sampling-rate", "100")
    assert adopt(folder, write_labels(frame, tmp_path / "labels.csv"), tmp_path / "own", *LABEL, *flags) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert f"24 of 24 have only {there}: a model that needs the other leads receives zeros" in said
    read = open_dataset("mine").recording(0)
    assert ", ".join(read.leads) == there
    assert np.array_equal(read.signal[:, columns], signals[0][:, columns]) and not read.signal[:, 6:].any()


def test_format_of_an_extra_is_named_with_it(some, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ecgdatakit", None)
    frame, _ = some
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in frame["id"]:
        (folder / f"{name}.scp").write_bytes(b"0" * 100)
    assert adopt(folder, write_labels(frame, tmp_path / "labels.csv"), tmp_path / "own", *LABEL) != 0
    said = capsys.readouterr().err
    assert "reading SCP-ECG" in said and "pip install 'cardiobench[readers]'" in said and "--file-column" not in said


def test_folder_without_known_format_names_its_files(some, tmp_path, capsys):
    frame, _ = some
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in frame["id"]:
        (folder / f"{name}.tdms").write_bytes(b"0" * 100)
        (folder / f"{name}.xml").write_bytes(b"<html></html>")
    labels = write_labels(frame, tmp_path / "labels.csv")
    for flags in ((), ("--file-column", "file")):
        assert adopt(folder, labels, tmp_path / "own", *LABEL, *flags) == 2
        said = capsys.readouterr().err
        assert "no recording of a known format; its files are 24 .tdms, 24 .xml" in said
        assert "--format" in said and "--file-column" not in said


def test_stray_xml_beside_recordings_is_ignored(some, tmp_path):
    frame, signals = some
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write_edf(folder, name, signal)
        (folder / f"{name}.xml").write_bytes(b"<report><name>x</name></report>")
    assert adopt(folder, write_labels(frame, tmp_path / "labels.csv"), tmp_path / "own", *LABEL) == 0
    assert open_dataset("mine").recording(0).fs == 100
