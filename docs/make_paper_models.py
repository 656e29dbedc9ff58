"""Write docs/paper_models.md: the models of the papers, with the facts of their cards.

python docs/make_paper_models.py
"""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.command import command
from cardiobench.extensions.papers.paper_models import PAPERS, size_of
from cardiobench.models.cards import ModelCard

INTRO = """\
# The models of the papers

The two papers compare {count} models. Each has a section for every registered size, with its licence, its size, the operations for one part of a
recording, and the commands that check it and compute its rows of the tables. `FOLDER` is the folder with its files.
None of the weights comes with the package. Tests load each model from a file with random weights in the published layout.

```bash
cardiobench reproduce echo --dry-run
cardiobench reproduce ecg --dry-run
```

These commands list the models and datasets of a paper that are on this machine, and where to get the others. They download nothing.
Without `--dry-run`, the tables are computed for everything that is here. Give files from outside the Hub with `--weights ID=FOLDER`, and
data with `--data-dir`. {doc}`papers` states how the settings differ from the published ones.
"""


def page() -> str:
    """Return the page in Markdown."""
    every = {name for paper in PAPERS.values() for name in paper.models.values()}
    sections = [INTRO.replace("{count}", str(len(every)))]
    for field, paper in PAPERS.items():
        sections.append(f"## {paper.title}\n")
        sections += [_section(field, paper.models[card.id], card) for card in paper.cards()]
    return "\n".join(sections)


def _section(field: str, name: str, card: ModelCard) -> str:
    facts = {
        "access": card.access,
        "licence": card.licence,
        "size": size_of(card),
        "operations": f"{card.flops / 1e9:.1f} GFLOP for one part" if card.flops else "not stated",
        "parts": card.embedding.get("parts", "not stated"),
        "files": ", ".join(f"`{file}`" for file in card.weights),
    }
    rows = [f"| {key} | {' '.join(str(value).split())} |" for key, value in facts.items()]
    lines = ["```bash", *commands_of(field, card), "```", ""]
    return "\n".join([f"### {name}: {card.id}\n", "| | |", "|---|---|", *rows, "", *lines])


def commands_of(field: str, card: ModelCard) -> Sequence[str]:
    """Return the command lines that check a model and compute its rows of a paper's tables."""
    files = [] if card.hub else ["--weights", "FOLDER"]
    given = [] if card.hub else ["--weights", f"{card.id}=FOLDER"]
    return (
        command("doctor", "--model", card.id, *files),
        command("reproduce", field, "--model", card.id, *given),
    )


if __name__ == "__main__":
    Path(__file__).with_name("paper_models.md").write_text(page(), encoding="utf-8")
