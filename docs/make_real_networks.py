"""Write docs/real_networks.md from the measured rows of benchmarks/real.

python docs/make_real_networks.py
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # `benchmarks` is not installed.

from benchmarks.real.rows import Row, table  # noqa: E402
from benchmarks.real.sources import SOURCES, Source  # noqa: E402

ROWS = ROOT / "benchmarks" / "real" / "rows.json"
INTRO = """\
# Real networks and real answers

Trained networks and published answers that anyone can fetch, scored by CardioBench. None of their code, weights or data comes with
the package. Networks without a licence for their weights may be run here, but not passed on. `--list` names the
repositories and commits to clone into one folder, here `clones`. In a checkout of CardioBench:

```text
python -m benchmarks.real --list
python -m benchmarks.real clones --only trustecg
```

A file that differs from that of the stated commit is refused. Checkpoints are read with `torch.load(weights_only=True)`. After each run, scikit-learn
computes the score again from the saved answers, and a difference above 1e-12 is an error.
"""
SOURCES_HEAD = """
## Where they come from

| name | repository and commit | bytes | licence | trained on | the authors' number |
|---|---|---|---|---|---|
"""
SCORES = """
## Scores

AUROC and F1 in percent, MAE in cm2, each with the 95 % interval over patients. `native` is the network's own head; `probe` and `knn` use its vectors.
Scores on the 114 ECGs have wide intervals. They do not equal the authors' numbers, which are for all of fold 10.
"Seen in pretraining" means that PTB-XL's labels were used in training; the tested recordings (folds 9 and 10) were not, but
fold 9 chose the checkpoints. Of the ONNX files the training folds are not known.
"""
TEXTS = {
    "trustecg": "TrustECG: 276 thousand weights, by its own class and head.",
    "ecg_scope": "ECG-Scope: 47 thousand weights, by its own class and head.",
    "inceptiontime": "InceptionTime: 459 thousand weights, by its own class and head.",
    "onnx": (
        "Two ONNX files of one small network, exported from PyTorch and converted from Keras, with `--model FILE.onnx` and no code. Their vectors are the "
        "five outputs. The repository states the shape of the input only. Leads, rate and scale were found on the training records: of 40 formats "
        "tried for each file, the best of the network's own outputs among those without a filter, which the command line cannot state:\n\n```text\n"
        "cardiobench eval --model clones/pynq-onnx-demo/model_files/alexnet_1d_ptbxl.onnx --tasks ptb_xl_sample/super --protocols probe knn \\\n"
        "  --preprocessing fs=204.8 seconds=10 leads=II,III,V1,V2,V3,V4,V5,V6 scale=standardise --seen-in-pretraining ptb_xl\n```"
    ),
    "package": (
        "The openecg codec of the extra `pretrained`, which saw no label of PTB-XL, the same network with random weights, and baselines. "
        "The vectors come with the package."
    ),
    "xresnet1d101": (
        "Answers of xresnet1d101 for 71 statements. The repository has the labels, but neither ids nor patients: the interval is over recordings."
    ),
    "fusion": (
        "Answers of three networks for the five superclasses of all 2,198 recordings of fold 10. They read the vectors of an ECG network that was trained "
        "on folds 1 to 8, these vectors with 138 measurements of PTB-XL+, and the measurements alone. 40 recordings have none of the classes and count "
        "as negatives, as in the authors' table; the task `ptb_xl/super` itself leaves them out. The repository does not state the patients: the interval is "
        "over recordings."
    ),
    "code_test": "Readings of CODE-test, and the network's probabilities. {doc}`my_predictions` explains such files.",
    "camus": (
        "EfficientNet-Lite0, trained on photographs, on end-diastolic frames of CAMUS (apical four-chamber view): area of the left ventricle. "
        "The frames are adopted from the clone (`cardiobench adopt`) with the areas of its masks. Random weights have timm's initialisation."
    ),
}


def read_rows() -> Mapping[str, list[Row]]:
    """Return the measured rows by run."""
    measured = json.loads(ROWS.read_text(encoding="utf-8"))
    return {name: [Row(**row) for row in measured[name]] for name in TEXTS if name in measured}


def page(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return the page in Markdown."""
    sources = "\n".join(_source(name, SOURCES[name]) for name in rows if name in SOURCES)
    parts = [f"\n{TEXTS[name]}\n\n{table(listed)}" for name, listed in rows.items()]
    return INTRO + SOURCES_HEAD + sources + "\n" + SCORES + "\n".join(parts) + "\n"


SHORT = (
    ("trustecg", "native", "trained with PTB-XL's labels, by its own head"),
    ("inceptiontime", "native", "trained with PTB-XL's labels, by its own head"),
    ("ecg_scope", "native", "trained with PTB-XL's labels, by its own head"),
    ("onnx", "probe", "trained with PTB-XL's labels, an ONNX file"),
)
"""Run, protocol and description of the published networks on the first screen: the first row of each."""


def short(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return scores of published networks on the bundled ECGs as rows of a Markdown table."""
    found = [(next(row for row in rows[run] if row.how == how), text) for run, how, text in SHORT]
    return "\n".join(
        f"| {row.what} | {100 * row.value:.2f} | {100 * row.low:.2f} – {100 * row.high:.2f} | {text} |"
        for row, text in found
    )


def _source(name: str, source: Source) -> str:
    where = f"[{source.repository}](https://github.com/{source.repository}) `{source.commit[:10]}`"
    size = f"{source.size:,}" if source.size else "-"
    cells = (f"`{name}`", where, size, source.licence, source.trained_on, source.reported or "none")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    (ROOT / "docs" / "real_networks.md").write_text(page(read_rows()), encoding="utf-8")
