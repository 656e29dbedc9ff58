from pathlib import Path

import evaluate
import gradio
from evaluate.utils import gradio as widget

FOLDER = Path(__file__).parent
# The metric of cardiobench/landmark_error, from the files beside this one: the page needs no network and shows its own commit.
metric = evaluate.load(str(FOLDER / "landmark_error.py"))
features = metric.features[0] if isinstance(metric.features, list) else metric.features
types = widget.infer_gradio_input_types(features.values())


def score(rows):
    rows = rows.replace("", None).dropna(how="all")
    if rows.isna().any(axis=None):
        raise gradio.Error("a row has an empty cell; fill or delete it.")
    try:
        return metric.compute(**widget.parse_gradio_data(rows, types))
    except ValueError as error:
        raise gradio.Error(str(error)) from None


page = gradio.Interface(
    fn=score,
    inputs=gradio.Dataframe(
        headers=list(features),
        datatype=widget.json_to_string_type(types),
        column_count=len(features),
        row_count=1,
        label="Lists as JSON, words in double quotes",
    ),
    outputs=gradio.JSON(label=metric.name),
    title=metric.name,
    description=metric.info.description,
    article=widget.parse_readme(FOLDER / "README.md"),
    flagging_mode="never",
    analytics_enabled=False,
)

if __name__ == "__main__":
    page.launch()
