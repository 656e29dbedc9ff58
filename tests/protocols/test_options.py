"""Test options of protocols by name: parsing, type checks, and their place in the description of a protocol."""

import json
import math
import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from pydantic import PositiveInt, TypeAdapter

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, CardioBenchError, UnknownName
from cardiobench.protocols import list_protocols, option_types, protocol, protocol_class
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.options import validated
from cardiobench.protocols.probe import LinearProbe


def made(name, **chosen):
    return protocol(name, RunConfig(models=(), options={name: chosen}))


def test_option_is_set_and_recorded():
    found = made("probe", refits=4, penalties=[0.1, 1])
    assert (found.refits, found.penalties) == (4, (0.1, 1.0))
    assert found.get_params()["refits"] == 4
    assert made("probe", class_weight=None).class_weight is None


@pytest.mark.parametrize("kind", [LinearProbe, NearestNeighbours])
def test_class_refuses_the_recipe_of_another(kind):
    with pytest.raises(BadConfig, match=r"has the recipe 'default', got profile 'paper'. Make it with"):
        kind(profile="paper")


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("knn", "neighbours", [0]),
        ("knn", "folds", 0),
        ("knn", "folds", 2.5),
        ("knn", "folds", True),
        ("knn", "profile", "quick"),
        ("probe", "penalties", 3),
        ("probe", "class_weight", "heavy"),
        ("zero_shot", "share", float("inf")),
    ],
)
def test_value_of_another_type_is_refused_with_the_expected_one(name, option, value):
    with pytest.raises(CardioBenchError, match=rf"{name}\.{option}=.*Give a value such as "):
        made(name, **{option: value})


@dataclass(frozen=True)
class Trained(LinearProbe):
    """Protocol with an option that is None by default."""

    epochs: PositiveInt | None = None


def test_no_value_is_advised_without_a_default():
    with pytest.raises(
        CardioBenchError, match=r"probe\.epochs=0: expected a whole number above 0 or null\. Leave it out\.$"
    ):
        validated(Trained, {"epochs": 0})


@cache
def schemas():
    """Return each option of each protocol with its JSON schema."""
    return [
        (name, option, schema)
        for name in list_protocols()
        for option, schema in TypeAdapter(protocol_class(name)).json_schema()["properties"].items()
    ]


def test_integers_have_limits_and_seeds_those_of_numpy():
    for name, option, schema in schemas():
        for one in schema.get("anyOf", [schema.get("items", schema)]):
            assert one.get("type") != "integer" or {"minimum", "maximum"} <= one.keys(), f"{name}.{option}: {one}"
        assert option != "seed" or (schema["minimum"], schema["maximum"]) == (0, 2**32 - 1), f"{name}.{option}"
    np.random.RandomState(2**32 - 1)


@pytest.mark.parametrize(
    "value",
    [-1, 1.5, 10**30, math.inf, "\ud800", [1], {"a": 1}, True, pytest.param(object(), id="object")],
    ids=repr,
)
def test_numeric_options_refuse_values_with_accepted_range(value):
    words = {"integer": "whole number", "number": "number"}
    for name, option, schema in schemas():
        kind = schema.get("type") or schema.get("anyOf", [{}])[-1].get("type")
        if kind not in words or (kind == "number" and value in (1.5, 10**30) and "maximum" not in schema):
            continue
        with pytest.raises(CardioBenchError, match=rf"^{name}\.{option}=.*: expected .*{words[kind]} ") as caught:
            protocol(name, **{option: value})
        assert all(f"{schema[limit]:,}" in str(caught.value) for limit in ("minimum", "maximum") if limit in schema)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("scratch.epochs", None, "auto or a whole number from 1 to 1,000,000,000"),
        ("scratch.network", None, "auto, s4, net1d, small or r2plus1d"),
        ("finetune.modes", ["full", None], "a list without repeats, each value full, last or lora"),
        ("finetune.rates", 0.1, "a list without repeats, each value a number above 0 and at most 1"),
        ("finetune.rates", [0.1, 2], "a list without repeats, each value a number above 0 and at most 1"),
        ("finetune.weight_decay", None, "a number of at least 0"),
        ("finetune.rank", 10**9, "a whole number from 1 to 1,024"),
        ("attention_probe.heads", 10**9, "a whole number from 1 to 1,024"),
        ("learning_curve.learners", [3], "a list without repeats, each value a text"),
        ("cross_validation.grouped", 1, "true or false"),
        ("cross_validation.seed", -1, "a whole number from 0 to 4,294,967,295"),
    ],
)
def test_accepted_range_is_named(option, value, expected):
    name, _, field = option.partition(".")
    if name not in list_protocols():
        pytest.skip("its extension is not here")
    with pytest.raises(CardioBenchError, match=re.escape(f"{option}={json.dumps(value)}: expected {expected}. ")):
        protocol(name, **{field: value})


@pytest.mark.parametrize(
    ("name", "option", "value", "reason"),
    [
        ("probe", "penalties", [1, 10, 1.0], "1.0 is repeated. Give each value once."),
        ("knn", "neighbours", [3, 3], "3 is repeated"),
        ("probe", "penalties", [], "the list is empty. Give a value such as [0.001,"),
    ],
)
def test_empty_list_and_repeated_values_are_refused(name, option, value, reason):
    with pytest.raises(CardioBenchError, match=re.escape(reason)):
        made(name, **{option: value})


def test_invalid_option_names_are_refused():
    with pytest.raises(UnknownName, match="Did you mean 'refits'"):
        made("probe", refitts=2)


def test_option_by_name_wins_over_the_setting_of_the_run():
    config = RunConfig(models=(), seed=3, options={"probe": {"seed": 4}})
    assert protocol("probe", config) == protocol("probe", seed=4)
    assert protocol("probe", config, seed=5).seed == 5


@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_takes_its_own_defaults(name):
    default = protocol(name)
    values = vars(default)
    assert option_types(name).keys() == values.keys()
    # Lists replace tuples in a grid, so compare the stamped options.
    assert json.dumps(protocol(name, **values).get_params()) == json.dumps(default.get_params())
