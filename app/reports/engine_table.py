"""The layers of a TensorRT engine as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from designer.units import dims_text, duration
from exporters.tensorrt import EngineFile


def engine_lines(found: EngineFile) -> Iterator[str]:
    """A summary, and one line per layer: precision, kind, and the layers of the network that it computes."""
    fused = sum(len(layer.nodes) > 1 for layer in found.layers)
    yield f"{found.package} {found.version}: {len(found.layers)} layers, {fused} of them fused; built in {duration(found.seconds * 1000)}"
    for name, (smallest, best, largest) in found.inputs.items():
        yield f"{name}: {dims_text(smallest)} to {dims_text(largest)}, optimized for {dims_text(best)}"
    for layer in found.layers:
        inside = ", ".join(layer.layers) or "(conversion)"
        yield f"  {layer.precision:5} {layer.kind:12} {inside}" + (
            f"  [{layer.operations}]" if len(layer.nodes) > 1 else ""
        )
