"""Check that the Hub names in the README load from a mirror, with the unmodified libraries and without a network."""

import errno
import os
import re
import subprocess
import sys

import pytest

from cardiobench.core.errors import BadData, DiskFull, UnknownName
from cardiobench.extensions.mirror.mirror import mirror_datasets, mirror_metrics
from cardiobench.metrics.load import own_metrics


def test_metrics_are_copied_again_over_an_earlier_mirror(tmp_path):
    for _ in range(2):
        assert mirror_metrics(tmp_path) == list(own_metrics())
    assert {folder.name for folder in (tmp_path / "cardiobench").iterdir()} == set(own_metrics())
    assert (tmp_path / "cardiobench" / "mae" / "mae.py").is_file()


def test_unrelated_folders_are_not_overwritten(tmp_path):
    other = tmp_path / "cardiobench" / "mae" / "notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("mine", "utf-8")
    with pytest.raises(BadData, match="mae exists and is not the metric mae"):
        mirror_metrics(tmp_path)
    assert other.read_text("utf-8") == "mine"


def full(*given, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_mirror_on_a_full_disk_gives_one_message(tmp_path, monkeypatch):
    mirror_metrics(tmp_path)
    files = sorted(tmp_path.rglob("*.py"))
    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(DiskFull, match=r"in .* cannot be written: No space left"):
        mirror_metrics(tmp_path)
    assert sorted(tmp_path.rglob("*.py")) == files
    monkeypatch.setattr("cardiobench.extensions.mirror.mirror.write_twin", full)
    monkeypatch.delenv("CARDIOBENCH_DATA", raising=False)
    with pytest.raises(DiskFull, match=r"the twin of tmed2 in .* cannot be written"):
        list(mirror_datasets(tmp_path, ["tmed2"], twins=True))


def test_dataset_without_data_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("CARDIOBENCH_DATA", raising=False)
    ((name, outcome),) = mirror_datasets(tmp_path, ["tmed2"])
    assert name == "tmed2" and "TMED-2" in outcome.problem and not outcome.twin
    assert not (tmp_path / "cardiobench" / "tmed2").exists()


def test_unknown_names_are_refused_before_writing(tmp_path):
    with pytest.raises(UnknownName, match="tmed2"):
        list(mirror_datasets(tmp_path, ["phantom_ecg", "tmed"]))
    assert not (tmp_path / "cardiobench").exists()


@pytest.mark.slow
def test_page_of_the_manual_runs_unchanged(root, tmp_path):
    page = (root / "cardiobench/extensions/mirror/docs.md").read_text("utf-8")
    (code,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    env = {name: value for name, value in os.environ.items() if name != "CARDIOBENCH_DATA"}
    env |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    code = re.sub(r"^cardiobench", f"{sys.executable} -m cardiobench.cli", code)
    code = code.replace("python -c", f"{sys.executable} -c")
    done = subprocess.run(["bash", "-ec", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "wrote tmed2: synthetic twin" in done.stdout and not [*tmp_path.rglob("twin.py")]
    assert re.search(r"DatasetDict\(.*test: Dataset", done.stdout, re.DOTALL) and "shap_overlap" in done.stdout
    lines = re.search(r"```python\n(load_dataset.*?)```", (root / "README.md").read_text("utf-8"), re.DOTALL)[1]
    code = f"import evaluate\nfrom datasets import load_dataset\nds = {lines}\nprint(ds['test'].info.description)"
    here = {"cwd": tmp_path / "hub", "env": env, "check": True, "timeout": 120, "capture_output": True, "text": True}
    loaded = subprocess.run([sys.executable, "-c", code], **here)
    assert loaded.stdout.startswith("Synthetic twin of TMED-2, with ")
    plan = [sys.executable, "-m", "cardiobench.eval", "--model", "cardiobench/pixel-motion", "--dry-run"]
    planned = subprocess.run(plan, **here).stdout
    assert "tmed2/as" in planned and "synthetic twin" in planned, "twins that were written here are evaluated"
