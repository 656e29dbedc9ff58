"""Published answers: a network's probabilities for fold 10 of PTB-XL, and the readings of CODE-test."""

import io
import pickletools
from pathlib import Path

import numpy as np
import pandas as pd

import cardiobench
from benchmarks.real.rows import EXACT, Row, check
from benchmarks.real.sources import CODE_TEST, FUSION, FUSION_MODELS, READERS, XRESNET
from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.results.score_result import ScoreResult
from cardiobench.tasks.answers import probability_columns

NETWORK = "dnn"


def array_of_pickle(content: bytes, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Return the numbers of an array that `numpy.ndarray.dump` wrote in protocol 2, without executing the pickle.

    The bytes of the array are the longest text of the pickle, one character for each byte.

    Args:
        content: The file.
        shape: Expected shape.
        kind: Expected type, such as "<f4".

    Raises:
        BadData: The longest text does not have the size of such an array.
    """
    texts = [value for _, value, _ in pickletools.genops(content) if isinstance(value, str)]
    data = max(texts, key=len, default="").encode("latin-1", errors="replace")
    if len(data) != np.dtype(kind).itemsize * np.prod(shape):
        raise BadData(f"the file holds {len(data)} bytes; an array {shape} of {kind} has another size.")
    return np.frombuffer(data, kind).reshape(shape)


def score_and_check(answers: pd.DataFrame, task: str, references: pd.DataFrame, name: str, seen: object) -> ScoreResult:
    """Score answers, and compare the score with that of scikit-learn."""
    result = cardiobench.score(
        answers, task, references, model_name=name, protocol_name="published_answers", seen_in_pretraining=seen
    )
    check(result, answers.merge(references[["id", "y_true"]], on="id"), catalog.task(task).classes)
    return result


def xresnet(clone: Path) -> list[Row]:
    """Score the probabilities of xresnet1d101 for 71 statements of 2,203 recordings.

    The rows are those of fold 10 of release 1.0.1. The repository has neither ids nor patients, so the interval is over recordings.
    """
    task = catalog.task("ptb_xl/all")
    predicted, labels = XRESNET.files
    shape = (2203, len(task.classes))
    truth = array_of_pickle(XRESNET.read(clone, labels), shape, "<i8").astype(bool)
    ids = [f"{row:04d}" for row in range(len(truth))]
    cells = [";".join(name for name, one in zip(task.classes, row, strict=True) if one) for row in truth]
    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": cells})
    probabilities = array_of_pickle(XRESNET.read(clone, predicted), shape, "<f4").astype(float)
    answers = pd.DataFrame(probabilities, columns=probability_columns(task)).assign(id=ids)
    result = score_and_check(answers, task.name, references, "helme/xresnet1d101", XRESNET.seen)
    return [Row.of(result, "published answers", known_patients=False)]


def fusion(clone: Path) -> list[Row]:
    """Score the probabilities of three networks for the five superclasses of the 2,198 recordings of fold 10.

    The networks read the vectors of a trained ECG network, measurements, or both. The repository does not have the patients,
    so the interval is over recordings. 40 recordings have none of the classes, and count as negatives, as for the authors.

    Raises:
        BadData: A score differs from that of the authors' table.
    """
    task, rows = catalog.task("ptb_xl/super"), []
    for name in FUSION_MODELS:
        start = f"results/stage14l/{name}/stage14l_{name}_mlp"
        answers, printed = (
            pd.read_csv(io.BytesIO(FUSION.read(clone, f"{start}_{part}.csv")), dtype={"ecg_id": str})
            for part in ("test_predictions", "metrics_test")
        )
        truth = answers[[f"{label}_true" for label in task.classes]].astype(bool)
        references = answers[["ecg_id", "split"]].set_axis(["id", "split"], axis=1)
        references = references.assign(
            patient_id=references["id"], y_true=_cells(truth.set_axis(list(task.classes), axis=1))
        )
        given = answers.rename(columns={"ecg_id": "id", **{f"{label}_prob": f"p_{label}" for label in task.classes}})
        given = given[["id", *probability_columns(task)]]
        result = score_and_check(given, task.name, references, f"seefreewind/{name}_mlp", FUSION.seen)
        compare_with_macro(result, float(printed.set_index("label").loc["macro", "auroc"]))
        rows.append(Row.of(result, "published answers", known_patients=False))
    return rows


def compare_with_macro(result: ScoreResult, printed: float) -> None:
    """Compare a score with the number of the authors' table.

    Raises:
        BadData: They differ.
    """
    if not abs(result.score.value - printed) <= EXACT:
        raise BadData(
            f"{result.model['name']}: {result.metric} is {result.score.value!r}, and {printed!r} in metrics_test.csv."
        )


def code_test(clone: Path) -> list[Row]:
    """Score the readings of CODE-test, and the probabilities of the network.

    Raises:
        BadData: An F1 score differs from that of the authors' table.
    """
    task = catalog.task("code_test/six")
    read = {name.split("/")[-1].split(".")[0]: CODE_TEST.read(clone, name) for name in CODE_TEST.files}
    labels = {
        name: pd.read_csv(io.BytesIO(read[name]))[list(task.classes)].astype(bool)
        for name in ("gold_standard", *READERS)
    }
    gold = labels.pop("gold_standard")
    ids = [f"{row:03d}" for row in range(len(gold))]
    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": _cells(gold)})
    rows = []
    for reader, given in labels.items():
        answers = pd.DataFrame({"id": ids, "y_pred": _cells(given)})
        result = score_and_check(answers, task.name, references, f"CODE-test/{reader}", "none")
        rows.append(Row.of(result, "readings"))
    compare_with_table(gold, labels, pd.read_csv(io.BytesIO(read["scores"]), header=[0, 1], index_col=0))
    # The columns of the file are in the order of the README of the repository.
    order = ["1dAVb", "RBBB", "LBBB", "SB", "AF", "ST"]
    probabilities = pd.DataFrame(np.load(io.BytesIO(read["model"]), allow_pickle=False), columns=order)
    columns = probabilities.astype(float).add_prefix("p_")[probability_columns(task)].assign(id=ids)
    rows.append(
        Row.of(
            score_and_check(columns, task.name, references, f"CODE-test/{NETWORK}", "none"), "published probabilities"
        )
    )
    return rows


def compare_with_table(gold: pd.DataFrame, labels: dict[str, pd.DataFrame], table: pd.DataFrame) -> None:
    """Compare F1 scores with the three digits of the authors' table.

    Raises:
        BadData: One differs.
    """
    columns = dict(zip(("dnn", *READERS[:3]), ("DNN", "cardio.", "emerg.", "stud."), strict=True))
    for reader, given in labels.items():
        for name in gold:
            both, either = (gold[name] & given[name]).sum(), gold[name].sum() + given[name].sum()
            printed = float(table.loc[name, ("F1 score", columns[reader])])
            if round(2 * both / either, 3) != printed:
                raise BadData(f"{reader}, {name}: F1 is {2 * both / either:.4f}, and {printed} in scores.csv.")


def _cells(table: pd.DataFrame) -> list[str]:
    return [";".join(name for name, one in row.items() if one) for row in table.to_dict("records")]
