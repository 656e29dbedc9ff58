"""Synthetic true values and predictions in the layout and with the row counts of the echo benchmark's published evaluation."""

from pathlib import Path

import numpy as np
import pandas as pd

VIEWS = ["A2C", "A3C", "A4C", "PSAX", "PLAX"]
FULL = {
    "dynamic": 1277, "pediatric": 658, "camus": 50, "lvh": 340, "asd": 47, "pah": 106, "hmc": 50, "studies": 119,
    "images": 3602, "wall": 52,
}  # fmt: skip


def write_inputs(folder: Path, sizes: dict[str, int] = FULL, seed: int = 0) -> Path:
    """Write `splits/` and `example_predictions/`; predictions and true values have different row orders.

    Args:
        folder: Output folder, which is created.
        sizes: Test rows (patients for `camus` and `wall`) of each dataset; each also has half as many train rows.
        seed: Seed of all random numbers.
    """
    rng = np.random.default_rng(seed)

    def save(name: str, frame: pd.DataFrame, shuffle: bool = False) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (frame.sample(frac=1, random_state=seed) if shuffle else frame).to_csv(path, index=False)

    def answers(name: str, frame: pd.DataFrame) -> None:
        save(f"example_predictions/{name}.csv", frame, shuffle=True)

    def splits(n: int, test="test", train="train") -> list:
        return [*[test] * n, *[train] * (n // 2)]

    def views(name: str, key: str, ids, truth) -> None:
        good = np.eye(5)[[VIEWS.index(view) if view in VIEWS else 3 for view in truth]]
        table = 0.4 * good + 0.6 * rng.dirichlet(np.ones(5), len(good)) * rng.uniform(0.7, 1, (len(good), 1))
        columns = {f"prob_{view}": table[:, place] for place, view in enumerate(VIEWS)}
        label = np.where(rng.random(len(good)) < 0.9, np.array(VIEWS)[table.argmax(axis=1)], "Doppler")
        answers(name, pd.DataFrame({key: ids, "view_pred": label, **columns}))

    def values(truth, spread: float) -> np.ndarray:
        return (np.asarray(truth) + rng.normal(0, spread, len(truth))).astype(np.float32)

    def guesses(truth, wrong: float = 0.3) -> np.ndarray:
        return np.where(rng.random(len(truth)) < wrong, 1 - np.asarray(truth), truth)

    n = sizes["dynamic"]
    frame = pd.DataFrame({"FileName": [f"0X{i:016X}" for i in range(n + n // 2)]})
    frame = frame.assign(EF=rng.normal(56, 12, len(frame)).round(1), Split=splits(n))
    save("splits/EchoNet-Dynamic/FileList.csv", frame)
    answers(
        "EchoNet-Dynamic/EF/model", pd.DataFrame({"FileName": frame["FileName"], "EF_pred": values(frame["EF"], 9)})
    )
    views("EchoNet-Dynamic/view/model", "FileName", frame["FileName"], ["A4C"] * len(frame))

    n = sizes["pediatric"]
    count = n + n // 2
    who = rng.integers(0, n // 3, count)
    frame = pd.DataFrame({"FileName": [f"CR{p:05d}-CR{p:05d}-{i:06d}.avi" for i, p in enumerate(who)]})
    frame = frame.assign(
        EF=rng.normal(60, 8, count).round(2), Sex=rng.choice(["F", "M", "O"], count), Age=rng.integers(0, 21, count),
        Weight=rng.uniform(3, 90, count).round(1), Height=rng.uniform(50, 185, count).round(1), Split=splits(n, 0, 3),
        view=rng.choice(["A4C", "PSAX"], count),
    )  # fmt: skip
    save("splits/echonet_pediatric_filelist.csv", frame)
    answered = frame[["FileName", "view"]].assign(EF_pred=values(frame["EF"], 6))
    answers("EchoNet-Pediatric/EF/model", answered)
    views("EchoNet-Pediatric/view/model", "FileName", frame["FileName"], frame["view"])

    n = sizes["camus"]
    people = pd.DataFrame({"patient_id": [f"patient{i:04d}" for i in range(n + n // 2)]})
    people = people.assign(
        EF=rng.normal(50, 12, len(people)).round(), Sex=rng.choice(["F", "M"], len(people)),
        Age=rng.integers(20, 95, len(people)), ImageQuality=rng.choice(["poor", "Medium", "GOOD"], len(people)),
        split=splits(n),
    )  # fmt: skip
    frame = people.merge(pd.DataFrame({"view": ["4CH", "2CH"]}), how="cross").sample(frac=1, random_state=seed)
    frame["unique_id"] = frame["patient_id"] + "_" + frame["view"]
    save("splits/camus_split.csv", frame)
    answers("CAMUS/EF/model", people[["patient_id"]].assign(EF_pred=values(people["EF"], 8)))
    views("CAMUS/view/model", "unique_id", frame["unique_id"], frame["view"].map({"2CH": "A2C", "4CH": "A4C"}))

    n = sizes["lvh"]
    for target, mean in (("IVSd", 1.1), ("LVIDd", 4.6), ("LVPWd", 1.0)):
        frame = pd.DataFrame({"HashedFileName": [f"0X{i:06X}" for i in rng.permutation(n + n // 2)]})
        frame = frame.assign(CalcValue=rng.normal(mean, 0.2, len(frame)).round(3), split=splits(n))
        twice = frame.iloc[:3].assign(CalcValue=9.9)
        save(f"splits/echonet_lvh/{target}_split.csv", pd.concat([frame, twice]))
        answered = frame[["HashedFileName"]].assign(**{f"{target}_pred": values(frame["CalcValue"], 0.2)})
        answers(f"EchoNet-LVH/{target}/model", answered)
    views("EchoNet-LVH/view/model", "HashedFileName", frame["HashedFileName"], ["PLAX"] * len(frame))

    for name in ("asd", "pah"):
        n = sizes[name]
        frame = pd.DataFrame({"unique_id": [f"{i:03d}_image_{name}-{i}" for i in rng.permutation(n + n // 2)]})
        frame = frame.assign(patient_id=frame["unique_id"].str[:2], split=splits(n))
        frame[name.upper()] = (rng.random(len(frame)) < 0.6).astype(int)
        save(f"splits/cardiacnet/cardiacnet_{name}_split.csv", frame)
        answered = frame[["unique_id"]].assign(**{f"{name}_pred": guesses(frame[name.upper()])})
        answers(f"CardiacNet/{name.upper()}/model", answered)
        views(f"CardiacNet/view/model_{name}", "unique_id", frame["unique_id"], ["A4C"] * len(frame))

    n = sizes["hmc"]
    frame = pd.DataFrame({"patient_id": [f"ES{i:04d}" for i in range(n // 2)] + [f"ET{i:04d}" for i in range(n // 4)]})
    frame = frame.assign(split=splits(n // 2)[: len(frame)])
    frame = frame.merge(pd.DataFrame({"view": ["A2C", "A4C"]}), how="cross")
    frame = frame.assign(unique_id=frame["patient_id"] + "_" + frame["view"], STEMI=rng.integers(0, 2, len(frame)))
    save("splits/hmcqu_split.csv", frame)
    answers("HMCQU/stemi/model", frame[["unique_id"]].assign(stemi_pred=guesses(frame["STEMI"])))
    views("HMCQU/view/model", "unique_id", frame["unique_id"], frame["view"])

    n = sizes["studies"]
    frame = pd.DataFrame({"study_id": [f"{i}s1" for i in range(100, 100 + n + n // 2)], "split": splits(n)})
    frame["diagnosis_label"] = (rng.random(len(frame)) < 0.8).astype(int)
    save("splits/tmed2/per_study.csv", frame)
    answers("TMED2/AS/model", frame[["study_id"]].assign(as_pred=guesses(frame["diagnosis_label"])))
    tested, m = frame[frame["split"] == "test"], sizes["images"]
    images = tested.iloc[np.sort(rng.integers(0, len(tested), m))].reset_index(drop=True)
    images["query_key"] = images["study_id"] + "_" + images.index.astype(str) + ".png"
    images["view"] = rng.choice(["PLAX", "PSAX", "A2C", "A4C", "A4CorA2CorOther"], m)
    save("splits/tmed2/per_image.csv", images)
    views("TMED2/view/model", "query_key", images["query_key"], images["view"])

    n = sizes["wall"]
    frame = pd.DataFrame({"patient_id": [f"patient{i}" for i in range(n + n // 2)], "split": splits(n)})
    frame["abnormal"] = (rng.random(len(frame)) < 0.08).astype(int)
    frame.loc[:1, "abnormal"] = 1
    frame = frame.merge(pd.DataFrame({"view": ["A2C", "A3C", "A4C"]}), how="cross")
    frame = frame.merge(pd.DataFrame({"modality": ["2D", "LVO"]}), how="cross")
    frame["patient_view_id"] = frame["patient_id"] + "_" + frame["view"]
    save("splits/segrwma_split.csv", frame)
    flat = frame[frame["modality"] == "2D"]
    for view, rows in flat.groupby("view"):
        answered = rows[["patient_id"]].assign(rwma_pred=guesses(rows["abnormal"], 0.1))
        answers(f"segRWMA/rwma/model_{view.lower()}", answered)
    views("segRWMA/view/model", "patient_view_id", flat["patient_view_id"], flat["view"])
    return folder
