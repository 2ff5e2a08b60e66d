"""Import of a PyTorch module: inputs, the nodes of its trace in order, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.graph.types import BATCH, DataType, ShapeError, Size3D
from designer.importers.builder import GraphBuilder
from designer.importers.imported import Imported
from designer.importers.pytorch.composites import Composite, module_composites, operator_of
from designer.importers.pytorch.conversion import (
    MAX_FOLDED,
    BatchError,
    Constant,
    Conversion,
    Merged,
    Repeated,
    TraceNode,
    UnsupportedError,
    Value,
    axes_of,
    without_values,
)
from designer.importers.pytorch.generated import GeneratedCode, read_code
from designer.importers.pytorch.loading import failed
from designer.importers.pytorch.mutation import Aliases, is_write
from designer.importers.pytorch.nodes import CONVERTERS
from designer.importers.pytorch.original import TorchOriginal
from designer.importers.pytorch.program import (
    constants,
    described,
    is_item,
    is_number,
    line_of,
    plain_number,
    shapes_of,
    undescribed,
    user_inputs,
    user_outputs,
)
from designer.importers.pytorch.tracing import Trace, reason_of, trace
from designer.importers.report import ImportReport, Outcome, counted, named_tensors
from designer.importers.templates import moved_outcome
from designer.operators.code_text import digest
from designer.operators.library.development.custom import Custom
from designer.operators.params import ParamError
from designer.operators.params import Value as Param
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

RANDOM = ("rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "rand_like", "randn_like")
Progress = Callable[[int, int, str], None]


def import_module(
    module: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    registry: Registry,
    *,
    name: str = "",
    progress: Progress | None = None,
) -> Imported:
    """Trace a module with example inputs, and build the document. The module is run; so the caller has the user's consent.

    The batch stays open if every node allows it; otherwise the document has the batch of the examples. Raises
    DiagnosticError if the module cannot be traced.
    """
    module.eval()
    unsteady = _changes_itself(module, inputs)
    title = name or type(module).__name__
    opened = trace(module, inputs, open_batch=True)
    try:
        found = _imported(opened, module, registry, title, progress) if opened is not None else None
    except DiagnosticError:  # the import with a fixed batch succeeds, or reports what is wrong
        found = None
    if found is None or any(_gaps(found)):
        fixed = trace(module, inputs, open_batch=False)
        assert fixed is not None
        other = _imported(fixed, module, registry, title, progress)
        if found is None or _gaps(other) < _gaps(found):
            found = other
    if isinstance(found.original, TorchOriginal):
        found.original.again = lambda others: import_module(module, others, registry, name=name)
    if not unsteady:
        return found
    note = tr("two runs with the same input give different results: the module changes itself or draws random numbers")
    return replace(found, report=msgspec.structs.replace(found.report, warnings=(*found.report.warnings, note)))


def _gaps(found: Imported) -> tuple[int, int]:
    """How many nodes have no layers of the library, and how many results have no output."""
    outputs = found.original.outputs if isinstance(found.original, TorchOriginal) else ()
    return found.report.opaque, outputs.count("")


def _changes_itself(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether a second run gives other results. Raises DiagnosticError with the module's own error if it fails."""
    import torch

    try:
        with torch.no_grad():
            first, second = (
                torch.utils._pytree.tree_leaves(module(*(tensor.clone() for tensor in inputs))) for _ in range(2)
            )
    except Exception as error:  # the user's code raises anything
        shapes = ", ".join(dims_text(tensor.shape) for tensor in inputs) or tr("no input")
        raise failed(tr("{kind} with {shapes}", kind=type(module).__name__, shapes=shapes), error) from None
    pairs = [pair for pair in zip(first, second, strict=False) if isinstance(pair[0], torch.Tensor)]
    return not all(_same_bits(one, other) for one, other in pairs)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    bits = [
        tensor.to_dense().flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)
        for tensor in (one, other)
    ]
    return one.shape == other.shape and torch.equal(*bits)


def import_saved_program(path: Path, registry: Registry, *, progress: Progress | None = None) -> Imported:
    """The document of a program that `torch.export.save` wrote; reading it can run code that is in it.

    Raises DiagnosticError for a damaged file.
    """
    import torch

    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises various exceptions for damaged files
        raise DiagnosticError.of(
            "torch-module",
            tr("{name} is not a readable exported program: {reason}", name=path.name, reason=reason_of(error)),
            file=str(path),
            remedy=tr("write it again with torch.export.save(torch.export.export(module, inputs), path)"),
        ) from None
    trace_ = Trace(program, True)
    found = _imported(trace_, program.module(), registry, path.stem, progress)
    return replace(found, report=msgspec.structs.replace(found.report, source=path.name))


