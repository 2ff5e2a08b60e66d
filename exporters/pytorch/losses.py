"""The training branch of a network as a separate module, from the tensors that losses read to their values."""

from __future__ import annotations

from dataclasses import dataclass

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Role
from designer.operators.deploy import without_analysis
from designer.operators.registry import Registry
from designer.operators.training_branch import loss_ends, no_output, training_branch
from designer.texts import tr
from exporters.pytorch.source import Module, built, check_shapes, module_source, network_module, role_in
from exporters.pytorch.subnetworks import prepared, same_class

CLASS = "Losses"
TITLE = "The losses; training minimizes their sum."


@dataclass(frozen=True)
class Losses:
    """The losses as a module.

    `module` takes `taps`, which the network computes, `targets`, the input layers that only losses read, and `shared`, the
    attributes of the network with weights that the losses also use.
    """

    module: Module
    taps: tuple[Source, ...]
    targets: tuple[Source, ...]
    shared: tuple[str, ...] = ()


def generate_losses(graph: Graph, registry: Registry) -> str:
    """The text of losses.py; empty without losses. Raises DiagnosticError if they cannot be computed."""
    losses = losses_of(graph, registry)
    return module_source(losses.module, CLASS) if losses is not None else ""


def losses_of(graph: Graph, registry: Registry) -> Losses | None:
    """The losses of a network, or None. Raises DiagnosticError if they cannot be computed."""
    whole = without_analysis(prepared(graph, registry), registry)
    ends = loss_ends(whole, registry)
    if not ends:
        return None
    inference = Inference(whole, registry)
    branch = training_branch(whole, registry)
    outputs = [
        layer.name for layer in whole if layer.name not in branch and role_in(inference, layer.name) is Role.OUTPUT
    ]
    if not outputs:
        raise DiagnosticError(no_output(graph, registry))
    network = whole.upstream(outputs)
    members = whole.upstream(ends) - network
    check_shapes(inference, members)
    targets = tuple(Source(name) for name in sorted(members) if role_in(inference, name) is Role.INPUT)
    layers = [name for name in whole.order(members)[0] if Source(name) not in targets]
    reads = [inference.tensor(s) for name in layers for s in whole[name].inputs if s is not None]
    taps = tuple(sorted({source for source in reads if source.layer in network}))
    if not taps:
        raise DiagnosticError.of(
            "losses-apart",
            tr("the losses ({ends}) do not read any layer of the network", ends=", ".join(ends)),
            layer=ends[0],
            remedy=tr("connect a loss to a layer of the network"),
        )
    inputs, results = (*taps, *targets), tuple(map(Source, ends))
    held = network_module(graph, registry, taps=taps)
    made = built(inference, layers, inputs, results, CLASS, held.shared)
    for template in made.given:
        if not same_class(held.shared[template], made.shared[template]):
            raise DiagnosticError(_differs(template))
    copied = {bound.layer for bound in made.program.weights} & {bound.layer for bound in held.program.weights}
    if copied:
        raise DiagnosticError(_copied(min(copied)))
    names = {attribute.layer: attribute.name for attribute in held.program.attributes}
    module = Module(
        inference, made.program, inputs, results, title=TITLE, classes=made.classes, given=tuple(made.given.values())
    )
    return Losses(module, taps, targets, tuple(names[template] for template in made.given))


def _differs(template: str) -> Diagnostic:
    return Diagnostic(
        "shared-shape",
        tr(
            "the losses cannot share the weights of the template '{template}' with the network in "
            "PyTorch, because their inputs result in layers of different shapes",
            template=template,
        ),
        remedy=tr("connect tensors of the same shape to both, or do not share the weights"),
        template=template,
    )


def _copied(layer: str) -> Diagnostic:
    return Diagnostic(
        "shared-with-losses",
        tr(
            "the weights of '{layer}' are in the network and in its losses, which would train a separate copy",
            layer=layer,
        ),
        remedy=tr("move the loss out of the template, so that the template's instances can share one module"),
    )
