"""Show the readings of doctors in the demo."""

from collections.abc import Iterator

from cardiobench.results.printing import PrintedTable
from cardiobench.runner.hooks import RunHooks


class ReaderHooks(RunHooks):
    """Readings of doctors and of a network."""

    def demo(self) -> Iterator[PrintedTable | str]:
        """Yield tables and sentences that compare the network with each group of doctors."""
        from cardiobench.extensions.code_test_readers.demo import demo

        yield from demo()
