"""Run the builders as loading scripts with the last `datasets` that supports them; `make test-scripts` installs it."""

import json
import os
import shutil
import subprocess
import sys

import datasets
import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.data.twin import list_twins, write_twin

SCRIPTS_RUN = int(datasets.__version__.split(".")[0]) < 4
RAW_OF = {**{name: name for name in list_twins()}, "ptb_xl_500": "ptb_xl"}  # Dataset -> release that it reads.
NEEDS_NO_DATA = [name for name in catalog.list_datasets() if name not in RAW_OF and name != "mimic_iv_echo"]

LOAD = """
import json, sys, datasets
name, folder = sys.argv[1:]
made = datasets.load_dataset(f"cardiobench/{name}", data_dir=folder or None, trust_remote_code=True)
first = {split: part[0]["id"] for split, part in made.items()}
print(json.dumps([{split: len(part) for split, part in made.items()}, first, sorted(next(iter(made.values())).features)]))
"""


LABELS = """
import json, sys, datasets
name, folder = sys.argv[1:]
made = datasets.load_dataset(f"cardiobench/{name}", data_dir=folder, trust_remote_code=True)
print(json.dumps({row["id"]: row["ef"] for part in made.values() for row in part}))
"""


def write_script(name, out):
    """Write the builder under the repository's name, `out/cardiobench/<name>/<name>.py`, as `datasets` 3 runs it."""
    folder = out / "cardiobench" / name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(catalog.dataset_folder(name) / "builder.py", folder / f"{name}.py")


def load(name, raw, folder, home, code=LOAD):
    environment = {**os.environ, "HF_HOME": str(home)}
    line = [sys.executable, "-c", code, name, str(raw or "")]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not SCRIPTS_RUN, reason=f"datasets {datasets.__version__} runs no loading scripts")
@pytest.mark.parametrize("name", [*sorted(RAW_OF), *NEEDS_NO_DATA])
def test_load_dataset_runs_the_script(name, tmp_path):
    raw = None
    if name in RAW_OF:
        raw = tmp_path / "raw"
        write_twin(RAW_OF[name], raw, patients=12)
    write_script(name, tmp_path)
    done = load(name, raw, tmp_path, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    sizes, first, columns = json.loads(done.stdout.splitlines()[-1])
    frame = catalog.builder(name).table(raw).frame
    assert sizes == frame["split"].value_counts().to_dict()
    assert all(identity in set(frame.loc[frame["split"] == split, "id"]) for split, identity in first.items())
    assert {task.target for task in catalog.spec(name).tasks} <= set(columns)


@pytest.mark.skipif(not SCRIPTS_RUN, reason=f"datasets {datasets.__version__} runs no loading scripts")
def test_changed_label_is_not_served_from_the_cache(tmp_path):
    raw = tmp_path / "raw"
    write_twin("echonet_dynamic", raw, patients=4)
    write_script("echonet_dynamic", tmp_path)

    def labels():
        done = load("echonet_dynamic", raw, tmp_path, tmp_path / "home", LABELS)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), "Generating" in done.stderr

    (before, generated), (again, generated_again) = labels(), labels()
    assert again == before and generated and not generated_again
    (table,) = raw.rglob("FileList.csv")
    frame = pd.read_csv(table)
    frame.loc[0, "EF"] = 33.25
    frame.to_csv(table, index=False)
    assert labels() == ({**before, frame.loc[0, "FileName"]: 33.25}, True)


@pytest.mark.skipif(not SCRIPTS_RUN, reason=f"datasets {datasets.__version__} runs no loading scripts")
def test_script_without_data_names_source(tmp_path):
    write_script("camus", tmp_path)
    done = load("camus", None, tmp_path, tmp_path / "home")
    assert done.returncode
    assert "Request it at https://" in done.stderr and "cardiobench phantom camus --out camus_twin" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(SCRIPTS_RUN, reason=f"datasets {datasets.__version__} runs loading scripts")
def test_newer_versions_refuse_scripts(tmp_path):
    write_script("ptb_xl_sample", tmp_path)
    done = load("ptb_xl_sample", None, tmp_path, tmp_path / "home")
    assert done.returncode and "Dataset scripts are no longer supported" in done.stderr
