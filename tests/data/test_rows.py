"""Test rejected rows, counts and digests of datasets."""

import dataclasses
import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.digests import column_digest, hexadecimal
from cardiobench.data.open import with_metadata
from cardiobench.data.release_counts import absent_rows
from cardiobench.data.rows import RowTable, links_out, row_table, safe_join
from cardiobench.data.spec import AGE_GROUPS, TOTAL, DatasetSpec, Group, PromptGrid, Task
from cardiobench.data.splits import hashed_split
from cardiobench.data.twin_manifest import TWIN_MARK, write_manifest
from cardiobench.runner.references import join_references

SPEC = DatasetSpec(
    name="toy",
    title="Toy",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="-",
    access="the toy page",
    redistributable=False,
    detect_files=("list.csv",),
    columns={"key_frame": "int64"},
    expected={"train": 2, "test": 1},
    tasks=(
        Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100)),
        Task("toy/as", "binary", "as", ("f1_macro",), ("no", "yes")),
    ),
)


def row(number, split="train", patient=None, **other):
    return {
        "id": f"r{number}",
        "patient_id": patient or f"p{number}",
        "split": split,
        "media": f"{number}.avi",
        "ef": 55.0,
        "as": "no",
        "key_frame": 0,
        **other,
    }


def rows():
    return [row(1), row(2), row(3, "test")]


@pytest.fixture
def raw(tmp_path):
    for number in (1, 2, 3):
        (tmp_path / f"{number}.avi").write_bytes(b"x" * number)
    return tmp_path


def test_full_release(raw):
    table = row_table(SPEC, rows(), raw)
    assert list(table.frame["id"]) == ["r1", "r2", "r3"]
    assert table.missing == () and table.absent == {} and not table.twin


@pytest.mark.parametrize(
    "bad, message",
    [
        (row(1), r"1 id in several rows: r1"),
        (row(4, "test", patient="p1"), r"1 patients are in two splits: p1"),
        (row(4, ef=400.0), r"'ef' are outside 0-100 %: r4 has 400"),
        (row(4, ef=-1.0), r"r4 has -1"),
        (row(4, **{"as": "maybe"}), r"unknown values maybe; expected no, yes"),
        (row(4, "Test"), r"unknown split Test"),
    ],
)
def test_invalid_rows_are_named(raw, bad, message):
    with pytest.raises(BadData, match=message):
        row_table(SPEC, [*rows(), bad], raw, allow_missing=True)


def test_dataset_without_rows_is_refused(raw):
    with pytest.raises(MissingData, match="the toy page"):
        row_table(SPEC, [], raw)


def test_null_label_is_accepted(raw):
    assert row_table(SPEC, [row(1, ef=None), row(2, **{"as": None}), row(3, "test")], raw).frame["ef"].isna().sum() == 1


def test_missing_files_are_counted_and_skipped_only_on_request(raw):
    (raw / "2.avi").unlink()
    with pytest.raises(MissingData, match=r"1 of 3 files .* 2\.avi.*--allow-missing"):
        row_table(SPEC, rows(), raw)
    table = row_table(SPEC, rows(), raw, allow_missing=True)
    assert table.missing == ("2.avi",)
    assert list(table.frame["id"]) == ["r1", "r3"] and list(table.listed["id"]) == ["r1", "r2", "r3"]


def test_labels_need_no_files(tmp_path):
    assert len(row_table(SPEC, rows(), tmp_path, need_media=False).frame) == 3


def test_incomplete_table_is_refused_unless_allowed_or_a_twin(raw):
    with pytest.raises(MissingData, match="train 1 of 2"):
        row_table(SPEC, rows()[1:], raw)
    assert row_table(SPEC, rows()[1:], raw, allow_missing=True).absent == {"train": 1}
    write_manifest(raw, {})
    assert row_table(SPEC, rows()[1:], raw).twin


@pytest.mark.parametrize("name", ["../secret.avi", "/etc/passwd", "a/../../b.avi", "C:/x.avi", ""])
def test_path_outside_the_folder_is_refused(raw, name):
    with pytest.raises(BadData, match="points outside the raw folder"):
        row_table(SPEC, [*rows(), {**row(4), "media": name}], raw, allow_missing=True)
    with pytest.raises(BadData, match="points outside"):
        safe_join(raw, name)


def test_symlinks_placed_by_the_user_are_followed(raw, tmp_path_factory):
    outside = tmp_path_factory.mktemp("disk") / "videos"
    outside.mkdir()
    (outside / "4.avi").write_bytes(b"xxxx")
    (raw / "videos").symlink_to(outside, target_is_directory=True)
    (raw / "2.avi").rename(outside / "2.avi")
    (raw / "2.avi").symlink_to(outside / "2.avi")
    (raw / "inner.avi").symlink_to(raw / "1.avi")
    table = row_table(SPEC, [*rows(), {**row(4), "media": "videos/4.avi"}], raw, allow_missing=True)
    assert list(table.frame["id"]) == ["r1", "r2", "r3", "r4"] and table.missing == ()
    assert links_out(raw) == ("2.avi", "videos")