def _imported(
    traced: Trace, module: torch.nn.Module, registry: Registry, name: str, progress: Progress | None
) -> Imported:
    program = traced.program
    builder = GraphBuilder(registry, name)
    code = read_code(module, list(program.graph.nodes))
    builder.classes = code.classes
    outputs = user_outputs(program, code.output or "y")
    builder.reserve([*user_inputs(program), *outputs])
    c = Conversion(builder)
    c.values.update(constants(program))
    steps = Steps(c, Aliases(c), code, progress=progress)
    entries = _add_inputs(c, program)
    steps.run(program.graph_module, program.graph)
    warnings = [tr("not proven for other inputs: {doubt}", doubt=doubt) for doubt in traced.doubts]
    named = {label: _add_output(c, label, node, warnings) for label, node in outputs.items()}
    if not any(named.values()):
        raise DiagnosticError.of(
            "torch-output",
            tr("{name} returns no tensor that depends on its inputs", name=name),
            remedy=tr("import a module that returns tensors"),
        )
    graph, weights = builder.finish()
    report = ImportReport(
        source=name,
        producer=f"torch {_version()}",
        templates=builder.repeats,
        **named_tensors(builder.tensors, warnings),
        **counted(tuple(moved_outcome(item, builder.moved) for item in c.outcomes)),
    )
    if steps.broken:
        report = msgspec.structs.replace(
            report, not_compared_because=tr("the layers {names} cannot run", names=", ".join(steps.broken[:5]))
        )
        return Imported(graph, weights, report)
    original = TorchOriginal(module, entries, [label or "" for label in named.values()], graph, registry)
    return Imported(graph, weights, report, original, steps.options())


def _version() -> str:
    import torch

    return str(torch.__version__)


