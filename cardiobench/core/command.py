"""Command lines that messages tell the user to run."""

import shlex

from cardiobench.core import plugins

FLAGS = {"hf_datasets": "--datasets-dir", "model_cards": "--models-dir"}
"""Folder with user folders of the same form -> flag of every command that names one."""


def command(*words: object) -> str:
    """Return a `cardiobench` command line, quoted for a shell.

    The user folders that this process was given are repeated, because the command may need their datasets and models.
    Words in capitals, such as `FILE`, stand for what only the user knows.

    >>> command("report", "my results")
    "cardiobench report 'my results'"
    """
    texts = list(map(str, words))
    for name, path in plugins.given_folders().items():
        if FLAGS[name] not in texts:
            texts += [FLAGS[name], str(path)]
    return shlex.join(["cardiobench", *texts])
