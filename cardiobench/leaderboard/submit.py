"""Provide instructions for submitting results and citing the leaderboard."""

import cardiobench

UNNAMED = "ORG/RESULTS"
TEXT = """\
## How to submit

```bash
accelerate launch -m cardiobench.eval --model ORG/MODEL --output-dir results
cardiobench report results
cardiobench push results --to-dataset {dataset} --with-predictions --yes
```

The first command encodes your recordings and scores the model; datasets are read from `--data-dir` and never uploaded. The second writes
a page for review before anything leaves your machine. The third opens a pull request with scores, ids and predictions, which are scored again; without
`--with-predictions`, it only adds the scores.

## How to cite

```bibtex
@software{{cardiobench,
  title   = {{CardioBench: a benchmark of frozen cardiology foundation models on echocardiography and ECG}},
  author  = {{{{The CardioBench authors}}}},
  version = {{{version}}},
  license = {{Apache-2.0}},
  note    = {{Results of {dataset}}}
}}
```

Please also cite the two benchmarks on which it is based: [arXiv:2510.00520](https://arxiv.org/abs/2510.00520) and [arXiv:2601.21830](https://arxiv.org/abs/2601.21830).
"""


def submit_text(dataset: str = "") -> str:
    """Return the text as Markdown.

    Args:
        dataset: Dataset of results, `org/name`; empty for results from folders.
    """
    return TEXT.format(dataset=dataset or UNNAMED, version=cardiobench.__version__)
