"""Text of pictures. It is apart from the panels because matplotlib is imported when something is drawn, and not before."""

from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.text import Text


class Lettering(Text):
    """One line of text on its baseline, which is not measured where nobody needs to know how wide it is.

    In an SVG the reader's own font sets it, from the anchor that is written with it. Measuring it in matplotlib's font would
    take as long as everything else in the picture.
    """

    def draw(self, renderer: RendererBase) -> None:
        """Draw it, as Text does."""
        if not isinstance(self.get_figure(root=True).canvas, FigureCanvasSVG):
            super().draw(renderer)
            return
        x, y = self.get_transform().transform(self.get_unitless_position())
        if renderer.flipy():
            y = renderer.get_canvas_width_height()[1] - y
        look = renderer.new_gc()
        look.set_foreground(self.get_color())
        renderer.draw_text(look, x, y, self.get_text(), self.get_fontproperties(), self.get_rotation(), mtext=self)
        look.restore()
