"""Questions that no file answers: asked at a terminal, refused elsewhere with the flags that answer them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cardiobench.core.errors import BadConfig, first_n

Read = Callable[[str], str]


@dataclass
class Questions:
    """Questions to the user.

    Attributes:
        read: Function that shows a text and returns what was typed; None where there is no terminal.
        open: Questions without an answer so far, each with the flag that answers it.
    """

    read: Read | None = None
    open: list[str] = field(default_factory=list)

    def ask(self, question: str, flag: str, choices: Collection[str] = (), *, empty: bool = False) -> str | None:
        """Return the answer; without a terminal note the question and return None.

        Args:
            question: Sentence that ends in a question mark.
            flag: Flag that answers it.
            choices: Accepted answers; any unless given.
            empty: Whether no answer is one.
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
        """Refuse to go on with open questions.

        Raises:
            BadConfig: All of them, in one message.
        """
        if self.open:
            listed = "".join(f"\n  {question}" for question in self.open)
            count = f"{len(self.open)} questions have" if len(self.open) > 1 else "one question has"
            raise BadConfig(f"{count} no answer, and there is no terminal to ask on:{listed}")