@dataclass
class Steps:
    """Converts the nodes of a trace one after the other."""

    conversion: Conversion
    aliases: Aliases
    code: GeneratedCode = field(default_factory=GeneratedCode)
    progress: Progress | None = None
    broken: list[str] = field(default_factory=list)  # layers that cannot run
    agreed: list[str] = field(default_factory=list)  # digests of custom layers that were made of the module's own code

    def options(self) -> RunOptions | None:
        """How the document is run: with torch if it has custom layers."""
        return RunOptions(engine="torch", agreed=tuple(self.agreed)) if self.agreed else None

    def run(self, owner: Any, graph: Any) -> Any:
        """Convert the nodes of `graph`, which belongs to the module `owner`; the result is what it returns."""
        nodes = list(graph.nodes)
        composites = {group.nodes[0].name: group for group in (*self.code.composites, *module_composites(nodes))}
        done: set[Node] = set()
        result = None
        for number, node in enumerate(nodes):
            if node.name in composites and self._composite(composites[node.name]):
                done.update(composites[node.name].nodes)
            if node in done:
                continue
            if self.progress is not None and number % 64 == 0:
                self.progress(number, len(nodes), node.name)
            if node.op == "output":
                result = node.args[0]
            elif node.op == "get_attr":
                self._attribute(owner, node)
            elif node.op == "call_function":
                self._call(owner, node)
        return result

    def _composite(self, group: Composite) -> bool:
        """Convert a group of nodes to one layer; False if the library has none for it."""
        c = self.conversion
        mark = c.builder.mark()
        c.made = []
        try:
            c.current = step = group.step()
            c.values[step.name] = group.convert(group, c)
        except (UnsupportedError, ShapeError, ParamError):
            c.builder.rollback(mark)
            c.forget()
            return False
        for node in group.nodes:
            c.record(replace(step, name=node.name, op=operator_of(node) or str(node.target)), Outcome.KNOWN)
        return True

    def _attribute(self, owner: Any, node: Node) -> None:
        import torch

        found = owner
        for part in str(node.target).split("."):
            found = getattr(found, part)
        self.conversion.values[node.name] = Constant(found) if isinstance(found, torch.Tensor) else found

    def _call(self, owner: Any, node: Node) -> None:
        c = self.conversion
        if is_item(node):
            items = c.values.get(getattr(node.args[0], "name", ""))
            if isinstance(items, tuple | list):
                c.values[node.name] = items[node.args[1]]  # type: ignore[index]
                self.aliases.note(node, int(node.args[1]))  # type: ignore[arg-type]
            return
        if is_number(node):
            c.values[node.name] = plain_number(node.meta["val"])
            return
        if _is_scope(node):
            self._scope(node)
            return
        if not hasattr(node.target, "_schema"):
            self._keep(undescribed(node), node, tr("it is control flow"))
            return
        if not shapes_of(node):
            return  # an assertion
        self._convert(node)

    def _scope(self, node: Node) -> None:
        """A block such as `with torch.no_grad()`: its nodes are those of the graph around."""
        c = self.conversion
        inner: Any = None
        arguments = []
        for item in node.args:
            value = c.values.get(getattr(item, "name", ""))
            if inner is None and hasattr(value, "graph"):
                inner = value
            elif inner is not None:
                arguments.append(value)
        places = [item for item in inner.graph.nodes if item.op == "placeholder"]
        for place, value in zip(places, arguments, strict=True):
            c.values[place.name] = value
        result = self.run(inner, inner.graph)
        items = result if isinstance(result, list | tuple) else [result]
        c.values[node.name] = tuple(c.values.get(getattr(item, "name", "")) for item in items)

    def _convert(self, node: Node) -> None:
        """Convert one node: a constant, layers of the library, a custom layer, or an opaque one."""
        c = self.conversion
        c.made = []
        mark = c.builder.mark()
        try:
            step = described(node, c.values)
        except UnsupportedError as error:
            self._keep(undescribed(node), node, str(error))
            return
        role = self.code.roles.get(node.name)
        if role is not None:
            step = replace(step, label=role.label, statement=role.statement, attached=role.attached)
        c.current = step
        _refuse_own_writes(node, c)
        known = None if step.several or len(step.shapes) > 1 else without_values(*step.shapes[0])
        known = known if known is not None else folded(node, step)
        if known is not None:
            c.values[node.name] = known
            if is_write(node):
                self.aliases.rename(node)
            else:
                self.aliases.note(node, step)
            c.record(step, Outcome.FOLDED)
            return
        try:
            converter = CONVERTERS.get(step.op)
            if converter is None and step.op != "copy":
                raise UnsupportedError(tr("{op} is not an operator of the library", op=step.op))
            made = self.aliases.source(step) if converter is None else converter(c, step)
            _check_results(step, made)
            c.values[node.name] = made
            self.aliases.note(node, step)
            c.record(step, Outcome.KNOWN)
        except (UnsupportedError, ShapeError, ParamError) as error:
            reason = error.message if isinstance(error, ShapeError) else str(error)
            c.builder.rollback(mark)
            c.forget()
            self._keep(step, node, reason)

    def _keep(self, step: TraceNode, node: Node, reason: str) -> None:
        """A node that the library does not have: a custom layer with its call, else an opaque layer that cannot run."""
        c = self.conversion
        c.current, c.made = step, []
        if step.line:
            reason = f"{reason} ({step.line})"
        sources = [
            c.values[item.name]
            for item in node.all_input_nodes
            if isinstance(c.values.get(item.name), Value | Constant | Repeated)
        ]
        mark = c.builder.mark()
        try:
            if len(sources) < len(node.all_input_nodes):
                raise UnsupportedError("no layer holds one of its arguments")
            made = custom_layer(c, step, sources)
            c.values[node.name] = made
            if is_write(node):
                self.aliases.note(node, step)
            operator = c.builder.registry.read(c.builder.layers[made.source.layer]).operator
            assert isinstance(operator, Custom)
            self.agreed.append(digest(operator.agreement))
            c.record(step, Outcome.OPAQUE, reason)
            return
        except (UnsupportedError, ShapeError, ParamError):
            c.builder.rollback(mark)
            c.forget()
            c.made = []
        try:
            c.values[node.name] = opaque_layer(c, step, sources)
        except (UnsupportedError, ShapeError, ParamError) as error:
            raise DiagnosticError.of(
                "torch-node",
                tr("{op} cannot be imported: {reason} ({error})", op=step.op, reason=reason, error=error),
                remedy=tr("change that line, or import the part of the module before it"),
            ) from None
        self.broken.append(c.made[-1])  # behind the constants that it reads
        c.record(step, Outcome.OPAQUE, tr("{reason}; its layer cannot run", reason=reason))


def _check_results(step: TraceNode, made: Any) -> None:
    """Raise UnsupportedError if what a converter made has another shape or element type than in the trace."""
    for item, (shape, dtype) in zip(made if isinstance(made, tuple) else (made,), step.shapes, strict=False):
        if item is None:
            continue
        found = item.traced()
        if found != (shape, dtype):
            raise UnsupportedError(f"its result is {dtype} {shape} in the module, but {found[1]} {found[0]} in layers")


