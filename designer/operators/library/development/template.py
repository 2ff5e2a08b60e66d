"""Template instances."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from designer.operators import api as op
from designer.texts import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from designer.graph.inference import Inference
    from designer.graph.template import Template


class TemplateBody(Protocol):
    """A template in its graph, as seen by instances (`designer.operators.templates.Body`)."""

    template: Template

    def infer(self, inputs: Sequence[op.TensorType]) -> Inference: ...
    def outputs(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]: ...
    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]: ...
    def cost(self, inputs: Sequence[op.TensorType]) -> op.Cost: ...
    def shares(self, operator: TemplateInstance) -> bool: ...
    def tensors(
        self, inputs: Sequence[op.TensorType], owner: str, operator: TemplateInstance
    ) -> Iterator[tuple[str, op.Weight]]: ...


class TemplateInstance(
    op.Operator,
    type="template",
    title="Template",
    category=op.Category.DEVELOPMENT,
    role=op.Role.TEMPLATE,
    synonyms=("subnetwork", "block", "group", "module", "subgraph", "macro", "function"),
):
    """An instance of a template (subnetwork) of the document. Its ports are the template's `template_input` and `template_output` layers.

    Each instance has its own weights, named `<instance>.<layer>`, unless it shares those of the template.
    """

    inputs = (op.Port("x", variadic=True, optional=True),)  # until the template is known
    examples = (op.Example(()),)

    template: str = op.param(default="", doc="Name of the template.")
    shared_weights: bool = op.param(
        default=False,
        extension=True,
        doc="Share one set of weights, named `<template>.<layer>`, among all instances with this option.",
    )

    @property
    def body(self) -> TemplateBody | None:
        """The template in the current graph; None if the operator was read without a graph."""
        return self.__dict__.get("_body")

    def with_body(self, body: TemplateBody) -> TemplateInstance:
        """This instance in the graph of `body`."""
        made = copy.copy(self)
        object.__setattr__(made, "_body", body)  # not a parameter, so not a field
        return made

    def input_ports(self) -> tuple[op.Port, ...]:
        return self.inputs if self.body is None else tuple(op.Port(name) for name in self.body.template.inputs)

    def output_ports(self) -> tuple[op.Port, ...]:
        return self.outputs if self.body is None else tuple(op.Port(name) for name in self.body.template.outputs)

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        if self.body is None:
            raise op.ShapeError(
                tr("the template '{template}' does not exist in this document", template=self.template),
                code="unknown-template",
                remedy=tr("choose a template of this document"),
            )
        return self.body.outputs(inputs)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr | tuple[op.TorchExpr, ...]:
        """A module of the class that the exporter generates for the template; engines run its layers instead."""
        arguments = tuple(op.TorchInput(i) for i in range(len(self.input_ports())))
        module = op.TorchModule(f"template.{self.template}", {}, arguments)
        count = len(self.output_ports())
        return module if count == 1 else tuple(op.TorchItem(module, i) for i in range(count))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        """The tensors of the layers inside, named `<layer>.<tensor>`."""
        return self.body.weights(inputs) if self.body is not None else ()

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return self.cost(inputs, outputs).flops

    def cost(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> op.Cost:
        return self.body.cost(inputs) if self.body is not None else op.Cost()

    def summary(self) -> str:
        name = self.template if len(self.template) <= 40 else f"{self.template[:39]}…"
        return f"{name} · shared weights" if self.shared_weights and name else name
