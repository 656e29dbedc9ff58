"""Sketches of the fewer-leads condition and of the loss reported with it."""

from pathlib import Path

import torch

from cardiobench import api
from cardiobench.extensions.leads import condition
from cardiobench.extensions.leads.lead_set import parse_leads
from cardiobench.extensions.leads.loss import LeadResult, compared
from cardiobench.models.custom import BaseEncoder, loaded
from cardiobench.results.predictions_file import save_scored
from tests.versions.case import plain
from tests.versions.models import ecg
from tests.versions.scoring import answers

TASK = "ptb_xl_sample/cd"


class Spread(BaseEncoder):
    """Model that returns the spread of each lead."""

    name = "toy/spread"

    def transform(self, recording):
        """Return the spread of each lead."""
        return torch.from_numpy(recording.signal.std(axis=0))[None]

    def encode(self, parts):
        """Return the parts unchanged."""
        return parts


def under_the_condition(folder: Path) -> list:
    """Return parts of a model under the condition, and the loss of a lead set."""
    model = condition.model(loaded(Spread(), "given", "fp32", torch.device("cpu")), "I,II")
    assert model.change is not None
    references, right = answers(TASK)
    worse, columns = right.copy(), list(right.columns[1:])
    worse.loc[worse.index[::3], columns] = worse.loc[worse.index[::3], columns[::-1]].to_numpy()
    group = []
    for asked, given in ((None, right), (parse_leads("I,II"), worse)):
        result = api.score(given, TASK, references, resamples=100)
        truth = references.set_index("id").loc[given["id"]].reset_index()
        frame = truth[["id", "patient_id", "y_true"]].assign(y_pred=truth["y_true"], **{c: given[c] for c in columns})
        path = folder / f"{len(group)}__cd.json"
        group.append(LeadResult(asked, path, save_scored(result, frame, path)[0]))
    rows = compared(group, 100, 0)
    numbers = [
        [getattr(row[key], end) for end in ("value", "low", "high")] for row in rows for key in ("score", "loss")
    ]
    return [model.encoder.transform(model.change(ecg())).numpy(), *numbers]


CASES = {"condition leads": plain(under_the_condition, "condition leads", "loss of leads", slow=True)}
