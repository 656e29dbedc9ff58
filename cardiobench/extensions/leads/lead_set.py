"""Parse lead sets such as `--condition leads=I,II`."""

from dataclasses import dataclass

from cardiobench.core.errors import BadConfig
from cardiobench.data.media.leads import with_computed
from cardiobench.data.media.types import LEADS

NAME = "leads"
ZEROS = "+zero_filled"
"""Suffix of a value that enforces zero-filling."""


@dataclass(frozen=True)
class LeadSet:
    """Selected ECG leads.

    Attributes:
        leads: Lead names in the order of `LEADS`.
        zeros: Whether to fill other leads with zeros even if the model accepts fewer leads.
    """

    leads: tuple[str, ...]
    zeros: bool = False

    @property
    def there(self) -> tuple[str, ...]:
        """Selected leads and leads computed from them."""
        return with_computed(self.leads)

    @property
    def absent(self) -> tuple[str, ...]:
        """Leads that are neither selected nor computed."""
        return tuple(lead for lead in LEADS if lead not in self.there)

    @property
    def independent(self) -> int:
        """Number of independent leads; any two limb leads determine the others."""
        limb = sum(lead in LEADS[:6] for lead in self.leads)
        return min(limb, 2) + len(self.leads) - limb


def parse_leads(value: str) -> LeadSet:
    """Parse the text after `leads=`, such as `I,II` or `I,II+zero_filled`.

    Raises:
        BadConfig: The lead set is empty, unknown, repeated, complete or in the wrong order.
    """
    flag, known = f"--condition {NAME}={value}".removesuffix("="), ", ".join(LEADS)
    names = tuple(value.removesuffix(ZEROS).split(",")) if value else ()
    if not names:
        raise BadConfig(f"{flag}: no lead is named. Give some of {known}, as in {NAME}=I,II.")
    for name in names:
        if name not in LEADS:
            raise BadConfig(f"{flag}: no lead '{name:.20}'. The leads are {known}.")
    if doubled := next((name for name in names if names.count(name) > 1), ""):
        raise BadConfig(f"{flag}: lead {doubled} is named twice. Name each of {known} at most once.")
    ordered = tuple(lead for lead in LEADS if lead in names)
    if names != ordered:
        raise BadConfig(f"{flag}: give the leads in the order {known}. Write {NAME}={','.join(ordered)}.")
    if names == LEADS:
        raise BadConfig(f"{flag}: these are all twelve leads. Leave the condition out.")
    return LeadSet(names, value.endswith(ZEROS))


def is_lead_set(value: str) -> bool:
    """Return whether a text is a valid value of the condition."""
    try:
        parse_leads(value)
    except BadConfig:
        return False
    return True
