"""Plot zero-shot scores for every prompt wording, with intervals and the floor."""

from matplotlib.figure import Figure

from cardiobench.report.plots.intervals import interval_figure, place
from cardiobench.report.plots.style import FLOOR_LINE, shorten
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

LONGEST = 52  # Maximum number of characters of a label.
NOTES = {"wordings": "Lines: 95 % intervals over test patients."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw one figure per rule, with one row per wording."""
    wordings = record.tables["wordings"].fillna({"rule": "", "unit": ""})
    table, label = shown_scores(wordings, wordings.iloc[0])
    figures = {}
    for rule, part in table.groupby("rule", sort=False):
        first = part.iloc[0]
        kinds = part["kind"].map(lambda kind: "" if kind == "one sentence" else f"{kind}: ")
        labels = (kinds + part["wording"]).map(lambda text: shorten(text, LONGEST))
        rows = part.rename(columns={"score": "value"}).assign(label=labels, hollow=False, published=False)
        figure, (axes,) = interval_figure(rows)
        axes.axvline(first["floor"], label=f"floor {first['floor']:.2f}", zorder=1, **FLOOR_LINE)
        axes.set_xlabel(", ".join(filter(None, (label, str(rule).replace("_", " ")))))
        place(figure, rows)
        figures["_".join(filter(None, ("wordings", str(rule))))] = figure
    return figures