def _refuse_own_writes(node: Node, c: Conversion) -> None:
    """Raise DiagnosticError if a node writes to a parameter or buffer of the module."""
    target = node.args[0] if node.args else None
    if not node.target._schema.is_mutable or getattr(target, "op", "") != "placeholder":  # type: ignore[union-attr]
        return
    before = c.values.get(getattr(target, "name", ""))
    if isinstance(before, Constant) and before.name:
        raise DiagnosticError.of(
            "torch-node",
            tr(
                "the module changes its own tensor '{name}' when it runs ({line})", name=before.name, line=line_of(node)
            ),
            remedy=tr("import it in a state in which it only reads its tensors"),
        )


def _is_scope(node: Node) -> bool:
    return getattr(node.target, "_name", "") in ("wrap_with_set_grad_enabled", "wrap_with_autocast")


def folded(node: Node, step: TraceNode) -> Any:
    """The value of a node that depends on constants only; None for others."""
    import torch

    values = list(_leaves(list(step.arguments.values())))
    if step.op in RANDOM or any(not _is_known(value) for value in values):
        return None
    single = [value for value in values if isinstance(value, Constant)]
    arguments = {name: _unwrapped(value) for name, value in step.arguments.items()}
    schema = node.target._schema  # type: ignore[union-attr]
    positional = [arguments[item.name] for item in schema.arguments if not item.kwarg_only and item.name in arguments]
    named = {item.name: arguments[item.name] for item in schema.arguments if item.kwarg_only and item.name in arguments}
    try:
        with torch.no_grad():
            made = node.target(*positional, **named)  # type: ignore[operator]
    except Exception:  # tensors of the trace without values
        return None
    if isinstance(made, torch.Tensor):
        if made.numel() > MAX_FOLDED:
            return None
        source = single[0] if len(single) == 1 and made.numel() == single[0].tensor.numel() else None
        moved = source is not None and (step.op in _MOVES or _is_widened(step, source.tensor, made))
        return Constant(made, source.name if moved and source else "", bool(moved and source and source.learned))
    return tuple(Constant(item) for item in made) if isinstance(made, tuple | list) else None


_MOVES = (
    "view",
    "reshape",
    "permute",
    "transpose",
    "t",
    "unsqueeze",
    "squeeze",
    "contiguous",
    "clone",
    "alias",
    "detach",
)


