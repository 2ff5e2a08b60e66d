"""Opening a variant of a network for commands: its weights, and how it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from app.opened_network import OpenedNetwork, load_weights_for
from designer.files.settings import find_settings, read_settings
from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.precision.deployed_session import variant_session
from designer.precision.variants import RunnableVariant, find_variant, is_emulated, runnable_variant
from designer.runtime.api import RunOptions
from designer.runtime.session import Session


class OpenedVariant(NamedTuple):
    """A network with the weights and options of a variant; without a variant, with those that were given."""

    network: OpenedNetwork
    weights: Weights
    options: RunOptions
    variant: Variant | None = None

    def session(self, options: RunOptions) -> Session:
        """A session with `options`, those of the variant with what was added to them; calibrated INT8 runs as it is deployed."""
        ready = RunnableVariant(self.network.graph, self.weights, options)
        return variant_session(ready, self.network.registry, self.variant, options)

    @property
    def note(self) -> str:
        """A note for the user on how the variant runs with its options; empty if there is nothing to say."""
        if self.variant is None or not is_emulated(self.options):
            return ""
        return f"{self.variant.name} is emulated in FP32: its results are those of its precision, its times are not"


def open_variant(
    network: OpenedNetwork,
    name: str,
    weights: Path | None,
    seed: int | None,
    options: RunOptions,
    *,
    passes: bool = True,
) -> OpenedVariant:
    """The variant `name` in the settings of a network, empty for none. `weights` replace those of the variant.

    Without `passes` the variant keeps all layers of the document, for runs that capture them.

    Raises DiagnosticError if there is no such variant, or it cannot run.
    """
    if not name:
        return OpenedVariant(network, load_weights_for(network, weights, seed), options)
    file = find_settings(network.path)
    variant = find_variant(read_settings(file).settings.variants if file is not None else (), name)
    if options.precision != "fp32":
        raise DiagnosticError.of(
            "bad-option",
            f"--variant {name} has a precision of its own, but --precision {options.precision} is given too",
            remedy="use only one of them",
        )
    given = weights if weights is not None or not variant.weights else Path(variant.weights)
    found = load_weights_for(network, given, seed)
    applied = variant if passes else replace(variant, passes=())
    ready = runnable_variant(applied, network.graph, network.registry, found, options)
    if ready.graph is not network.graph:
        network = replace(network, graph=ready.graph, inference=Inference(ready.graph, network.registry))
    return OpenedVariant(network, ready.weights, ready.options, variant)