def test_release_unpacked_over_its_twin_is_refused(raw):
    write_manifest(raw, {})
    (raw / "2.avi").write_bytes(b"a real recording")
    with pytest.raises(BadData, match=r"1 of its files do not belong to it: 2\.avi"):
        row_table(SPEC, rows(), raw)
    (raw / TWIN_MARK).write_text("{}")
    with pytest.raises(BadData, match="does not list the files of a synthetic twin"):
        row_table(SPEC, rows(), raw)


def test_names_in_another_case_are_found(raw):
    (raw / "2.avi").rename(raw / "2.AVI")
    table = row_table(SPEC, rows(), raw)
    assert list(table.frame["media"]) == ["1.avi", "2.AVI", "3.avi"] == list(table.listed["media"])


def test_percentages_given_as_fractions_are_refused(raw):
    with pytest.raises(BadData, match="all 3 labels 'ef' are at most 1, so they are fractions"):
        row_table(SPEC, [row(1, ef=0.55), row(2, ef=0.3), row(3, "test", ef=1.0)], raw)


def test_verified_fingerprints_follow_the_content(raw):
    import os

    before, trusted = row_table(SPEC, rows(), raw, verify=True), row_table(SPEC, rows(), raw)
    status = (raw / "2.avi").stat()
    (raw / "2.avi").write_bytes(b"yy")
    os.utime(raw / "2.avi", ns=(status.st_atime_ns, status.st_mtime_ns))
    after = row_table(SPEC, rows(), raw, verify=True)
    changed = before.frame["fingerprint"] != after.frame["fingerprint"]
    assert list(before.frame["id"][changed]) == ["r2"]
    assert (row_table(SPEC, rows(), raw).frame["fingerprint"] == trusted.frame["fingerprint"]).all()


def test_copy_with_missing_rows_is_incomplete(raw):
    """Check coverage with 2 of 10 training and 1 of 20 test rows present; cross-validation counts all 27 missing rows."""
    spec = dataclasses.replace(SPEC, expected={"train": 10, "test": 20})
    task = spec.tasks[0]
    dataset = OpenDataset(spec, raw, row_table(spec, rows(), raw, allow_missing=True))
    assert dataset.expected(task, dataset.references(task)) == 20
    assert dataset.absent_units(task) == 8 + 19 and dataset.unread_units(task) == 0
    answers = pd.DataFrame({"id": ["r1", "r2", "r3"], "y_pred": [1.0, 2.0, 3.0]})
    joined, _ = join_references(dataset, task, answers, model="m", limit=None, out_of_fold=True)
    assert joined.out_of_fold
    assert joined.expected == 3 + 27, "the denominator includes missing rows"
    joined, _ = join_references(dataset, task, answers[2:], model="m", limit=None)
    assert joined.expected == 20


def test_absent_rows_with_only_a_known_total():
    """Check the split of missing ids: it is exact if the ids are known; otherwise each split gets its share, rounded up."""
    ids = [f"JS{number:05d}" for number in range(1, 101)]
    splits = {name: hashed_split(name) for name in ids}
    listed = pd.DataFrame({"patient_id": ids[:40], "split": [splits[name] for name in ids[:40]]})
    spec = dataclasses.replace(SPEC, expected={TOTAL: 100}, splits=("train", "validation", "test"))
    exact = pd.Series([splits[name] for name in ids[40:]]).value_counts().to_dict()
    assert absent_rows(spec, listed, ids) == exact
    assert absent_rows(spec, listed) == {"train": 42, "validation": 6, "test": 12}
    one = pd.DataFrame({"patient_id": ids[:99], "split": [splits[name] for name in ids[:99]]})
    assert absent_rows(spec, one) == {"train": 1, "validation": 1, "test": 1}, "nobody knows which one it is"
    assert absent_rows(spec, pd.DataFrame({"patient_id": ids, "split": splits.values()})) == {}


def test_packed_archives_are_named(raw):
    (raw / "2.avi").unlink()
    (raw / "videos.zip").write_bytes(b"PK")
    with pytest.raises(MissingData, match=r"1 archives are not unpacked: unzip videos\.zip"):
        row_table(SPEC, rows(), raw)


def test_digests_change_with_content_only(raw):
    before = row_table(SPEC, rows(), raw)
    again = row_table(SPEC, rows(), raw)
    assert before.digest == again.digest and list(before.frame["fingerprint"]) == list(again.frame["fingerprint"])

    relabelled = row_table(SPEC, [row(1, ef=30.0), *rows()[1:]], raw)
    assert relabelled.digest != before.digest, "a changed label gives another dataset"
    assert list(relabelled.frame["fingerprint"]) == list(before.frame["fingerprint"]), "its recordings are unchanged"

    (raw / "2.avi").write_bytes(b"another recording")
    replaced = row_table(SPEC, rows(), raw)
    changed = replaced.frame["fingerprint"] != before.frame["fingerprint"]
    assert list(replaced.frame["id"][changed]) == ["r2"]
    assert replaced.digest != before.digest

    later = row_table(SPEC, [row(1, key_frame=7), *rows()[1:]], raw)
    assert list(later.frame["id"][later.frame["fingerprint"] != replaced.frame["fingerprint"]]) == ["r1"]