def _is_widened(step: TraceNode, before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether a learned tensor of another floating-point type becomes float32, the type of weights."""
    converts = step.op in ("to", "_to_copy", "float", "type_as")
    return converts and before.is_floating_point() and str(after.dtype) == "torch.float32"


def _leaves(value: Any) -> Any:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_known(value: Any) -> bool:
    import torch

    plain = int | float | bool | str | None | torch.dtype | torch.device | torch.layout | torch.memory_format
    return isinstance(value, Constant | plain)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Constant):
        return value.tensor.detach()
    return [_unwrapped(item) for item in value] if isinstance(value, list | tuple) else value


# --- what the library does not have -------------------------------------------------------------------------------


def custom_layer(c: Conversion, step: TraceNode, sources: Sequence[Any]) -> Value:
    """A custom layer that makes the same call. Raises UnsupportedError, ShapeError or ParamError if none can.

    The batch of its result is that of its first input.
    """
    if not step.text or step.several or not sources:
        raise UnsupportedError("it has several results or no tensor")
    values = [c.plain(item) for item in sources]
    shape, dtype = step.shapes[0]
    if dtype is not DataType.FLOAT32:
        raise UnsupportedError("its result is not float32")
    wanted = [Merged() if size is None else size for size in shape]
    names = [f"x{number + 1}" for number in range(len(values))]
    if wanted[:1] == [Merged()]:
        order = sorted(range(len(values)), key=lambda number: values[number].shape[:1] != (Merged(),))
        values, names = [values[number] for number in order], [names[number] for number in order]
    title, source = _call_source(c, step, names)
    params: dict[str, Param] = {"source": source, "class_name": title, "input_count": len(values)}
    first = axes_of(values[0].shape)
    if tuple(wanted) and axes_of(wanted) == first:
        params["result"] = "same"
    else:
        sizes = tuple(size for size in wanted[1:] if isinstance(size, int))
        if not wanted or wanted[0] != Merged() or len(sizes) != len(wanted) - 1:
            raise UnsupportedError("its result has no batch")
        params |= {"result": "shape", "shape": sizes}
    return c.layer("custom", values, params, shape=wanted)


def _call_source(c: Conversion, step: TraceNode, names: Sequence[str]) -> tuple[str, str]:
    """The name and the text of a class that makes the call; another call of the operator has another name."""
    known = {
        layer.params["class_name"]: layer.params["source"]
        for layer in c.builder.layers.values()
        if layer.type == "custom"
    }
    title, arguments = "".join(part.capitalize() for part in step.op.split("_")) or "Call", ", ".join(["self", *names])
    for number in count(1):
        name = title if number == 1 else f"{title}{number}"
        source = f"class {name}(nn.Module):\n    def forward({arguments}):\n        return {step.text}\n"
        if known.get(name, source) == source:
            return name, source
    raise AssertionError


def opaque_layer(c: Conversion, step: TraceNode, sources: Sequence[Any]) -> Any:
    """A layer that only shows the node: its name, inputs and the types of its results."""
    values = []
    for item in sources:
        try:
            values.append(c.value(item))
        except (UnsupportedError, ShapeError, ParamError):
            continue
    lines = []
    for shape, dtype in step.shapes:
        dims = ["N" if size is None else str(size) for size in shape]
        text = " x ".join(dims) or "scalar"
        lines.append(text if dtype in (DataType.FLOAT32, None) else f"{text} {dtype.value}")
    name = "".join(letter if letter.isalnum() else "_" for letter in step.op).strip("_") or "call"
    params: dict[str, Param] = {
        "op_type": name if name.isidentifier() else f"call_{name}",
        "domain": "torch",
        "input_count": len(values),
        "output_count": max(1, len(lines)),
        "shapes": "\n".join(lines) or "scalar",
    }
    first = c.layer("opaque", values, params)
    sources_ = c.outputs(first.source.layer)
    found = tuple(c.wrap(source) for source in sources_)
    return found if step.several else found[0]


# --- inputs and outputs -------------------------------------------------------------------------------------------


def _add_inputs(c: Conversion, program: Any) -> dict[str, tuple[tuple[Any, ...], str]]:
    """Add the input layers; the result has their shapes and element types, in the order of `forward`."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    entries: dict[str, tuple[tuple[Any, ...], str]] = {}
    for name in user_inputs(program):
        found = shapes_of(nodes[name])
        if not found or found[0][1] is None:
            raise DiagnosticError.of(
                "torch-input",
                tr("the argument '{name}' of forward is not a tensor of numbers", name=name),
                remedy=tr("import a module whose forward takes tensors, for instance a small module around yours"),
            )
        shape, dtype = found[0][0], DataType(found[0][1])
        open_batch = bool(shape) and shape[0] is None
        sizes = tuple(size for size in shape if isinstance(size, int))
        if len(sizes) + open_batch != len(shape):
            raise DiagnosticError.of(
                "torch-input",
                tr("the argument '{name}' has several sizes that are left open", name=name),
                remedy=tr("export the program with fixed sizes; only the batch can be open"),
            )
        if open_batch and len(sizes) == 3 and dtype is DataType.FLOAT32 and max(sizes) <= 65536:
            params: dict[str, Param] = {"dims": Size3D(sizes[2], sizes[1], sizes[0])}
            made = c.builder.add("input", (), params, name=name, exact=True)
        else:
            made = _tensor_input(c, name, {"shape": sizes, "batch": open_batch, "dtype": str(dtype.value)})
        value = c.wrap(made[0])
        c.values[name] = value
        if open_batch and c.batch is None:
            c.batch = value
        entries[made[0].layer] = (tuple(BATCH if size is None else size for size in shape), str(dtype.value))
    return entries


def _tensor_input(c: Conversion, name: str, params: Mapping[str, Param]) -> tuple[Source, ...]:
    try:
        return c.builder.add("tensor_input", (), params, name=name, exact=True)
    except (ParamError, ShapeError) as error:  # such as a size of 0
        raise DiagnosticError.of(
            "torch-input",
            tr("the argument '{name}' of forward cannot be an input: {reason}", name=name, reason=error),
            remedy=tr("import the module with other example inputs"),
        ) from None


def _add_output(c: Conversion, label: str, node: Any, warnings: list[str]) -> str | None:
    """Add an output layer; None for results that are not tensors."""
    item = c.values.get(getattr(node, "name", ""))
    c.current = None
    try:
        if not isinstance(item, Value | Constant | Repeated):
            raise UnsupportedError(tr("it is not a tensor"))
        value = c.value(item)
        if not value.plain:
            raise BatchError("the batch is merged with other axes")
        view = "image" if value.rank == 4 and value.dtype is DataType.FLOAT32 else "tensor"
        made = c.builder.add("output", [value.source], {"analysis_view": view}, name=label, exact=True)
    except (UnsupportedError, ShapeError, ParamError) as error:
        warnings.append(tr("the result '{label}' has no output: {error}", label=label, error=error))
        return None
    return made[0].layer
