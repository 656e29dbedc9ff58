"""Test options of the protocol by name."""

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError
from cardiobench.protocols import protocol


def made(**chosen):
    return protocol("representation", RunConfig(models=(), options={"representation": chosen}))


def test_option_is_set_and_recorded():
    found = made(refit=True, geometry_in="top", map_settings=[[5, 0.2], [9, 1]])
    assert (found.refit, found.geometry_in, found.map_settings) == (True, "top", ((5, 0.2), (9, 1)))
    assert found.get_params()["refit"] is True


@pytest.mark.parametrize(("option", "value"), [("refit", 1), ("geometry_in", "some"), ("map_settings", [[15]])])
def test_value_of_another_type_is_refused_with_the_expected_one(option, value):
    with pytest.raises(CardioBenchError, match=rf"representation\.{option}=.*Give a value such as "):
        made(**{option: value})
