"""Ask for missing facts at a terminal, otherwise list the flags that supply them; and gather all problems of a request."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cardiobench.core.errors import BadConfig, CardioBenchError, first_n

Read = Callable[[str], str]


@dataclass
class Questions:
    """Prompt for missing facts, and problems found so far.

    Attributes:
        read: Function that shows a text and returns the typed answer; None without a terminal.
        open: Unanswered questions, each with the flag that answers it.
        problems: Errors of the request, each with its remedy.
    """

    read: Read | None = None
    open: list[str] = field(default_factory=list)
    problems: list[CardioBenchError] = field(default_factory=list)

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Keep an error of the user's as a problem, so that the checks after it can add theirs."""
        try:
            yield
        except CardioBenchError as error:
            self.problems.append(error)

    def ask(self, question: str, flag: str, choices: Collection[str] = (), *, empty: bool = False) -> str | None:
        """Ask a question; without a terminal, record it and return None.

        Args:
            question: Question text, including the question mark.
            flag: Flag that supplies the answer.
            choices: Accepted answers; by default any.
            empty: Whether an empty answer is accepted.
        """
        if self.read is None:
            self.open.append(f"{question} {flag}")
            return None
        while True:
            shown = f" ({first_n(list(choices), 12)})" if choices else ""
            answer = self.read(f"{question}{shown} ").strip()
            if (answer and (not choices or answer in choices)) or (empty and not answer):
                return answer or None

    def check(self) -> None:
        """Raise an error if there are problems or unanswered questions.

        Raises:
            CardioBenchError: There is one problem.
            BadConfig: There are several, or questions are unanswered; the message lists all of them.
        """
        if not self.problems and not self.open:
            return
        if len(self.problems) == 1 and not self.open:
            raise self.problems[0]
        parts = []
        if self.problems:
            many = f"{len(self.problems)} problems" if len(self.problems) > 1 else "one problem"
            listed = "".join(f"\n  {number}. {error}" for number, error in enumerate(self.problems, 1))
            parts.append(f"{many} of the request; nothing was written:{listed}")
        if self.open:
            listed = "".join(f"\n  {question}" for question in self.open)
            count = f"{len(self.open)} questions have" if len(self.open) > 1 else "one question has"
            parts.append(f"{count} no answer, and there is no terminal to ask on:{listed}")
        raise BadConfig("\n".join(parts))
