"""Evaluate as in the echo benchmark paper: one library call for every number of every resample.

This is an independent implementation of the published evaluator's behaviour: the peer of `reference_eval.py` and the reference
of the tests. It shares no code with the package. Groups are omitted because they have no resamples.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr
from sklearn import metrics as sk

B, SEED = 1000, 42
VIEWS = ["A2C", "A3C", "A4C", "PSAX", "PLAX", "Other"]
COLUMNS = [f"prob_{view}" for view in VIEWS]


def regression(y, p):
    spread = y.max() - y.min()
    flat = min(np.std(y), np.std(p)) < 1e-12
    mae, mse = sk.mean_absolute_error(y, p), sk.mean_squared_error(y, p)
    found = {
        "MAE": mae,
        "NMAE(%)": mae / spread * 100 if spread else np.nan,
        "MSE": mse,
        "RMSE": np.sqrt(mse),
        "R2(%)": sk.r2_score(y, p) * 100 if spread else np.nan,
        "Pearson_r(%)": np.nan if flat else pearsonr(y, p)[0] * 100,
        "Spearman_rho(%)": np.nan if flat else spearmanr(y, p)[0] * 100,
    }
    return {key: np.round(value, 2) for key, value in found.items()}


def hits(y, p, name):
    return {
        "Accuracy(%)": sk.accuracy_score(y, p) * 100,
        "Balanced_Accuracy(%)": sk.balanced_accuracy_score(y, p) * 100,
        name: sk.f1_score(y, p, average="macro", labels=np.unique(y), zero_division=0) * 100,
    }


def classification(y, p):
    return {key: np.round(value, 4) for key, value in hits(y, p, "F1(%)").items()}


def view(y, table):
    table = table / table.sum(axis=1, keepdims=True)
    confidence, guess = table.max(axis=1), table.argmax(axis=1)
    right, edges, ece = (guess == y).astype(float), np.linspace(0, 1, 16), 0.0
    for place in range(15):
        inside = (confidence > edges[place]) & (confidence <= edges[place + 1])
        if place == 0:
            inside |= confidence == 0
        if inside.any():
            ece += abs(right[inside].mean() - confidence[inside].mean()) * inside.mean()
    found = hits(y, guess, "F1_macro(%)") | {
        "Brier_multiclass(%)": np.mean(((table - np.eye(6)[y]) ** 2).sum(axis=1)) * 100,
        "NLL_multiclass(%)": sk.log_loss(y, table, labels=range(6)) * 100,
        "ECE_top1(%)": ece * 100,
    }
    return {key: np.round(value, 2) for key, value in found.items()}


def loop(statistic, y, p, decimals, resamples=B):
    """Return value, mean and quantiles of every number."""
    rng, drawn = np.random.default_rng(SEED), []
    for _ in range(resamples):
        rows = rng.integers(0, len(y), size=len(y))
        drawn.append(statistic(y[rows], p[rows]))
    columns = {}
    for key, value in statistic(y, p).items():
        values = np.array([resample[key] for resample in drawn], dtype=float)
        columns |= {key: value, f"{key}_mean": round(float(values.mean()), decimals)}
        for name, share in (("lo", 0.025), ("hi", 0.975)):
            columns[f"{key}_ci_{name}"] = round(float(np.quantile(values, share)), decimals)
    return columns


def truths(splits: Path) -> list[tuple]:
    """Yield (kind, folder of predictions, id, truth, prediction, output) of each table, with true values in row order."""
    pediatric = pd.read_csv(splits / "echonet_pediatric_filelist.csv").query("Split == 0")
    dynamic = pd.read_csv(splits / "EchoNet-Dynamic/FileList.csv").query("Split == 'test'")
    camus = pd.read_csv(splits / "camus_split.csv")
    patients = camus.query("split == 'test'").sort_values("patient_id").drop_duplicates("patient_id")
    asd, pah = (pd.read_csv(splits / f"cardiacnet/cardiacnet_{name}_split.csv") for name in ("asd", "pah"))
    both = pd.concat([asd, pah]).drop_duplicates("unique_id").query("split == 'test'")
    hmc = pd.read_csv(splits / "hmcqu_split.csv").query("split == 'test'")
    studies = pd.read_csv(splits / "tmed2/per_study.csv").query("split == 'test'")
    images = pd.read_csv(splits / "tmed2/per_image.csv").query("split == 'test'")
    wall = pd.read_csv(splits / "segrwma_split.csv").query("split == 'test' and modality == '2D'")
    lvh = {name: pd.read_csv(splits / f"echonet_lvh/{name}_split.csv").query("split == 'test'") for name in LVH}
    lvh = {name: frame.drop_duplicates("HashedFileName") for name, frame in lvh.items()}
    found = [
        ("reg", "EchoNet-Dynamic/EF", "FileName", dynamic["EF"], dynamic, "EF_pred", "EF_metrics_bootstrap"),
        ("view", "EchoNet-Dynamic/view", "FileName", "A4C", dynamic, "", "view_metrics_bootstrap"),
        ("reg", "EchoNet-Pediatric/EF", "FileName", pediatric["EF"], pediatric, "EF_pred", "EF_overall_bootstrap"),
        ("view", "EchoNet-Pediatric/view", "FileName", pediatric["view"], pediatric, "", "view_metrics_bootstrap"),
        ("reg", "CAMUS/EF", "patient_id", patients["EF"], patients, "EF_pred", "EF_overall"),
        (
            "view", "CAMUS/view", "unique_id", camus["view"].replace({"2CH": "A2C", "4CH": "A4C"}), camus, "",
            "view_metrics",
        ),
        *(
            ("reg", f"EchoNet-LVH/{n}", "HashedFileName", f["CalcValue"], f, f"{n}_pred", "LVH_regression_bootstrap")
            for n, f in lvh.items()
        ),
        ("view", "EchoNet-LVH/view", "HashedFileName", "PLAX", lvh["LVPWd"], "", "LVH_view_metrics"),
        ("class", "CardiacNet/ASD", "unique_id", asd["ASD"], asd.query("split == 'test'"), "asd_pred", "ASD"),
        ("class", "CardiacNet/PAH", "unique_id", pah["PAH"], pah.query("split == 'test'"), "pah_pred", "PAH"),
        ("view", "CardiacNet/view", "unique_id", "A4C", both, "", "view_metrics"),
        ("class", "HMCQU/stemi", "unique_id", hmc["STEMI"], hmc, "stemi_pred", "hmcqu_stemi_metrics"),
        ("view", "HMCQU/view", "unique_id", hmc["view"], hmc, "", "hmcqu_view_metrics"),
        ("class", "TMED2/AS", "study_id", studies["diagnosis_label"], studies, "as_pred", "as_metrics"),
        (
            "view", "TMED2/view", "query_key", images["view"].replace("A4CorA2CorOther", "Other"), images, "",
            "as_view_metrics",
        ),
        *(
            ("class", f"segRWMA/rwma/{v}", "patient_id", wall["abnormal"], wall[wall["view"] == v], "rwma_pred",
             "rwma_metrics")
            for v in ("A2C", "A3C", "A4C")
        ),
        ("view", "segRWMA/view", "patient_view_id", wall["view"], wall, "", "rwma_view_metrics"),
    ]  # fmt: skip
    return found


LVH = ("IVSd", "LVIDd", "LVPWd")


def evaluate(inputs: Path, resamples: int = B) -> dict[tuple[str, str], dict[str, float]]:
    """Return a mapping from (output file, model or target) to the columns of its row."""
    rows = {}
    for kind, folder, key, label, frame, answer, output in truths(inputs / "splits"):
        dataset, task, *only = folder.split("/")
        truth = frame[[key]].assign(y=label)
        for path in sorted((inputs / "example_predictions" / dataset / task).glob("*.csv")):
            if only and not path.stem.upper().endswith(only[0]):
                continue
            joined = truth.merge(pd.read_csv(path).drop(columns="y", errors="ignore"), on=key)
            if kind == "view":
                joined["prob_Other"] = (1 - joined[COLUMNS[:-1]].sum(axis=1)).clip(0, 1)
                y = joined["y"].map({name: place for place, name in enumerate(VIEWS)}).to_numpy()
                columns = loop(view, y, joined[COLUMNS].to_numpy(), 2, resamples)
            else:
                y, p = joined["y"].to_numpy(float), joined[answer].to_numpy(float)
                if kind == "reg":
                    columns = loop(regression, y, p, 2, resamples)
                else:
                    columns = loop(classification, y, p, 4, resamples)
            rows[f"{dataset}/{output}.csv", task if dataset == "EchoNet-LVH" and kind == "reg" else path.stem] = {
                "n": len(joined)
            } | columns
    return rows
