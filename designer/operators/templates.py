"""Instances of templates as operators, with their ports, shapes and problems.

The layers of a template are inferred for the input types of an instance, once for each combination of types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from designer.graph.diagnostics import Diagnostic, Severity, errors
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer
from designer.graph.template import INPUT, INSTANCE, OUTPUT, closure, enclosing
from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Cost, Weight
from designer.operators.library.development.template import TemplateInstance
from designer.operators.library.development.template_input import TemplateInput
from designer.operators.registry import Read, Registry
from designer.operators.template_faults import clashes, misplaced, outside, structure, unknown
from designer.texts import tr
from designer.units import dims_text

KEPT = 64  # combinations of input types whose shapes are cached per template


class TemplateLookup:
    """A registry for one graph: it also reads instances of the graph's templates."""

    def __init__(self, registry: Registry, graph: Graph) -> None:
        self.registry = registry
        self.graph = graph
        self._bodies: dict[str, Body] = {}
        self._dotted: list[str] | None = None

    def read(self, layer: Layer) -> Read:
        """As `Registry.read`; an instance of a template has the template's ports and findings."""
        read = self.registry.read(layer)
        if layer.type in (INPUT, OUTPUT):
            return replace(read, diagnostics=(*read.diagnostics, outside(layer)))
        if not isinstance(read.operator, TemplateInstance):
            return read
        return self.instance(read, read.operator, layer, self.dotted())

    def dotted(self) -> list[str]:
        """The names that contain a dot, which can clash with layers inside an instance."""
        if self._dotted is None:
            self._dotted = [name for name in self.graph.layers if "." in name]
        return self._dotted

    def instance(self, read: Read, operator: TemplateInstance, layer: Layer, dotted: Sequence[str]) -> Read:
        """An instance with the template's body; `dotted` are the names in the same network that contain a dot."""
        body = self.body(operator.template)
        if body is None:
            finding = unknown(layer, sorted(self.graph.templates))
            return replace(read, operator=None, diagnostics=(*read.diagnostics, finding))
        found = [replace(d, layer=layer.name) for d in body.findings]
        found += clashes(layer.name, operator, dotted, self.graph, self.dotted())
        return replace(read, operator=operator.with_body(body), diagnostics=(*read.diagnostics, *found))

    def body(self, name: str) -> Body | None:
        """The body of the template `name`; None if there is no such template."""
        if name not in self.graph.templates:
            return None
        body = self._bodies.get(name)
        if body is None or body.template is not self.graph.templates[name]:
            body = self._bodies[name] = Body(name, self)
        return body

    def stale(self, change: ChangeSet) -> set[str]:
        """Instances that `change` can affect although their own text is unchanged."""
        self._dotted = None
        found: set[str] = set()
        touched = {*change.templates, *(name for name in change.reconfigured if name in self.graph.templates)}
        for name in change.added | change.removed:
            around = enclosing(name)
            found.update(n for n in around[1:] if n in self.graph)
            touched.update(n for n in around if n in self.graph.templates)
        if change.templates:
            self._bodies.clear()  # other templates may use these
        if touched:
            for layer in self.graph:
                if layer.type == INSTANCE:
                    used = closure(self.graph.templates, layer.params.get("template", ""))
                    missing = bool(change.templates) and any(name not in self.graph.templates for name in used)
                    if missing or not touched.isdisjoint(used):  # a missing template is reported with those that exist
                        found.add(layer.name)
        return found

    def findings(self, inference: Inference) -> list[Diagnostic]:
        """Problems of unused templates, as warnings, and shared weights whose shapes differ."""
        templates = self.graph.templates
        if not templates:
            return []
        used: set[str] = set()
        for layer in self.graph:
            if layer.type == INSTANCE:
                used.update(closure(templates, layer.params.get("template", "")))
        found: list[Diagnostic] = []
        for name in sorted(templates.keys() - used):
            body = self.body(name)
            assert body is not None
            found.extend(replace(d, severity=Severity.WARNING) for d in body.findings[:1])
        return [*found, *self.unshareable(inference)]

    def unshareable(self, inference: Inference) -> Iterator[Diagnostic]:
        """Problems of instances whose shared weights have different shapes."""
        shapes: dict[tuple[str, str], tuple[tuple[int, ...], str]] = {}
        for layer in self.graph:
            if layer.type != INSTANCE or not inference.states[layer.name].ok:
                continue
            operator = cast(Read, inference.read(layer.name)).operator
            if (
                not isinstance(operator, TemplateInstance)
                or operator.body is None
                or not operator.body.shares(operator)
            ):
                continue
            for owner, weight in operator.body.tensors(inference.states[layer.name].inputs, layer.name, operator):
                shape, first = shapes.setdefault((owner, weight.name), (weight.shape, layer.name))
                if shape != weight.shape:
                    ours, theirs = (dims_text(s) for s in (weight.shape, shape))
                    yield Diagnostic(
                        "shared-shape",
                        tr(
                            "'{owner}' has shared weights, but its '{name}' would be {ours} here and is {theirs} in '{first}'",
                            owner=owner,
                            name=weight.name,
                            ours=ours,
                            theirs=theirs,
                            first=first,
                        ),
                        layer=layer.name,
                        parameter="shared_weights",
                        remedy=tr(
                            "give both the same number of input channels, or give this instance separate weights"
                        ),
                        template=operator.template,
                    )
                    break


