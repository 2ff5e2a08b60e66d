"""A network, or a part of it, as the source of one `torch.nn.Module`. Never imports torch, because the window uses it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from designer.graph.diagnostics import Diagnostic, DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.naming import identifier
from designer.operators.api import Role
from designer.operators.deploy import without_observers
from designer.operators.generated_code import NETWORK, template_title
from designer.operators.registry import Read, Registry
from designer.operators.torch_data import TorchModule, TorchParameter
from designer.operators.torch_program import RESERVED_LOCALS, Attribute, Program, TorchStep, build_program
from designer.operators.training_branch import no_output
from designer.texts import tr
from exporters.pytorch.checked import check_compiles, check_source, vocabulary
from exporters.pytorch.custom import custom_sources
from exporters.pytorch.subnetworks import Subnetwork, WithClasses, prepared, with_classes
from exporters.pytorch.text import expression, module_text, quoted, tensor_text

MAX_VALUES = 4096  # of one constant in source code


@dataclass(frozen=True)
class Module:
    """The program of a network for PyTorch, with the information for the other files of the project.

    `inputs` and `outputs` are in the order of names, as in the document. The graph is the deployed one. `taps` are the
    tensors that losses read; in training they are returned with the outputs.
    """

    inference: Inference
    program: Program
    inputs: tuple[Source, ...]
    outputs: tuple[Source, ...]
    taps: tuple[Source, ...] = ()
    title: str = NETWORK
    classes: tuple[Subnetwork, ...] = ()
    template: bool = False  # the class of a template: several outputs are a tuple
    given: tuple[str, ...] = ()  # arguments of `forward` that are modules with shared weights
    shared: Mapping[str, Subnetwork] = field(
        default_factory=dict
    )  # the class of each template whose weights are shared
    shapes: bool = True  # whether the shapes in the document apply to every use


def class_name(name: str) -> str:
    """Convert the name of a model to the name of its class: `my_net` is `MyNet`."""
    words = re.split(r"[\W_]+", name.strip())
    made = identifier("".join(word[:1].upper() + word[1:] for word in words) or name.strip())
    return f"{made}_" if made in RESERVED_LOCALS else made


def generate_source(graph: Graph, registry: Registry, name: str, selection: Collection[str] | None = None) -> str:
    """The text of model.py: the deployed network as one class called `name` (converted to an identifier).

    With `selection` only these layers; tensors that they read from others become arguments of `forward`. Raises
    DiagnosticError if a required layer is invalid.
    """
    return module_source(network_module(graph, registry, selection, name=name), class_name(name))


def generate_template(graph: Graph, registry: Registry, template: str) -> str:
    """The classes of a template in the source of the network, one for each variant.

    Raises DiagnosticError if the network is invalid or has no instance of the template.
    """
    module = network_module(graph, registry, name=class_name(graph.name))
    classes = [item for item in module.classes if item.template == template]
    found = [_class(_template(item), item.name) for item in classes]
    if not found:
        raise DiagnosticError.of(
            "no-instance",
            tr("the network has no instance of the template '{template}'", template=template),
            remedy=tr("add an instance"),
            template=template,
        )
    text = "\n".join("\n".join((*lines, "", "")) for lines in found).rstrip("\n") + "\n"
    check_source(text, vocabulary([item.program for item in classes], [item.name for item in module.classes]))
    return text


def network_module(
    graph: Graph,
    registry: Registry,
    selection: Collection[str] | None = None,
    *,
    taps: tuple[Source, ...] = (),
    name: str = "",
) -> Module:
    """The program of the whole network, which returns `taps` for training, or of a selection of its layers.

    Templates become separate classes, none of them called `name`, the name of the network's class.
    """
    deployed = without_observers(prepared(graph, registry), registry)
    inference = Inference(deployed, registry)
    if selection is None:
        if not any(role_in(inference, name) is Role.OUTPUT for name in deployed.layers):
            raise DiagnosticError(no_output(graph, registry))
        return _whole(inference, taps, name)
    chosen = {name for name in selection if name in deployed}
    if not chosen:
        raise DiagnosticError.of(
            "nothing-to-generate",
            tr("none of the selected layers has PyTorch code"),
            remedy=tr("select layers that are neither analysis layers nor part of the training branch"),
        )
    layers = [name for name in deployed.order(chosen)[0] if role_in(inference, name) is not Role.INPUT]
    check_shapes(inference, chosen)
    members = set(layers)
    reads = [s for name in layers for s in deployed[name].inputs if s is not None and s.layer not in members]
    inputs = sorted({inference.tensor(s) for s in reads} | {Source(n) for n in chosen - members})
    outputs = [s for name in sorted(chosen) for s in _results(inference, name, chosen)]
    made = built(inference, layers, inputs, outputs, name)
    return Module(inference, made.program, tuple(inputs), tuple(outputs), classes=made.classes, shared=made.shared)


def built(
    inference: Inference,
    layers: Sequence[str],
    inputs: Sequence[Source],
    wanted: Sequence[Source],
    name: str,
    elsewhere: Collection[str] = (),
) -> WithClasses:
    """The program of layers, and the classes of the templates of the instances among them.

    The shared modules of the templates `elsewhere` are arguments of `forward`.
    """
    taken = {class_name(name), *RESERVED_LOCALS}
    return with_classes(inference, layers, build_program(inference, layers, inputs, wanted), taken, elsewhere)


def _whole(inference: Inference, taps: tuple[Source, ...], name: str) -> Module:
    graph = inference.graph
    ends = sorted(name for name in graph.layers if role_in(inference, name) is Role.OUTPUT)
    needed = graph.upstream(ends)
    check_shapes(inference, needed)
    inputs = sorted(name for name in needed if role_in(inference, name) is Role.INPUT)
    if not inputs:
        raise DiagnosticError.of(
            "no-input",
            tr("no output depends on an input layer"),
            remedy=tr("add an input layer and connect it to the network"),
        )
    layers = [name for name in graph.order(needed)[0] if name not in inputs]
    sources, results = tuple(map(Source, inputs)), tuple(map(Source, ends))
    made = built(inference, layers, sources, [*results, *taps], name)
    return Module(inference, made.program, sources, results, taps, classes=made.classes, shared=made.shared)


def check_shapes(inference: Inference, names: Collection[str]) -> None:
    """Raise DiagnosticError with the reasons if a shape of `names` is unknown."""
    causes = {inference.states[n].because_of or n for n in names if inference.states[n].outputs is None}
    found = [d for cause in sorted(causes) if cause in inference.states for d in inference.states[cause].diagnostics]
    if causes:
        raise DiagnosticError(
            errors(found)
            or Diagnostic(
                "not-runnable",
                tr("the shapes of {causes} are unknown", causes=", ".join(sorted(causes))),
                remedy=tr("see the problems in Type Checking"),
            )
        )


def role_in(inference: Inference, layer: str) -> Role | None:
    """The role of a layer; None if its type is unknown or its parameters are invalid."""
    operator = cast(Read, inference.read(layer)).operator
    return operator.role if operator is not None else None


def _results(inference: Inference, layer: str, chosen: set[str]) -> list[Source]:
    """The outputs of a layer that are read outside `chosen` or not at all."""
    graph = inference.graph
    reads = [(c, inference.tensor(s)) for c in graph.consumers(layer) for s in graph[c].inputs if s is not None]
    results = []
    for source in inference.tensors(layer):
        readers = {consumer for consumer, read in reads if read == source}
        if (not readers and role_in(inference, layer) is not Role.INPUT) or readers - chosen:
            results.append(source)
    return [r for r in results if role_in(inference, layer) is not Role.INPUT]


def module_source(module: Module, name: str) -> str:
    """The source of a module as one class called `name`."""
    inner = [_class(_template(item), item.name) for item in module.classes]
    body = _class(module, name)
    programs = [*(item.program for item in module.classes), module.program]
    classes = (name, *(item.name for item in module.classes))
    own = custom_sources((a for program in programs for a in program.attributes), classes)
    imports = ["import torch", "from torch import nn"]
    if any("F." in line for lines in (own, *inner, body) for line in lines):
        imports.insert(1, "import torch.nn.functional as F")
    generated = [line for lines in inner for line in (*lines, "", "")] + body
    check_source("\n".join([*imports, *generated]), vocabulary(programs, classes))
    before = [line for source in own for line in (source.rstrip("\n"), "", "")]
    text = "\n".join([*imports, "", "", *before, *generated]) + "\n"
    if own:
        check_compiles(text)
    return text


def _template(item: Subnetwork) -> Module:
    """The class of a template as a module that can be printed."""
    program = item.program
    if item.several:
        program = replace(program, steps=tuple(replace(step, type=None) for step in program.steps))
    return Module(
        item.inference,
        program,
        item.inputs,
        item.outputs,
        title=template_title(item.template),
        template=True,
        given=tuple(item.needs.values()),
        shapes=not item.several,
    )


def _class(module: Module, name: str) -> list[str]:
    return [f"class {name}(nn.Module):", *_docstring(module), "", *_init(module.program), "", *_forward(module)]


def _docstring(module: Module) -> list[str]:
    """The arguments and results of `forward`. Sizes are those in the document; most networks accept others too."""
    inputs = [f"        {module.program.inputs[source]}: {_shape(module, source)}" for source in module.inputs]
    several = len(module.outputs) != 1
    by_name = several and not module.template
    names = {s: quoted(str(s)) if by_name else module.program.outputs[s] for s in module.outputs}
    inputs += [f"        {name}: the module with the shared weights" for name in module.given]
    outputs = [f"        {names[source]}: {_shape(module, source)}" for source in module.outputs]
    lines = [f'    """{module.title}', ""]
    if inputs:
        lines += ["    Args:", *inputs, ""]
    return [*lines, "    Returns:", *outputs, '    """']


