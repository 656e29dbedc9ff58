"""What every folder of hf_datasets/ keeps to; a new dataset is tested here by being there."""

import re
from collections import Counter

import pandas as pd
import pytest
import yaml

from cardiobench import api
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog, open_dataset
from cardiobench.data.builder import CardioBuilder, features
from cardiobench.data.prompts import prompts
from cardiobench.data.rows import RowTable
from cardiobench.scoring.bundled_labels import bundled_references
from cardiobench.scoring.metrics import list_metrics

NAMES = catalog.list_datasets()
TASKS = catalog.list_tasks()
SECTIONS = ("Access", "Raw layout", "Splits", "Groups", "Known problems", "Citation")
OPEN = {"CC BY 4.0": "cc-by-4.0", "CC BY-NC-SA 4.0": "cc-by-nc-sa-4.0", "Apache-2.0": "apache-2.0"}
IDS = {"id", "patient_id", "study_id", "split"}


def card(name):
    """Front matter and text of a dataset's card."""
    _, front, body = (catalog.dataset_folder(name) / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def generated_or_bundled(name):
    return catalog.spec(name).generated or (catalog.dataset_folder(name) / "data").is_dir()


@pytest.mark.parametrize("name", NAMES)
def test_builder_and_spec(name):
    builder, spec = catalog.builder(name), catalog.spec(name)
    assert issubclass(builder, CardioBuilder) and spec.name == name
    assert spec.generated or generated_or_bundled(name) or (spec.access.startswith("https://") and spec.detect_files)
    columns = features(spec)
    assert {"id", "patient_id", "split", spec.media} <= set(columns)
    if spec.modality == "echo":
        assert "key_frame" in columns
    names = [task.name for task in spec.all_tasks]
    assert names and max(Counter(names).values()) == 1
    for task in spec.all_tasks:
        assert task.name.startswith(f"{name}/") and catalog.task(task.name) is task
        assert task.description and set(task.metrics) <= set(list_metrics())
        assert {task.unit_column, task.target, *task.where} <= set(columns)
        assert {group.column for group in task.groups} <= set(columns)
        labels = columns[task.target].feature if task.kind == "multilabel" else columns[task.target]
        assert tuple(getattr(labels, "names", ())) == task.classes
        if task.kind == "regression":
            assert task.unit and task.label_range and (task.prompt_grid or spec.modality == "ecg")


@pytest.mark.parametrize("name", NAMES)
def test_front_matter_of_the_card(name):
    spec, (front, _) = catalog.spec(name), card(name)
    assert front["pretty_name"] and {spec.modality.replace("echo", "echocardiography"), "cardiobench"} <= set(
        front["tags"]
    )
    assert front["configs"][0]["config_name"] == "default"
    for config in front["configs"]:
        assert [part["split"] for part in config["data_files"]] == list(spec.splits)
        for part in config["data_files"]:
            paths = [part["path"]] if isinstance(part["path"], str) else part["path"]
            assert paths and all(path.endswith(f"{part['split']}-*.parquet") for path in paths)


@pytest.mark.parametrize("name", NAMES)
def test_licence_of_the_card_is_the_specs(name):
    spec, (front, body) = catalog.spec(name), card(name)
    assert spec.licence and spec.redistributable == (spec.licence in OPEN and "NC" not in spec.licence)
    if spec.licence in OPEN:
        assert front["license"] == OPEN[spec.licence]
    elif spec.licence.startswith("not stated"):
        assert front["license"] == "unknown" and "licence was not stated" in body
    else:
        assert front["license"] == "other" and front["license_name"] and front["license_link"] == spec.access
    assert spec.access in body
    if not spec.redistributable:
        assert "`publish` refuses" in " ".join(body.split())


@pytest.mark.parametrize("name", NAMES)
def test_text_of_the_card(name):
    spec, (_, body) = catalog.spec(name), card(name)
    assert body.strip().startswith("# ")
    assert f"**Use.** `cardiobench prepare {name} " in body
    if not generated_or_bundled(name):
        headed = re.findall(r"^\*\*([^*]+?)\.\*\*", body, flags=re.M)
        assert not set(SECTIONS) - set(headed)
        assert {"Tasks", "Labels"} & set(headed)
        assert "--data-dir" in body
    for task in spec.all_tasks:
        assert f"`{task.name}`" in body, "every task is explained"
    for count in spec.expected.values():
        assert f"{count:,}" in body, "the counts that are checked stand in the card"


@pytest.mark.parametrize("name", NAMES)
def test_eval_file_has_an_entry_for_each_task_and_metric(name):
    spec = catalog.spec(name)
    content = yaml.safe_load((catalog.dataset_folder(name) / "eval.yaml").read_text(encoding="utf-8"))
    assert set(content) == {"name", "description", "evaluation_framework", "tasks"}
    assert content["name"] == spec.title and content["evaluation_framework"] == "cardiobench"
    assert content["tasks"] == [
        {"id": f"{task.name.replace('/', '_')}_{metric}", "config": "default", "split": "test"}
        for task in spec.all_tasks
        for metric in task.metrics
    ]


def test_no_entry_of_an_eval_file_is_ambiguous():
    ids = [
        f"{name.replace('/', '_')}_{metric}"
        for name in (*TASKS, *catalog.list_dense_tasks())
        for metric in catalog.task(name).metrics
    ]
    assert max(Counter(ids).values()) == 1


@pytest.mark.parametrize("name", [name for name in TASKS if catalog.spec(name.partition("/")[0]).modality == "echo"])
def test_prompts_of_echo_tasks(name):
    task = catalog.task(name)
    chosen, version = prompts(task)
    assert version
    if task.kind == "regression":
        assert all(text.count("<#>") == 1 for text in chosen["templates"])
        return
    texts = [text for texts in chosen.values() for text in texts]
    assert set(chosen) == set(task.classes) and all(len(chosen[label]) >= 2 for label in task.classes)
    assert max(Counter(text.casefold() for text in texts).values()) == 1, "no sentence speaks for two classes"


@pytest.mark.parametrize("name", catalog.list_dense_tasks())
def test_dense_tasks_are_apart_and_name_their_structures(name):
    task = catalog.task(name)
    assert task.dense and task.structures and not task.classes
    assert task not in catalog.spec(task.dataset).tasks
    with pytest.raises(NotApplicable, match="no table of answers"):
        api.score(pd.DataFrame({"id": ["a"], "y_pred": [1]}), name, pd.DataFrame())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shipped(name):
    spec, folder = catalog.spec(name), catalog.dataset_folder(name)
    assert not (folder / f"{name}.py").exists(), (
        "`datasets` from version 4 on refuses a folder with a script of its own name"
    )
    for path in folder.glob("splits/*.csv"):
        columns = set(pd.read_csv(path, nrows=0).columns)
        assert spec.redistributable or columns <= IDS, "no label of a restricted dataset"
    if "Stanford" in spec.licence:
        assert not (folder / "splits").exists(), "not even ids of these"


# ---- the published constants: all answers alike on the test splits -------------------------------------------------


def references(name, raw):
    table: RowTable = (source := open_dataset(name.partition("/")[0], raw, need_media=False)).table
    assert table.absent == {}, "the complete split"
    return source.references(catalog.task(name))


def percent(task, answer, truth):
    """Macro F1 on the test split, in percent, of one answer to everything."""
    test = truth.loc[truth["split"] == "test", "id"]
    result = api.score(pd.DataFrame({"id": test, "y_pred": answer}), task, truth, resamples=20)
    assert result.collapsed
    return round(100 * result.overall["f1_macro"].value, 2)


@pytest.mark.parametrize(
    "task, negative, positive",
    [
        ("cardiacnet/asd", 36.49, 29.85),
        ("cardiacnet/pah", 22.63, 41.44),
        ("hmc_qu/stemi", 32.43, 34.21),
        ("segrwma/rwma_a2c", 47.83, 7.69),
        ("segrwma/rwma_a3c", 48.00, 7.14),
        ("segrwma/rwma_a4c", 48.15, 6.67),
    ],
)
def test_constant_answers_score_as_published(task, negative, positive):
    """From the counts of classes: whose label is which is not shipped."""
    truth, _ = bundled_references(catalog.task(task))
    truth["id"] = truth["patient_id"] = [f"unit{number}" for number in range(len(truth))]
    classes = catalog.task(task).classes
    assert (percent(task, classes[0], truth), percent(task, classes[1], truth)) == (negative, positive)


def test_constant_answers_on_tmed2_score_as_published(shared, tmp_path):
    images = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv", dtype=str)
    table = pd.DataFrame(
        {
            "query_key": images["query_key"],
            "view_label": images["view"],
            "diagnosis_label": images["diagnosis_label"].map({"0": "no_AS", "1": "moderate_AS"}),
            "diagnosis_classifier_split": images["split"],
        }
    )
    (tmp_path / "DEV479").mkdir()
    table.to_csv(tmp_path / "labels_per_image.csv", index=False)
    table.to_csv(tmp_path / "DEV479" / "TMED2_fold0_labeledpart.csv", index=False)
    truth = references("tmed2/as", tmp_path)
    assert (percent("tmed2/as", "AS", truth), percent("tmed2/as", "no_AS", truth)) == (44.13, 17.36)