class Body:
    """A template in its graph. `findings` are the problems that do not depend on the input types."""

    def __init__(self, name: str, lookup: TemplateLookup) -> None:
        self.lookup = lookup
        self.template = lookup.graph.templates[name]
        self.graph = lookup.graph.inside(name)
        self._inferences: dict[tuple[TensorType, ...], Inference] = {}
        self._weights: dict[tuple[TensorType, ...], tuple[Weight, ...]] = {}
        self._dotted = [name for name in self.graph.layers if "." in name]
        self._sound = structure(lookup.graph, name)
        self.findings: tuple[Diagnostic, ...] = self._sound or tuple(self._faults())

    @property
    def expands(self) -> bool:
        """Whether instances can be replaced by layers: it does not use itself and is not too large."""
        return not self._sound

    def read(self, layer: Layer) -> Read:
        """A layer of the template as an operator; ports of the template have no type yet."""
        read = self.lookup.registry.read(layer)
        if not isinstance(read.operator, TemplateInstance):
            return read
        return self.lookup.instance(read, read.operator, layer, self._dotted)

    def infer(self, inputs: Sequence[TensorType]) -> Inference:
        """The shapes of its layers for the input types `inputs`."""
        key = tuple(inputs)
        known = self._inferences.get(key)
        if known is None:
            if len(self._inferences) >= KEPT:
                self._inferences.clear()
                self._weights.clear()
            feeds = dict(zip(self.template.inputs, key, strict=True))
            known = self._inferences[key] = Inference(self.graph, _Fed(self, feeds))
        return known

    def outputs(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types at its outputs. Raises a ShapeError that names the layer inside whose rule is broken."""
        inference = self.infer(inputs)
        wrong = errors(inference.diagnostics())
        if wrong:
            order = {name: number for number, name in enumerate(self.graph.order()[0])}
            first = self._inside(min(wrong, key=lambda d: order.get(d.layer or "", len(order))))
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise ShapeError(
                first.message + more, code=first.code, remedy=first.remedy, template=first.template, inner=first.inner
            )
        states = [inference.states[name].outputs for name in self.template.outputs]
        return tuple(outputs[0] for outputs in states if outputs)

    def tensors(
        self, inputs: Sequence[TensorType], owner: str, operator: TemplateInstance
    ) -> Iterator[tuple[str, Weight]]:
        """The tensors of an instance, each with the layer name that weights files use; `owner` is the instance's own."""
        inference = self.infer(inputs)
        base = operator.template if operator.shared_weights else owner
        for name in self.graph.order()[0]:
            state, read = inference.states[name], cast(Read, inference.read(name))
            if read.operator is None or not state.ok or self.graph[name].bypassed:
                continue
            inner = f"{base}.{name}"
            if isinstance(read.operator, TemplateInstance) and read.operator.body is not None:
                yield from read.operator.body.tensors(state.inputs, inner, read.operator)
            else:
                for weight in read.operator.weights(state.inputs):
                    yield inner, weight
            if read.activation is not None and state.before_activation is not None:
                for weight in read.activation.weights((state.before_activation,)):
                    yield inner, replace(weight, name=read.activation.weight_prefix + weight.name)

    def shares(self, operator: TemplateInstance) -> bool:
        """Whether an instance shares weights, itself or through a template that it uses."""
        templates = self.lookup.graph.templates
        used = [templates[name] for name in closure(templates, self.template.name) if name in templates]
        return operator.shared_weights or any(
            layer.type == INSTANCE and layer.params.get("shared_weights", "").strip() == "true"
            for template in used
            for layer in template.layers
        )

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        """The tensors of its layers; each name begins with the name of the layer."""
        key = tuple(inputs)
        if key not in self._weights:
            self._weights[key] = tuple(
                replace(weight, name=f"{owner}.{weight.name}", torch=f"{owner}.{weight.torch}")
                for owner, weight in (
                    (path.removeprefix("."), weight) for path, weight in self.tensors(inputs, "", TemplateInstance())
                )
            )
        return self._weights[key]

    def cost(self, inputs: Sequence[TensorType]) -> Cost:
        """The work of all its layers."""
        inference = self.infer(inputs)
        total = Cost()
        for name, state in inference.states.items():
            read = cast(Read, inference.read(name))
            if read.operator is None or state.outputs is None or self.graph[name].bypassed:
                continue
            before = state.outputs
            if read.activation is not None and state.before_activation is not None:
                before = (state.before_activation, *state.outputs[1:])
                total = _sum(total, read.activation.cost(before[:1], state.outputs[:1]))
            if read.operator.type not in (INPUT, OUTPUT):
                total = _sum(total, read.operator.cost(state.inputs, before))
        return total

    def _faults(self) -> Iterator[Diagnostic]:
        if not self.template.outputs:
            yield Diagnostic(
                "template-without-output",
                tr("the template '{name}' has no output", name=self.template.name),
                remedy=tr("add a template_output layer to it and connect it"),
                template=self.template.name,
            )
        for layer in self.template.layers:
            read = self.read(layer)
            for finding in read.diagnostics:
                yield self._inside(finding)
            for finding in misplaced(layer, self.lookup.registry.get(layer.type)):
                yield self._inside(finding)

    def _inside(self, finding: Diagnostic) -> Diagnostic:
        """A finding about a layer of the template as one about an instance; the caller sets `layer`."""
        name = self.template.name
        return replace(
            finding,
            message=f"in the template '{name}', layer '{finding.layer}': {finding.message}",
            layer=None,
            port=None,
            parameter=None,
            template=finding.template or name,
            inner=finding.inner or finding.layer,
        )


class _Fed:
    """A lookup for a template's layers whose input ports have known types."""

    def __init__(self, body: Body, feeds: dict[str, TensorType]) -> None:
        self.body = body
        self.feeds = feeds

    def read(self, layer: Layer) -> Read:
        read = self.body.read(layer)
        if isinstance(read.operator, TemplateInput):
            return replace(read, operator=read.operator.carrying(self.feeds.get(layer.name)))
        return read


def _sum(a: Cost, b: Cost) -> Cost:
    return Cost(
        a.flops + b.flops,
        a.bytes_read + b.bytes_read,
        a.bytes_written + b.bytes_written,
        a.parameters + b.parameters,
    )