@pytest.mark.parametrize(
    "values",
    [
        ["train", "test", None, float("nan")] * 9,
        ["é", 'say "x"', "a\\b", "\x7f"] * 9,
        [f"r{number}" for number in range(30)],
        [0.0, -0.0, 1 / 3, float("nan"), float("inf"), 1e22] * 9,
        [1, True, 1.0, "1", None] * 9,
        [True, False] * 9,
        [1, 2] * 9,
        [None] * 9,
        [],
    ],
)
def test_digest_of_a_column_is_that_of_its_json(values):
    expected = ", ".join("null" if pd.isna(value) else json.dumps(value) for value in values)
    text = f"name\x1f[{expected}]"
    for dtype in (object, None):
        column = pd.Series(values, name="name", dtype=dtype)
        assert column_digest(column) == hashlib.sha256(text.encode()).hexdigest()[:16], dtype


def test_fingerprints_are_written_as_python_writes_them():
    """Check the text of keys, by which stored embeddings are found: 16 digits with leading zeros, in metadata without."""
    numbers = [0, 255, 2**63, 2**64 - 1]
    assert hexadecimal(pd.Series(numbers, dtype="uint64")).to_pylist() == [f"{number:016x}" for number in numbers]
    ages = pd.DataFrame({"age": np.arange(200, dtype=float)})
    marks = [f"{number:016x}" for number in range(200)]
    table = RowTable(pd.DataFrame(), ages.assign(fingerprint=marks), (), {}, {}, "", False)
    digests = pd.util.hash_pandas_object(ages, index=False)
    assert any(digest < 2**60 for digest in digests), "one with a leading zero"
    expected = [f"{mark}.{digest:x}" for mark, digest in zip(marks, digests, strict=True)]
    assert with_metadata(table).frame["fingerprint"].tolist() == expected


@pytest.mark.parametrize("patients", [["p", "p", "q"], [None, None, "q"]])
def test_patient_in_two_splits_is_found_in_any_row(raw, patients):
    bad = [
        row(n, split, patient)
        for n, (split, patient) in enumerate(zip(("train", "test", "test"), patients, strict=True))
    ]
    frame = pd.DataFrame(bad).assign(patient_id=patients)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        with pytest.raises(BadData, match="1 patients are in two splits"):
            row_table(SPEC, frame.iloc[order], raw, allow_missing=True)


def test_another_generator_is_another_dataset():
    one = row_table(SPEC, rows(), None, generator="a", allow_missing=True)
    two = row_table(SPEC, rows(), None, generator="b", allow_missing=True)
    assert one.digest != two.digest and not set(one.frame["fingerprint"]) & set(two.frame["fingerprint"])


def test_ladders_and_groups():
    assert len(PromptGrid(0, 100, 1).values()) == 101
    assert (
        PromptGrid(2.0, 8.0, 0.1, decimals=1).texts()[:2] == ("2.0", "2.1")
        and len(PromptGrid(2.0, 8.0, 0.1, 1).values()) == 61
    )
    assert PromptGrid(0.5, 2.0, 0.1, 1).values()[-1] == 2.0
    with pytest.raises(ValueError, match="2 edges need 3 labels"):
        Group("age", "age", (1, 2), ("a", "b"))
    cut = pd.cut([45, 46, 80, 81], [-float("inf"), *AGE_GROUPS.edges, float("inf")], labels=AGE_GROUPS.labels)
    assert list(cut) == ["≤45", "46-65", "66-80", ">80"]


def test_only_age_changes_the_fingerprint_of_a_row(tmp_path):
    """Check that vectors of the metadata baseline, which reads age and sex, become stale if an age changes."""
    table = RowTable(
        listed=pd.DataFrame(),
        frame=pd.DataFrame({"id": ["a", "b"], "fingerprint": ["1", "2"], "age": [40.0, np.nan], "af": ["no", "yes"]}),
        missing=(),
        absent={},
        excluded={},
        digest="",
        twin=False,
    )
    first = with_metadata(table).frame["fingerprint"]
    older = dataclasses.replace(table, frame=table.frame.assign(age=[41.0, np.nan]))
    relabelled = dataclasses.replace(table, frame=table.frame.assign(af="no"))
    assert with_metadata(relabelled).frame["fingerprint"].tolist() == first.tolist()
    assert (with_metadata(older).frame["fingerprint"] == first).tolist() == [False, True]
