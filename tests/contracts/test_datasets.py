"""Contract of all folders in hf_datasets/; new datasets are included automatically."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml

from cardiobench import api
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.builder import CardioBuilder
from cardiobench.data.eval_file import entry_id, eval_file
from cardiobench.data.prompts import prompts
from cardiobench.data.spec import ROWS, TOTAL
from cardiobench.testing.dataset import CHECKS, card_of, is_bundled

NAMES = catalog.list_datasets()
TASKS = catalog.list_tasks()
SECTIONS = ("Access", "Raw layout", "Splits", "Groups", "Known problems", "Citation")
OPEN = {"CC BY 4.0": "cc-by-4.0", "CC BY-NC-SA 4.0": "cc-by-nc-sa-4.0", "Apache-2.0": "apache-2.0"}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_contract(name, check):
    check(name)


@pytest.mark.parametrize("name", NAMES)
def test_tags_of_the_card(name):
    spec, (front, _) = catalog.spec(name), card_of(name)
    assert {spec.modality.replace("echo", "echocardiography"), "cardiobench"} <= set(front["tags"])
    assert issubclass(catalog.builder(name), CardioBuilder)


@pytest.mark.parametrize("name", NAMES)
def test_licence_of_the_card_is_the_specs(name):
    spec, (front, body) = catalog.spec(name), card_of(name)
    assert spec.licence and spec.redistributable == (spec.licence in OPEN and "NC" not in spec.licence)
    if spec.licence in OPEN:
        assert front["license"] == OPEN[spec.licence]
    elif spec.licence.startswith("not stated"):
        assert front["license"] == "unknown" and "licence was not stated" in body
    else:
        assert front["license"] == "other" and front["license_name"] and front["license_link"] == spec.access
    if not spec.redistributable:
        assert "`publish` refuses" in " ".join(body.split())


@pytest.mark.parametrize("name", NAMES)
def test_known_class_counts_name_valid_classes_and_splits(name):
    spec = catalog.spec(name)
    for task in spec.all_tasks:
        assert set(task.expected) <= {*task.classes, ROWS}
        for counts in task.expected.values():
            assert set(counts) <= set(spec.splits) or set(counts) == {TOTAL}
            whole = {**spec.expected, TOTAL: sum(spec.expected.values())}
            assert all(0 < count <= whole.get(split, whole[TOTAL]) for split, count in counts.items())


@pytest.mark.parametrize("name", NAMES)
def test_text_of_the_card(name):
    spec, (_, body) = catalog.spec(name), card_of(name)
    assert f"**Use.** `cardiobench prepare {name} " in body
    if not (catalog.spec(name).generated or is_bundled(name)):
        headed = re.findall(r"^\*\*([^*]+?)\.\*\*", body, flags=re.M)
        assert not set(SECTIONS) - set(headed)
        assert {"Tasks", "Labels"} & set(headed)
        assert "--data-dir" in body
    for count in spec.expected.values():
        assert f"{count:,}" in body, "the card states the checked counts"


@pytest.mark.parametrize("name", NAMES)
def test_eval_file_has_an_entry_for_each_task_and_metric(name):
    spec = catalog.spec(name)
    content = yaml.safe_load(eval_file(spec))
    assert set(content) == {"name", "description", "evaluation_framework", "tasks"}
    assert content["name"] == spec.title and content["evaluation_framework"] == "cardiobench"
    assert content["tasks"] == [
        {"id": f"{task.name.replace('/', '_')}_{metric}", "config": "default", "split": "test"}
        for task in spec.all_tasks
        for metric in task.metrics
    ]


def test_no_entry_of_an_eval_file_is_ambiguous():
    ids = [
        entry_id(name, metric)
        for name in (*TASKS, *catalog.list_dense_tasks())
        for metric in catalog.task(name).metrics
    ]
    assert max(Counter(ids).values()) == 1


@pytest.mark.parametrize("name", [name for name in TASKS if catalog.spec(name.partition("/")[0]).modality == "echo"])
def test_echo_tasks_have_prompts_in_several_words(name):
    chosen, _ = prompts(task := catalog.task(name))
    assert all(len(chosen[label]) >= 2 for label in task.classes)


@pytest.mark.parametrize("name", catalog.list_dense_tasks())
def test_dense_tasks_are_listed_separately_and_name_their_structures(name):
    task = catalog.task(name)
    assert task.dense and task.structures and not task.classes
    assert task not in catalog.spec(task.dataset).tasks
    references = pd.DataFrame({"id": ["a"], "patient_id": ["a"], "split": ["test"], "y_true": [1]})
    with pytest.raises(NotApplicable, match="a table has one answer per unit"):
        api.score(pd.DataFrame({"id": ["a"], "y_pred": [1]}), name, references)


@pytest.mark.parametrize("name", [name for name in NAMES if "Stanford" in catalog.spec(name).licence])
def test_no_ids_of_stanford_datasets_are_shipped(name):
    assert not (catalog.dataset_folder(name) / "splits").exists()


EF_GRID = ("0", "1", "100", 101)
WALL_GRID, DIAMETER_GRID, SPEED_GRID = ("0.5", "0.6", "2.0", 16), ("2.0", "2.1", "8.0", 61), ("1.0", "1.1", "5.0", 41)
GRIDS = {
    "camus/ef": EF_GRID,
    "echonet_dynamic/ef": EF_GRID,
    "echonet_lvh/ivsd": WALL_GRID,
    "echonet_lvh/lvidd": DIAMETER_GRID,
    "echonet_lvh/lvpwd": WALL_GRID,
    "echonet_pediatric/ef": EF_GRID,
    "mimic_iv_echo/av_pk_vel": SPEED_GRID,
    "mimic_iv_echo/av_pk_vel_2d": SPEED_GRID,
    "mimic_iv_echo/ef": EF_GRID,
    "mimic_iv_echo/inf_lat_thickness": ("0.5", "0.6", "2.5", 21),
    "mimic_iv_echo/la_vol": ("20", "25", "200", 37),
    "mimic_iv_echo/lvedd": DIAMETER_GRID,
    "mimic_iv_echo/lvesd": DIAMETER_GRID,
    "mimic_iv_echo/septal_thickness": ("0.5", "0.6", "2.5", 21),
    "mimic_iv_echo/tapse": ("0.5", "0.6", "3.5", 31),
    "mimic_iv_echo/tr_velocity": SPEED_GRID,
    "mimic_iv_echo/tr_velocity_2d": SPEED_GRID,
    "phantom_echo/ef": EF_GRID,
}
"""First, second, last and number of prompts of each measurement, as written."""


def test_numeric_prompts_have_the_documented_range_and_step():
    """Check the range and step of prompts, because other prompts give other zero-shot predictions."""
    texts = {name: grid.texts() for name in TASKS if (grid := catalog.task(name).prompt_grid)}
    assert {name: (*found[:2], found[-1], len(found)) for name, found in texts.items()} == GRIDS
    for name, found in texts.items():
        values = np.array(catalog.task(name).prompt_grid.values())
        np.testing.assert_array_equal(values, np.array(found, dtype=float))
        np.testing.assert_allclose(np.diff(values), values[1] - values[0])
