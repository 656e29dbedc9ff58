"""Check that bundled datasets, rebuilt by `adopt` from plain folders and a CSV, give the same scores, intervals and verdicts."""

import io
import re
import sys

import pytest

from cardiobench.api import evaluate
from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.phantom.echo import echo_patients
from tests.extensions.adopt.folders import adopt

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


def scores(model, task, tmp_path, **settings):
    """Return the numbers of a task with intervals, floors and verdict."""
    (result,) = evaluate(
        model,
        tasks=[task],
        protocols=["probe"],
        output_dir=tmp_path / re.sub(r"\W", "_", task),
        resamples=200,
        **settings,
    )
    said = {
        "overall": result.overall,
        "floors": result.floors,
        "verdict": result.verdict.word,
        "coverage": result.coverage,
        "sex": result.groups.get("sex"),
    }
    return {name: str(value) for name, value in said.items()}  # As text, NaN equals NaN.


def test_bundled_ecgs_from_files_and_csv(tmp_path):
    frame = open_dataset("ptb_xl_sample").frame
    columns = {
        "id": "ecg",
        "patient_id": "pseudonym",
        "split": "fold",
        "media": "path",
        "cd": "block",
        "sex": "sex",
        "age": "age",
    }
    frame.rename(columns=columns)[list(columns.values())].to_csv(tmp_path / "labels.csv", index=False)
    flags = ("--id-column", "ecg", "--patient-column", "pseudonym", "--split-column", "fold", "--target", "cd=block")
    folder = catalog.dataset_folder("ptb_xl_sample") / "data"
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *flags, "--positive", "cd=CD") == 0
    model = "cardiobench/ecg-morphology"
    assert scores(model, "mine/cd", tmp_path) == scores(model, "ptb_xl_sample/cd", tmp_path)


def as_mp4(avi: bytes) -> bytes:
    """Remux an AVI to MP4 without changing its frames."""
    import av

    buffer = io.BytesIO()
    with av.open(io.BytesIO(avi)) as source, av.open(buffer, "w", format="mp4") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return buffer.getvalue()


def test_generated_hearts_from_mp4_averaged_over_views(tmp_path, monkeypatch):
    builder = catalog.builder("phantom_echo")
    module = sys.modules[builder.__module__]
    few = {record.id: record for record in echo_patients(70, module.SEED)}
    monkeypatch.setattr(module, "records", lambda: few)
    frame = open_dataset("phantom_echo").frame
    clips = tmp_path / "cines"
    clips.mkdir()
    for row in frame.to_dict("records"):
        (clips / f"{row['id']}.mp4").write_bytes(as_mp4(builder.media(None, row)["video"]["bytes"]))
    names = ["id", "patient_id", "split", "view", "sex", "age", "bmi", "ef"]
    frame[names].to_csv(tmp_path / "labels.csv", index=False)
    flags = (
        "--target",
        "ef",
        "--label-unit",
        "ef=%",
        "--range",
        "ef=0:100",
        "--per",
        "ef=patient",
        "--where",
        "ef:view=A2C,A4C",
    )
    assert adopt(clips, tmp_path / "labels.csv", tmp_path / "own", *flags) == 0
    model = "cardiobench/pixel-motion"
    assert scores(model, "mine/ef", tmp_path) == scores(model, "phantom_echo/ef", tmp_path)


def test_camus_half_sequences_in_nifti(tmp_path):
    raw = tmp_path / "raw"
    assert main(["phantom", "camus", "--out", str(raw)]) == 0
    frame = open_dataset("camus", raw).frame
    frame[["id", "patient_id", "split", "view", "sex", "age", "ef"]].assign(
        file=[path.rpartition("/")[2] for path in frame["media"]]
    ).to_csv(tmp_path / "labels.csv", index=False)
    flags = ("--target", "ef", "--label-unit", "ef=%", "--range", "ef=0:100", "--per", "ef=patient")
    assert adopt(raw, tmp_path / "labels.csv", tmp_path / "own", *flags) == 0
    model = "cardiobench/pixel-motion"
    ours, theirs = scores(model, "mine/ef", tmp_path), scores(model, "camus/ef", tmp_path, data_dir=raw)
    assert {**ours, "coverage": None} == {**theirs, "coverage": None}
