"""The recipes of CONTRIBUTING.md, written out and run as they stand there."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cardiobench.data.media.write import avi

BLOCK = re.compile(r"<!-- (write: (?P<path>\S+)|run) -->\n```\w+\n(?P<text>.*?)```", re.S)


@pytest.fixture(scope="module")
def checkout(root, tmp_path_factory):
    """A copy of the checkout with the recipes' files, and a raw folder of twelve clips whose brightness is their label."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("cardiobench", "hf_datasets", "hf_metrics", "model_cards"):
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in BLOCK.finditer((root / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        if block["path"]:
            path = copy / block["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
    clips = copy / "toy" / "clips"
    clips.mkdir(parents=True)
    with (copy / "toy" / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "patient", "split", "sex", "ef"])
        for number in range(12):
            split = "train" if number < 6 else "validation" if number < 8 else "test"
            (clips / f"{number}.avi").write_bytes(avi(np.full((3, 32, 32, 3), 60 + 10 * number, np.uint8), 30))
            writer.writerow([f"{number}.avi", number, split, "FM"[number % 2], 30 + 3 * number])
    return copy


def call(checkout, *line):
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(
        [sys.executable, *line], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_three_recipes_work_together(checkout, root):
    command = next(
        b["text"] for b in BLOCK.finditer((root / "CONTRIBUTING.md").read_text(encoding="utf-8")) if not b["path"]
    )
    word, *line = command.split()
    assert word == "python"
    done = call(checkout, *line)
    assert done.returncode == 0, done.stderr
    result = json.loads((checkout / "results" / "me__mean-picture" / "1" / "probe" / "toy_echo__ef.json").read_text())
    # brightness is linear in the label, so the probe is right but for the compression of the clips
    assert result["overall"]["mae"]["value"] < 1
    assert result["overall"]["within_five"]["value"] == 1
    assert result["coverage"] == {"scored": 4, "expected": 4}


@pytest.mark.slow
def test_the_metric_loads_in_evaluate(checkout):
    code = "import evaluate; print(evaluate.load('hf_metrics/within_five').compute(references=[50.0, 60.0], predictions=[54.0, 70.0]))"
    done = call(checkout, "-c", code)
    assert done.stdout.strip() == "{'within_five': 0.5}", done.stderr
