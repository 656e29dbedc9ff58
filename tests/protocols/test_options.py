"""Options of protocols by name: read, checked against what the protocol takes, and part of what it says of itself."""

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, UnknownName
from cardiobench.protocols import list_protocols, protocol
from cardiobench.protocols.options import OWN_FLAGS, fits, read_options


def test_the_text_of_an_option():
    found = read_options(["representation.refit=true", "representation.map_settings=[[15, 0.1]]", "knn.folds=3"])
    assert found == {"representation": {"refit": True, "map_settings": [[15, 0.1]]}, "knn": {"folds": 3}}
    assert read_options(["cross_validation.search=flat"]) == {"cross_validation": {"search": "flat"}}
    for text in ("refit", "refit=true", "representation=1", ".refit=true", "representation.=1"):
        with pytest.raises(CardioBenchError, match=r"PROTOCOL\.OPTION=VALUE"):
            read_options([text])


def made(name, **chosen):
    return protocol(name, RunConfig(models=(), options={name: chosen}))


def test_an_option_is_set_and_recorded():
    found = made("representation", refit=True, geometry_in="top", map_settings=[[5, 0.2], [9, 1]])
    assert (found.refit, found.geometry_in, found.map_settings) == (True, "top", ((5, 0.2), (9, 1)))
    assert found.get_params()["refit"] is True
    assert made("probe", class_weight=None).class_weight is None
    assert made("stress", patients=None).patients is None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("representation", "refit", 1),
        ("representation", "geometry_in", "some"),
        ("representation", "map_settings", [[15]]),
        ("cross_validation", "folds", 0),
        ("cross_validation", "folds", 2.5),
        ("cross_validation", "folds", True),
        ("cross_validation", "search", "quick"),
        ("probe", "penalties", 3),
        ("probe", "class_weight", "heavy"),
        ("zero_shot", "share", float("inf")),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_is_expected(name, option, value):
    with pytest.raises(CardioBenchError, match=rf"{name}\.{option}=.*expected .*, such as "):
        made(name, **{option: value})


def test_names_that_are_none():
    with pytest.raises(UnknownName, match="Did you mean 'refit'"):
        made("representation", refitt=True)
    with pytest.raises(CardioBenchError, match="flag of its own: --seed"):
        made("probe", seed=3)


@pytest.mark.parametrize("name", list_protocols())
def test_every_protocol_takes_its_own_defaults(name):
    from typing import get_type_hints

    usual = protocol(name)
    hints = get_type_hints(type(usual))
    for option, value in vars(usual).items():
        if option not in OWN_FLAGS:
            assert fits(value, hints[option]), (option, value)
            assert made(name, **{option: value}) == usual
