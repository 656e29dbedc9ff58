"""Ask for missing facts at a terminal; otherwise list the flags that supply them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cardiobench.core.errors import BadConfig, first_n

Read = Callable[[str], str]


@dataclass
class Questions:
    """Prompt for missing facts.

    Attributes:
        read: Function that shows a text and returns the typed answer; None without a terminal.
        open: Unanswered questions, each with the flag that answers it.
    """

    read: Read | None = None
    open: list[str] = field(default_factory=list)

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
        """Raise an error if questions are unanswered.

        Raises:
            BadConfig: Questions are unanswered; the message lists all of them.
        """
        if self.open:
            listed = "".join(f"\n  {question}" for question in self.open)
            count = f"{len(self.open)} questions have" if len(self.open) > 1 else "one question has"
            raise BadConfig(f"{count} no answer, and there is no terminal to ask on:{listed}")
