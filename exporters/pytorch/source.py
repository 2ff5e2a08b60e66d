"""A network, or a part of it, as the source of one `torch.nn.Module`. Never imports torch: the code view runs this live."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from designer.graph.diagnostics import Diagnostic, DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.naming import identifier
from designer.graph.types import TensorType
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.operators.registry import Read, Registry
from designer.operators.torch_data import TorchModule, TorchParameter
from designer.operators.torch_program import RESERVED_LOCALS, Attribute, Program, Step, build_program
from exporters.pytorch.custom import custom_sources
from exporters.pytorch.text import expression, module_text, quoted, tensor_text

MAX_VALUES = 4096  # numbers of one constant that are printed into source


@dataclass(frozen=True)
class Module:
    """The program of a network for PyTorch, with what the files around it need to know.

    `inputs` and `outputs` are in the document's order, which is the order of names. The graph is the deployed one.
    """

    inference: Inference
    program: Program
    inputs: tuple[Source, ...]
    outputs: tuple[Source, ...]


def class_name(name: str) -> str:
    """A person's name for a model as the name of its class."""
    made = identifier(name.strip())
    return f"{made}_" if made in RESERVED_LOCALS else made


def generate_source(graph: Graph, registry: Registry, name: str, selection: Collection[str] | None = None) -> str:
    """The text of model.py: one class called `name` (made legal), as the network is deployed.

    With `selection` only these layers; what they read from others becomes arguments of `forward`. Raises DiagnosticError
    when the network is not valid as far as it is needed.
    """
    return module_source(network_module(graph, registry, selection), class_name(name))


def network_module(graph: Graph, registry: Registry, selection: Collection[str] | None = None) -> Module:
    """The program of the whole network or of a selection of its layers."""
    deployed = deploy(graph, registry)
    inference = Inference(deployed, registry)
    if selection is None:
        return _whole(inference)
    chosen = {name for name in selection if name in deployed}
    if not chosen:
        raise DiagnosticError(
            Diagnostic(
                "nothing-to-generate",
                "none of the selected layers computes anything in PyTorch",
                remedy="select layers that are not analysis layers",
            )
        )
    layers = [name for name in deployed.order(chosen)[0] if _role(inference, name) is not Role.INPUT]
    _check(inference, chosen)
    members = set(layers)
    reads = [s for name in layers for s in deployed[name].inputs if s is not None and s.layer not in members]
    inputs = sorted({_plain(inference, s) for s in reads} | {Source(n) for n in chosen - members})
    outputs = [s for name in sorted(chosen) for s in _results(inference, name, chosen)]
    return Module(inference, build_program(inference, layers, inputs, outputs), tuple(inputs), tuple(outputs))


def _whole(inference: Inference) -> Module:
    graph = inference.graph
    ends = sorted(name for name in graph.layers if _role(inference, name) is Role.OUTPUT)
    if not ends:
        raise DiagnosticError(
            Diagnostic("no-output", "the network has no output layer", remedy="add an output layer and connect it")
        )
    needed = graph.upstream(ends)
    _check(inference, needed)
    inputs = sorted(name for name in needed if _role(inference, name) is Role.INPUT)
    if not inputs:
        raise DiagnosticError(
            Diagnostic(
                "no-input",
                "no output depends on an input layer",
                remedy="add an input layer and connect it to the network",
            )
        )
    layers = [name for name in graph.order(needed)[0] if name not in inputs]
    sources, results = tuple(map(Source, inputs)), tuple(map(Source, ends))
    return Module(inference, build_program(inference, layers, sources, results), sources, results)


def _check(inference: Inference, names: Collection[str]) -> None:
    """Stop with the findings in the way of `names`."""
    causes = {inference.states[n].because_of or n for n in names if inference.states[n].outputs is None}
    found = [d for cause in sorted(causes) if cause in inference.states for d in inference.states[cause].diagnostics]
    if causes:
        raise DiagnosticError(
            errors(found)
            or Diagnostic(
                "not-runnable",
                f"the shapes of {', '.join(sorted(causes))} are not known",
                remedy="look at the findings of the type checking",
            )
        )


def _role(inference: Inference, layer: str) -> Role | None:
    operator = cast(Read, inference.read(layer)).operator
    return operator.role if operator is not None else None


def _ports(inference: Inference, layer: str) -> list[str]:
    operator = inference.read(layer).operator
    return [port.name for port in operator.output_ports()] if operator is not None else []


def _plain(inference: Inference, source: Source) -> Source:
    """The one name of a tensor: a first output has an empty port."""
    return Source(source.layer) if source.port in _ports(inference, source.layer)[:1] else source


