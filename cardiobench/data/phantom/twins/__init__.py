"""Synthetic twins: raw folders in the exact layout and naming of a release, with phantoms and known labels."""

from collections.abc import Callable
from pathlib import Path

from cardiobench.data.phantom.twins import (
    camus,
    cardiacnet,
    cinc,
    code15,
    code_test,
    echonet_dynamic,
    echonet_lvh,
    echonet_pediatric,
    echonext,
    hmc_qu,
    mimic_iv_echo,
    ptb_xl,
    segrwma,
    sph,
    tmed2,
)

TWINS: dict[str, Callable[[Path, int, int], None]] = {
    "camus": camus.write,
    "cardiacnet": cardiacnet.write,
    "chapman_ningbo": cinc.write_chapman_ningbo,
    "code15": code15.write,
    "code_test": code_test.write,
    "cpsc2018": cinc.write_cpsc2018,
    "echonet_dynamic": echonet_dynamic.write,
    "echonet_lvh": echonet_lvh.write,
    "echonet_pediatric": echonet_pediatric.write,
    "echonext": echonext.write,
    "georgia": cinc.write_georgia,
    "hmc_qu": hmc_qu.write,
    "mimic_iv_echo": mimic_iv_echo.write,
    "ptb_xl": ptb_xl.write,
    "ptb_xl_500": ptb_xl.write,  # One download contains both rates.
    "segrwma": segrwma.write,
    "sph": sph.write,
    "tmed2": tmed2.write,
}
"""Dataset name -> `write(out, patients, seed)`, which writes the raw files of the twin to the folder `out`."""
