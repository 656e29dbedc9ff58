"""Test merging result folders of several machines: checks come first, and nothing is overwritten or partial."""

import os
import shutil

import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadConfig, BadData, BadPredictions, MissingData
from cardiobench.results.merge import merge
from cardiobench.results.paths import predictions_path, result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from tests.results.test_formatting import result


def write(folder, task, key="1"):
    """Write a result with its predictions; return its path."""
    path = result_path(folder / "a__b" / "0", "probe", task)
    made = result(task=task)
    stamped = type(made)(**{**vars(made), "stamp": {"key": key}})
    frame = pd.DataFrame({"id": ["1"], "patient_id": ["1"], "y_true": ["no"], "y_pred": ["no"]})
    save_scored(stamped, frame, path)
    return path


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_merging_folders_is_idempotent(tmp_path):
    one, two, out = (tmp_path / name for name in ("one", "two", "out"))
    write(one, "ptb_xl/cd"), write(two, "ptb_xl/cd"), write(two, "ptb_xl/cd_paper")
    merged = merge([one, two], out)
    assert (merged.copied, merged.kept) == (2, 1) and files(out) == files(one) | files(two)
    again = merge([one, two], out)
    assert (again.copied, again.kept, again.files) == (0, 3, ())
    path = next(out.rglob("ptb_xl__cd.json"))
    assert ScoreResult.load(path).task == "ptb_xl/cd" and predictions_path(path).is_file()


def test_conflicting_or_edited_files_are_refused_before_writing(tmp_path):
    one, two, out = (tmp_path / name for name in ("one", "two", "out"))
    write(one, "ptb_xl/cd", key="1")
    path = write(two, "ptb_xl/cd", key="2")
    with pytest.raises(BadData, match="1 results with the same path were made from different inputs"):
        merge([one, two], out)
    path.write_text(path.read_text().replace('"key": "2"', '"key": "1"'))
    with pytest.raises(BadData, match="checksum does not hold"):
        merge([one, two], out)
    shutil.copy(one / path.relative_to(two), path)
    predictions_path(path).write_bytes(b"other")
    with pytest.raises(BadPredictions, match="checksum differs"):
        merge([one, two], out)
    with pytest.raises(MissingData, match="there is no folder"):
        merge([tmp_path / "none"], out)
    assert not out.exists()


def test_empty_shards_are_reported(tmp_path, capsys):
    write(tmp_path / "one", "ptb_xl/cd")
    (tmp_path / "two" / "runs" / "0123").mkdir(parents=True)
    assert main(["merge", *(str(tmp_path / name) for name in ("one", "two")), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "1 results copied" in said and f"no results in {tmp_path / 'two'}: its shard was empty" in said


@pytest.mark.parametrize(("part", "out"), [("all/part", "all"), ("all", "all/out"), ("all/part", "all/../all")])
def test_nested_folders_are_refused(tmp_path, part, out):
    """Otherwise, their results would count as those of the target and would not be copied."""
    write(tmp_path / part, "ptb_xl/cd")
    with pytest.raises(BadConfig, match="contain one another"):
        merge([tmp_path / part], tmp_path / out)


def test_missing_predictions_come_from_other_copy(tmp_path, capsys):
    """Write a truncated file, as left by an interrupted copy between machines."""
    one, two, out = (tmp_path / name for name in ("one", "two", "out"))
    predictions_path(write(one, "ptb_xl/cd")).unlink()
    write(two, "ptb_xl/cd")
    assert main(["merge", str(one), "--out", str(out)]) == 0
    assert "1 results have no predictions" in capsys.readouterr().out
    merged = merge([one, two], out)
    assert (merged.copied, merged.kept, merged.bare) == (1, 1, ()) and files(out) == files(two)
    assert merge([one], out).bare == () and files(out) == files(two)


def test_pipe_in_a_folder_is_named_and_not_waited_for(tmp_path):
    write(tmp_path / "one", "ptb_xl/cd")
    os.mkfifo(tmp_path / "one" / "ptb_xl__af.json")
    with pytest.raises(BadData, match=r"ptb_xl__af\.json is not a regular file"):
        merge([tmp_path / "one"], tmp_path / "out")
