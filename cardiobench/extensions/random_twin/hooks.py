"""Show a trained network in the demo."""

from collections.abc import Iterator

from cardiobench.results.printing import PrintedTable
from cardiobench.runner.hooks import RunHooks


class RandomTwinHooks(RunHooks):
    """A trained network beside baselines and the same network with random weights."""

    def demo(self) -> Iterator[PrintedTable | str]:
        """Yield a table of scores, and sentences about the gain of training."""
        from cardiobench.extensions.random_twin.demo import demo

        yield from demo()
