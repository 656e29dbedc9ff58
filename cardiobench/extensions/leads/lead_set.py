"""Sets of leads as `--condition leads=I,II` names them."""

from dataclasses import dataclass

from cardiobench.core.errors import BadConfig
from cardiobench.data.media.leads import computed, with_computed
from cardiobench.data.media.types import LEADS

NAME = "leads"
ZEROS = "+zero_filled"
"""End of a value that keeps a model from taking fewer leads natively."""


@dataclass(frozen=True)
class LeadSet:
    """Leads that a model gets.

    Attributes:
        leads: Names in the order of `LEADS`.
        zeros: Whether a model that could take these leads alone gets zeros for the others all the same.
    """

    leads: tuple[str, ...]
    zeros: bool = False

    @property
    def there(self) -> tuple[str, ...]:
        """The leads and those that are computed from them."""
        return with_computed(self.leads)

    @property
    def absent(self) -> tuple[str, ...]:
        """The leads that are neither there nor computed."""
        return tuple(lead for lead in LEADS if lead not in self.there)

    @property
    def independent(self) -> int:
        """Number of leads that do not follow from others."""
        return len([lead for lead in self.leads if lead not in computed(self.leads)])


def parse_leads(value: str) -> LeadSet:
    """Return the lead set of the text after `leads=`, such as `I,II` or `I,II+zero_filled`.

    Raises:
        BadConfig: No lead, one that there is not, a lead twice, all twelve, or another order than that of an ECG.
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
    """Return whether a text is the value of the condition."""
    try:
        parse_leads(value)
    except BadConfig:
        return False
    return True
