"""A figure of matplotlib as lines of text, for records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib import colors
from matplotlib.ticker import FixedLocator


def figure_lines(figure: Any) -> Iterator[str]:
    """Titles, scales, limits, ticks, legends, and everything that is drawn, with its places and colors."""
    yield f"figure {figure.get_facecolor() and color(figure.get_facecolor())}"
    for axes in figure.axes:
        yield f"axes on {color(axes.get_facecolor())}: '{axes.get_title()}' {color(axes.title.get_color())}"
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            low, high = axis.get_view_interval()
            style = axis.get_tick_params()
            yield f"  {name} '{axis.get_label_text()}' {color(axis.label.get_color())} {axis.get_scale()} grid {style.get('gridOn')}"
            yield f"    {number(low)} to {number(high)}, inverted {axis.get_inverted()}, ticks {style.get('labelcolor', 'black')}"
            if isinstance(axis.get_major_locator(), FixedLocator):
                ticks = zip(axis.get_major_locator().locs, axis.get_ticklabels(), strict=False)
                yield f"    {' | '.join(f'{number(place)} {label.get_text()}' for place, label in ticks)}"
        yield f"  sides {sorted({color(side.get_edgecolor()) for side in axes.spines.values()})}"
        yield from (f"  {line}" for each in axes.get_children() for line in drawn(each))
        legend = axes.get_legend()
        if legend is not None:
            yield f"  legend {' | '.join(text.get_text() for text in legend.get_texts())}"


def drawn(each: Any) -> Iterator[str]:
    """What an artist of a figure shows."""
    kind = type(each).__name__
    if kind == "Line2D":
        style = f"{each.get_linestyle()} {each.get_marker()} {each.get_linewidth():.3g} {each.get_markersize():.3g}"
        yield f"line {points(zip(each.get_xdata(), each.get_ydata(), strict=True))} {color(each.get_color())} {style} {alpha(each)}"
    elif kind == "Rectangle" and each.get_width() > 0 and each.axes is not None and each.axes.patch is not each:
        box = (each.get_x(), each.get_y(), each.get_width(), each.get_height())
        yield f"bar {' '.join(map(number, box))} {color(each.get_facecolor())} {each.get_label()}"
    elif kind == "StepPatch":
        values, edges, _ = each.get_data()
        yield f"steps {' '.join(map(number, edges))}: {' '.join(map(number, values))} {color(each.get_facecolor())} {alpha(each)}"
    elif kind == "PathCollection":
        yield f"points {points(each.get_offsets())} {color(each.get_facecolor()[0])} {each.get_label()}"
    elif kind == "LineCollection":
        yield from (f"bar of errors {points(segment)}" for segment in each.get_segments())
    elif kind in ("Text", "Annotation") and each.get_text() and each.get_text() not in titles(each):
        place = each.xy if kind == "Annotation" else each.get_position()
        turned = f"{each.get_rotation():.0f} {each.get_ha()} {each.get_va()}"
        yield f"text '{each.get_text()}' {points([place])} {turned}"


def titles(each: Any) -> tuple[str, ...]:
    return (each.axes.get_title(),) if each.axes is not None else ()


def alpha(each: Any) -> str:
    return f"alpha {each.get_alpha()}" if each.get_alpha() is not None else ""


def points(found: Iterable[Any]) -> str:
    return " ".join(f"({number(x)}, {number(y)})" for x, y in found)


def number(value: Any) -> str:
    return f"{float(np.ma.filled(value, np.nan)):.4g}"


def color(found: Any) -> str:
    return str(colors.to_hex(found, keep_alpha=True)).removesuffix("ff") if found is not None else "none"