def _shape(module: Module, source: Source) -> str:
    if not module.shapes:
        return "a tensor"
    kind = module.inference.type_of(source)
    return str(kind) if kind is not None else "unknown"


def _init(program: Program) -> list[str]:
    lines = ["    def __init__(self) -> None:", "        super().__init__()"]
    return [*lines, *(f"        {line}" for attribute in program.attributes for line in _attribute(attribute))]


def _attribute(attribute: Attribute) -> list[str]:
    content = attribute.content
    note = "" if attribute.name.startswith(attribute.layer) else f"  # layer {attribute.layer!r}"
    if isinstance(content, TorchParameter):
        if _count(content.values) > MAX_VALUES:
            raise DiagnosticError.of(
                "constant-too-large",
                tr(
                    "the constant of '{layer}' has more than {MAX_VALUES} numbers, too many for source code",
                    layer=attribute.layer,
                    MAX_VALUES=MAX_VALUES,
                ),
                layer=attribute.layer,
                remedy=tr("load it from the weights"),
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
    """`forward`; for training also `forward_training`, which also returns the tensors that the losses read."""
    program = module.program
    names = [program.inputs[source] for source in module.inputs]
    given = [f"{name}: nn.Module" for name in module.given]
    arguments = ", ".join(["self", *(f"{name}: torch.Tensor" for name in names), *given])
    several = "tuple[torch.Tensor, ...]" if module.template else "dict[str, torch.Tensor]"
    returns = several if len(module.outputs) != 1 else "torch.Tensor"
    head = f"    def forward({arguments}) -> {returns}:"
    steps = [f"        {_step(step)}" for step in program.steps]
    if not module.taps:
        return [head, *steps, *_return(module, "")]
    taps = [program.outputs[source] for source in module.taps]
    return [
        head,
        f"        return self.forward_training({', '.join(names)})[0]",
        "",
        f"    def forward_training({arguments}) -> tuple[{returns}, tuple[torch.Tensor, ...]]:",
        '        """Return the result of `forward`, and the tensors that the losses read, in the order of their arguments."""',
        *steps,
        *_return(module, f", ({', '.join(taps)}{',' if len(taps) == 1 else ''})"),
    ]


def _return(module: Module, more: str) -> list[str]:
    """The return statement of the outputs, followed by the text `more`."""
    locals_ = module.program.outputs
    if len(module.outputs) == 1:
        only = module.outputs[0]
        note = "" if str(only) == locals_[only] else f"  # {str(only)!r}"
        return [f"        return {locals_[only]}{more}{note}"]
    if module.template:
        return [f"        return {', '.join(locals_[source] for source in module.outputs)}"]
    entries = [f"            {quoted(str(source))}: {locals_[source]}," for source in module.outputs]
    return ["        return {", *entries, f"        }}{more}"]


def _step(step: TorchStep) -> str:
    code = f"{step.target} = {expression(step.value)}"
    return f"{code}  # {step.type}" if step.type is not None else code