def _results(inference: Inference, layer: str, chosen: set[str]) -> list[Source]:
    """The outputs of a layer that are read outside `chosen`, or that nobody reads."""
    graph = inference.graph
    reads = [(c, _plain(inference, s)) for c in graph.consumers(layer) for s in graph[c].inputs if s is not None]
    results = []
    for index, port in enumerate(_ports(inference, layer)):
        source = Source(layer, port if index else "")
        readers = {consumer for consumer, read in reads if read == source}
        if (not readers and _role(inference, layer) is not Role.INPUT) or readers - chosen:
            results.append(source)
    return [r for r in results if _role(inference, layer) is not Role.INPUT]


def module_source(module: Module, name: str) -> str:
    """The source of a module as one class called `name`."""
    program = module.program
    body = [*_init(program), "", *_forward(module)]
    own = custom_sources(program.attributes, (name,))
    text = "\n".join([*own, *body])
    imports = ["import torch"]
    if "F." in text:
        imports.append("import torch.nn.functional as F")
    imports.append("from torch import nn")
    custom = [line for source in own for line in (source.rstrip("\n"), "", "")]
    head = [*imports, "", "", *custom, f"class {name}(nn.Module):", *_docstring(module), ""]
    return "\n".join([*head, *body]) + "\n"


def _docstring(module: Module) -> list[str]:
    """What `forward` takes and returns. Sizes are those of the drawing; most networks take others too."""
    inputs = [f"        {module.program.inputs[source]}: {_shape(module, source)}" for source in module.inputs]
    several = len(module.outputs) != 1
    names = {s: quoted(str(s)) if several else module.program.outputs[s] for s in module.outputs}
    outputs = [f"        {names[source]}: {_shape(module, source)}" for source in module.outputs]
    lines = ['    """The layers of the network in running order.', ""]
    if inputs:
        lines += ["    Args:", *inputs, ""]
    return [*lines, "    Returns:", *outputs, '    """']


def _shape(module: Module, source: Source) -> str:
    kind = _type(module.inference, source)
    return str(kind) if kind is not None else "unknown"


def _type(inference: Inference, source: Source) -> TensorType | None:
    outputs = inference.states[source.layer].outputs
    ports = _ports(inference, source.layer)
    index = ports.index(source.port) if source.port in ports else 0
    return outputs[index] if outputs is not None and index < len(outputs) else None


def _init(program: Program) -> list[str]:
    lines = ["    def __init__(self) -> None:", "        super().__init__()"]
    return [*lines, *(f"        {line}" for attribute in program.attributes for line in _attribute(attribute))]


def _attribute(attribute: Attribute) -> list[str]:
    content = attribute.content
    note = "" if attribute.name.startswith(attribute.layer) else f"  # layer {attribute.layer!r}"
    if isinstance(content, TorchParameter):
        if _count(content.values) > MAX_VALUES:
            raise DiagnosticError(
                Diagnostic(
                    "constant-too-large",
                    f"the constant of '{attribute.layer}' has more than {MAX_VALUES} numbers, too many for source code",
                    layer=attribute.layer,
                    remedy="let the weights bring it",
                )
            )
        tensor = tensor_text(content)
        if content.trainable:
            return [f"self.{attribute.name} = nn.Parameter({tensor}){note}"]
        flag = "" if content.persistent else ", persistent=False"
        return [
            f"self.{attribute.name}: torch.Tensor{note}",
            f'self.register_buffer("{attribute.name}", {tensor}{flag})',
        ]
    if isinstance(content, TorchModule):
        return [f"self.{attribute.name} = {module_text(content)}{note}"]
    entries = [f"    {quoted(key)}: {module_text(data)}," for key, data in content.items()]
    return [f"self.{attribute.name} = nn.ModuleDict({{{note}", *entries, "})"]


def _count(values: object) -> int:
    return sum(map(_count, values)) if isinstance(values, tuple | list) else 1


def _forward(module: Module) -> list[str]:
    program = module.program
    arguments = ", ".join(f"{program.inputs[source]}: torch.Tensor" for source in module.inputs)
    several = len(module.outputs) != 1
    returns = "dict[str, torch.Tensor]" if several else "torch.Tensor"
    lines = [
        f"    def forward(self, {arguments}) -> {returns}:" if arguments else f"    def forward(self) -> {returns}:"
    ]
    lines += [f"        {_step(step)}" for step in program.steps]
    if not several:
        only = module.outputs[0]
        note = "" if str(only) == program.outputs[only] else f"  # {str(only)!r}"
        return [*lines, f"        return {program.outputs[only]}{note}"]
    entries = [f"            {quoted(str(source))}: {program.outputs[source]}," for source in module.outputs]
    return [*lines, "        return {", *entries, "        }"]


def _step(step: Step) -> str:
    code = f"{step.target} = {expression(step.value)}"
    return f"{code}  # {step.type}" if step.type is not None else code
