"""Edits of a network together with its trained weights. Each function returns an edit and the weights that belong to it.

Widening, inserting and splitting keep the function that the network computes (Chen et al. 2016, Net2Net); removing channels changes
it. Layers inside templates have their names in the network without templates, `<instance>.<layer>`; an edit of one of them changes
every instance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from designer.files.weight_random import random_tensor
from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.naming import unique_name
from designer.graph.template_commands import edit_template
from designer.operators.api import Operator
from designer.operators.inlining import declarations, inlined, inlined_source
from designer.operators.library.convolution.convolution import Convolution
from designer.operators.library.convolution.transposed_convolution import TransposedConvolution
from designer.operators.library.linear.fully_connected import FullyConnected
from designer.operators.library.normalization.batch_normalization import BatchNormalization
from designer.operators.library.shape.slice import Slice
from designer.operators.registry import Registry
from designer.surgery.channels import ChannelMap, Channels, WeightAxis
from designer.surgery.sparsity import candidates, prune
from designer.texts import tr

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0  # of the filters of new channels
MAX_FEATURES = 65_536


@dataclass(frozen=True)
class Operation:
    """An edit and the weights after it."""

    edit: Edit
    weights: Weights


@dataclass(frozen=True)
class Site:
    """Where a layer is declared: the document, or a template with its contents in `room`.

    `prefix` is that of its instance in the network without templates, `owners` are those of the names of weights, one for each
    instance with weights of its own.
    """

    template: str
    room: Graph
    layer: Layer
    prefix: str
    owners: tuple[str, ...]

    def edit(self, graph: Graph, inside: Edit) -> Edit:
        """An edit of the room as one of the document."""
        return edit_template(graph, self.template, inside) if self.template else inside


class Patient:
    """A network with its weights and the channels of its tensors. Layers are named as in the network without templates."""

    def __init__(self, graph: Graph, registry: Registry, weights: Weights) -> None:
        self.graph = graph
        self.registry = registry
        self.weights = weights
        self.inference = inlined(Inference(graph, registry))
        self.declared = declarations(graph)
        self.channels = ChannelMap(self.inference, self.declared)

    def operator(self, layer: str) -> Operator:
        """The operator of a layer. Raises DiagnosticError if there is none or its shapes are unknown."""
        if layer not in self.inference.graph:
            raise refused("no-such-layer", tr("there is no layer '{layer}'", layer=layer), layer, tr("choose another"))
        operator = self.inference.read(layer).operator
        if not isinstance(operator, Operator) or not self.inference.states[layer].ok:
            raise refused(
                "unknown-shape",
                tr("the shapes of '{layer}' are not known", layer=layer),
                layer,
                tr("fix the problems under Type Checking first"),
            )
        return operator

    def made(self, layer: str) -> Channels:
        """The channels that a layer computes. Raises DiagnosticError if it only hands channels on."""
        self.operator(layer)
        made = self.channels.made.get(layer)
        if made is None:
            raise refused(
                "no-features",
                tr("'{layer}' does not compute channels of its own", layer=layer),
                layer,
                tr("choose a convolution or a fully connected layer"),
            )
        return made

    def _was_ok(self, layer: str) -> bool:
        return layer not in self.inference.graph or self.inference.states[layer].ok

    def site(self, layer: str) -> Site:
        """Where a layer is declared. Raises DiagnosticError as `operator` does."""
        self.operator(layer)
        template, declared = self.declared[layer]
        room = self.graph.inside(template) if template else self.graph
        prefix = layer.removesuffix(declared.name)
        same = [name for name, other in self.declared.items() if other == self.declared[layer]]
        owners = (self.inference.graph[name].weights_name.removesuffix(declared.name) for name in same)
        return Site(template, room, declared, prefix, tuple(dict.fromkeys(owners)))

    def set_params(self, params: Mapping[str, Mapping[str, str | None]]) -> Edit:
        """Set parameters where the layers are declared."""
        rooms: dict[str, dict[str, Mapping[str, str | None]]] = defaultdict(dict)
        for name, texts in params.items():
            template, layer = self.declared[name]
            rooms[template][layer.name] = texts
        after, made = self.graph.copy(), Edit("")
        for template, inside in rooms.items():
            edit = commands.set_params(after.inside(template) if template else after, inside)
            if template:
                edit = edit_template(after, template, edit)
            after.apply(edit)
            made = made.then(edit)
        return made

    def finish(self, title: str, edit: Edit, tensors: Mapping[WeightKey, NDArray[np.float32]]) -> Operation:
        """The operation, once the tensors are known to be those that the edited network needs."""
        after = self.graph.copy()
        after.apply(edit)
        inference = inlined(Inference(after, self.registry))
        layers = inference.graph.layers
        wrong = next((name for name in layers if not inference.states[name].ok and self._was_ok(name)), None)
        if wrong is not None:
            raise _unexpected(wrong)
        needed = required_weights(inference)
        kept = {key: tensors[key] if key in tensors else self.weights.tensors[key] for key in needed}
        wrong = next((key.layer for key, tensor in kept.items() if tensor.shape != needed[key].shape), None)
        if wrong is not None:
            raise _unexpected(wrong)
        made = {key: np.ascontiguousarray(tensor, np.float32) for key, tensor in kept.items()}
        return Operation(replace(edit, title=title), Weights(made, (), self.weights.source, self.weights.note))


def _unexpected(layer: str) -> DiagnosticError:
    return refused(
        "unknown-effect",
        tr("'{layer}' would not fit the edited network", layer=layer),
        layer,
        tr("report this network as a bug"),
    )


def refused(code: str, message: str, layer: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, message, layer=layer, remedy=remedy))


# --- the number of channels ----------------------------------------------------------------------------------------


def set_features(patient: Patient, layer: str, features: int) -> Operation:
    """Widen or narrow a layer to a number of output channels."""
    present = len(patient.made(layer).numbers)
    if not 1 <= features <= MAX_FEATURES:
        raise refused(
            "bad-parameter",
            tr("{features} is not a number of channels", features=features),
            layer,
            tr("use 1 to {most}", most=MAX_FEATURES),
        )
    if features >= present:
        made = patient.made(layer)
        roots = patient.channels.roots(made.numbers)
        step = int((roots == roots[-1]).sum())
        if (features - present) % step:
            raise refused(
                "bad-parameter",
                tr(
                    "'{layer}' has {present} channels and grows by multiples of {step}, not to {features}",
                    layer=layer,
                    present=present,
                    step=step,
                    features=features,
                ),
                layer,
                tr("use for instance {next}", next=present + step * -(-(features - present) // step)),
            )
        return widen(patient, layer, (features - present) // step)
    return narrow(patient, layer, features)


def widen(patient: Patient, layer: str, more: int) -> Operation:
    """Add channels behind the last one of a layer. Their filters are random and all that read them have weights of zero."""
    made = patient.made(layer)
    channels = patient.channels
    anchor = channels.root(int(made.numbers[-1]))
    _check_free(patient, layer, {anchor})
    unbounded = [why for number, why in channels.unbounded.items() if channels.root(number) == anchor]
    if unbounded:
        raise refused(
            "cannot-widen",
            tr("a new channel cannot have no effect: {why}", why=unbounded[0]),
            layer,
            tr("choose another"),
        )

    def extend(axis: WeightAxis, tensor: NDArray[np.float32], fresh: NDArray[np.float32]) -> NDArray[np.float32]:
        """The tensor with values for the new channels behind every channel joined with the anchor."""
        roots = channels.roots(axis.channels.numbers)
        ends = np.cumsum(axis.channels.repeats)
        parts: list[NDArray[np.float32]] = []
        start = 0
        for end, repeat in zip(ends[roots == anchor], axis.channels.repeats[roots == anchor], strict=True):
            shape = list(tensor.shape)
            shape[axis.axis] = int(repeat) * more
            parts.append(np.take(tensor, range(start, int(end)), axis.axis))
            parts.append(np.zeros(shape, np.float32) if axis.reads else _of_shape(fresh, shape))
            start = int(end)
        parts.append(np.take(tensor, range(start, tensor.shape[axis.axis]), axis.axis))
        return np.concatenate(parts, axis.axis)

    features = {
        name: len(made.expanded) + more * int(made.repeats[channels.roots(made.numbers) == anchor].sum())
        for name, made in {**channels.made, **channels.grouped}.items()
    }

    def counts(owned: Channels) -> NDArray[np.int64]:
        found = np.ones(len(owned.expanded), np.int64)
        hit = channels.roots(owned.numbers) == anchor
        found[np.cumsum(owned.repeats)[hit] - 1] += owned.repeats[hit] * more
        return found

    title = tr("Widen {layer} by {more}", layer=layer, more=features.get(layer, 0) - len(made.expanded))
    return _resized(patient, title, features, extend, counts)


def _of_shape(fresh: NDArray[np.float32], shape: list[int]) -> NDArray[np.float32]:
    """Initial values of a new tensor, cut or repeated to a shape."""
    return np.resize(fresh, shape).astype(np.float32)


def narrow(patient: Patient, layer: str, features: int) -> Operation:
    """Keep the channels of a layer whose filters have the largest L1 norm (Li et al. 2017)."""
    made = patient.made(layer)
    strength = np.zeros(len(made.numbers))
    roots = patient.channels.roots(made.numbers)
    for axis in patient.channels.axes:
        tensor = patient.weights.tensors.get(axis.key)
        if axis.reads or tensor is None or tensor.ndim < 2:
            continue
        others = tuple(n for n in range(tensor.ndim) if n != axis.axis)
        norms = np.abs(tensor.astype(np.float64)).sum(axis=others)
        for root, norm in zip(patient.channels.roots(axis.channels.expanded), norms, strict=True):
            strength[roots == root] += norm
    weakest = np.argsort(strength, kind="stable")[: len(made.numbers) - features]
    edit = remove_channels(patient, layer, [int(n) for n in weakest])
    left = int((~np.isin(roots, roots[weakest])).sum())  # fewer if some channels are removed together
    title = tr("Narrow {layer} to {features}", layer=layer, features=left)
    return replace(edit, edit=replace(edit.edit, title=title))


def remove_channels(patient: Patient, layer: str, indices: Collection[int]) -> Operation:
    """Remove channels of a tensor (`layer` or `layer:port`), and from every layer on their paths. The layer may also hand them on."""
    source = inlined_source(patient.graph, Source.parse(layer))
    patient.operator(source.layer)
    shown = patient.channels.tensors[patient.inference.tensor(source)]
    count = len(shown.expanded)
    if not indices or not all(0 <= n < count for n in indices):
        raise refused(
            "no-such-channel",
            tr("'{layer}' has the channels 0 to {last}", layer=layer, last=count - 1),
            layer,
            tr("choose one of them"),
        )
    channels = patient.channels
    gone = {channels.root(int(number)) for number in shown.expanded[list(indices)]}
    _check_free(patient, layer, gone)

    def kept(owned: Channels) -> NDArray[np.bool_]:
        return ~np.isin(channels.roots(owned.expanded), list(gone))

    features = {name: int(kept(made).sum()) for name, made in {**channels.made, **channels.grouped}.items()}
    empty = next((name for name, left in features.items() if not left), None)
    if empty is not None:
        raise refused(
            "no-channels-left", tr("no channel of '{layer}' would be left", layer=empty), empty, tr("keep at least one")
        )

    def cut(axis: WeightAxis, tensor: NDArray[np.float32], fresh: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.compress(kept(axis.channels), tensor, axis.axis)

    for name, owned in channels.normalized.items():
        _check_groups(patient, name, kept(owned))
    listed = ", ".join(map(str, sorted(indices)))
    title = (
        tr("Remove channel {listed} of {layer}", listed=listed, layer=layer)
        if len(indices) == 1
        else tr("Remove {count} channels of {layer}", count=len(indices), layer=layer)
    )
    return _resized(patient, title, features, cut, lambda owned: kept(owned).astype(np.int64))


def _check_groups(patient: Patient, layer: str, kept: NDArray[np.bool_]) -> None:
    """Raise DiagnosticError if a part of a group of a group normalization would be removed."""
    size = len(kept) // int(patient.operator(layer).texts()["groups"])
    groups = kept.reshape(-1, size)
    partial = np.flatnonzero(groups.any(axis=1) != groups.all(axis=1))
    if len(partial):
        first = int(partial[0]) * size
        raise refused(
            "fixed-channels",
            tr(
                "'{layer}' normalizes its channels {first} to {last} together",
                layer=layer,
                first=first,
                last=first + size - 1,
            ),
            layer,
            tr("remove all of them, or none"),
        )


def _check_free(patient: Patient, layer: str, numbers: set[int]) -> None:
    obstacles = patient.channels.obstacles(numbers)
    if obstacles:
        raise refused(
            "fixed-channels",
            tr("the channels of '{layer}' cannot change: {why}", layer=layer, why=obstacles[0]),
            layer,
            tr("choose a layer with a convolution behind it"),
        )


Change = Callable[[WeightAxis, "NDArray[np.float32]", "NDArray[np.float32]"], "NDArray[np.float32]"]
Counts = Callable[[Channels], "NDArray[np.int64]"]


def _resized(patient: Patient, title: str, features: Mapping[str, int], change: Change, counts: Counts) -> Operation:
    """New numbers of features, and every weight that has one of the changed channels.

    `counts` says how many channels there are afterwards in the place of each one.
    """
    params: dict[str, dict[str, str | None]] = _cuts(patient, counts)
    for name, owned in patient.channels.normalized.items():
        size = len(owned.expanded) // int(patient.operator(name).texts()["groups"])
        left = np.count_nonzero(counts(owned).reshape(-1, size).sum(axis=1))
        if left != len(owned.expanded) // size:
            params[name] = {"groups": str(left)}
    for name, count in features.items():
        if str(count) != patient.operator(name).texts()["features"]:
            params[name] = {"features": str(count)}
            if name in patient.channels.grouped:
                params[name]["groups"] = str(count)
    needed = required_weights(patient.inference)
    tensors: dict[WeightKey, NDArray[np.float32]] = {}
    for axis in patient.channels.axes:
        if axis.key in needed:  # a layer without bias has none
            tensor = tensors.get(axis.key, patient.weights.tensors[axis.key])
            fresh = random_tensor(axis.key, needed[axis.key], SEED)
            tensors[axis.key] = change(axis, tensor, fresh)
    return patient.finish(title, patient.set_params(params), tensors)


def prune_2_4(patient: Patient) -> Operation:
    """Set two of every four weights along the input channels to zero, in every layer where that is possible."""
    found = candidates(patient.graph, patient.registry)
    if not any(not one.reason for one in found):
        raise DiagnosticError.of(
            "nothing-to-prune",
            tr("no layer reads a number of channels that is a multiple of 4"),
            remedy=tr("change the numbers of channels"),
        )
    pruned = prune(patient.graph, patient.registry, patient.weights, found)
    return patient.finish(tr("Prune to 2:4 sparsity"), Edit("", {}), pruned.weights.tensors)


def _cuts(patient: Patient, counts: Counts) -> dict[str, dict[str, str | None]]:
    """New parameters of slices and splits, so that they select the same channels."""
    params: dict[str, dict[str, str | None]] = {}
    for name, owned in patient.channels.cut.items():
        found = counts(owned)
        if (found == 1).all():
            continue
        operator = patient.operator(name)
        if isinstance(operator, Slice):
            start, end, _ = slice(operator.start, operator.end or None).indices(len(found))
            pieces = [found[:start], found[start:end]]
            first, length = (int(piece.sum()) for piece in pieces)
            params[name] = {"start": str(first), "end": str(first + length) if operator.end else "0"}
            lengths = [length]
        else:
            ends = np.cumsum([kind.dim(1) for kind in patient.inference.states[name].outputs or ()])
            lengths = [int(part.sum()) for part in np.split(found, ends[:-1])]
            params[name] = {"sizes": ",".join(map(str, lengths))}
        if not all(lengths):
            raise refused(
                "no-channels-left",
                tr("'{layer}' would select no channel", layer=name),
                name,
                tr("keep at least one of the channels that it selects"),
            )
    return params


# --- more and fewer layers -----------------------------------------------------------------------------------------


def insert_identity(patient: Patient, consumer: str, index: int, kernel: int = 3) -> Operation:
    """Insert a layer into the link to input `index` of `consumer` that is initialized so that it changes nothing.

    For images it is a convolution with an odd `kernel` that copies its center, for vectors a fully connected layer.
    """
    site = patient.site(consumer)
    inputs = site.layer.inputs
    source = inputs[index] if index < len(inputs) else None
    tensor = patient.inference.type_of(_inlined(site, source)) if source is not None else None
    if source is None or tensor is None or tensor.rank not in (2, 4):
        raise refused(
            "no-link",
            tr("input {index} of '{layer}' does not read an image or a vector", index=index, layer=consumer),
            consumer,
            tr("choose another link"),
        )
    count = tensor.dim(1)
    if tensor.rank == 4:
        kind, params = (
            "convolution",
            Convolution(features=count, kernel=Convolution().kernel.parse(f"{kernel}x{kernel}")),
        )
        values: NDArray[np.float32] = np.zeros((count, count, kernel, kernel), np.float32)
        values[np.arange(count), np.arange(count), kernel // 2, kernel // 2] = 1
    else:
        kind, params = "fully_connected", FullyConnected(features=count)  # type: ignore[assignment]
        values = np.eye(count, dtype=np.float32)
    name = unique_name(kind, site.room.layers)
    position = _between(site.room, source.layer, site.layer.name)
    made = Layer(name, kind, position, params=params.texts(all=False))
    edit = commands.insert_on_link(site.room, made, site.layer.name, index)
    tensors = {}
    for owner in site.owners:
        tensors[WeightKey(f"{owner}{name}", "kernel")] = values
        tensors[WeightKey(f"{owner}{name}", "bias")] = np.zeros(count, np.float32)
    return patient.finish(tr("Insert identity {name}", name=name), site.edit(patient.graph, edit), tensors)


def _inlined(site: Site, source: Source) -> Source:
    """The tensor of the network without templates for a tensor in the room of a layer."""
    found = inlined_source(site.room, source)
    return Source(f"{site.prefix}{found.layer}", found.port)


def _between(graph: Graph, producer: str, consumer: str) -> tuple[int, int]:
    (x1, y1), (x2, y2) = graph[producer].position, graph[consumer].position
    return (x1 + x2) // 2, (y1 + y2) // 2 + 96


def split_layer(patient: Patient, layer: str) -> Operation:
    """Split a convolution or a fully connected layer into two whose product it is (singular value decomposition).

    The first has as many channels as the rank of the weights allows, the second is a 1 x 1 convolution under the old name.
    """
    operator = patient.operator(layer)
    patient.made(layer)
    if not isinstance(operator, Convolution | FullyConnected):
        raise refused(
            "cannot-split",
            tr("'{layer}' ({title}) cannot be split", layer=layer, title=operator.title),
            layer,
            tr("choose a convolution without groups or a fully connected layer"),
        )
    site = patient.site(layer)
    old = site.layer
    name = unique_name(old.type, site.room.layers)
    tensors = {}
    ranks = set()
    for owner in site.owners:
        first, second = _factors(patient.weights.tensors[WeightKey(f"{owner}{old.name}", "kernel")])
        tensors[WeightKey(f"{owner}{name}", "kernel")] = first
        tensors[WeightKey(f"{owner}{old.name}", "kernel")] = second
        ranks.add(len(first))
    if len(ranks) > 1:
        raise refused(
            "cannot-split",
            tr("'{layer}' reads other numbers of channels in other instances of its template", layer=layer),
            layer,
            tr("dissolve the template first"),
        )
    params = {**old.params, "features": str(ranks.pop()), "apply_bias": "false"}
    x, y = old.position
    begin = Layer(name, old.type, (x, y - 96), old.inputs, params)
    kept = {"features": str(operator.features), "apply_bias": old.params.get("apply_bias", "true")}
    end = {"kernel": "1x1", **kept} if isinstance(operator, Convolution) else kept
    after = replace(old, inputs=(Source(name),), params=end)
    edit = Edit("", {name: (None, begin), old.name: (old, after)})
    return patient.finish(tr("Split {layer}", layer=layer), site.edit(patient.graph, edit), tensors)


def _factors(kernel: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The kernels of two layers whose product is `kernel`; the second is 1 x 1."""
    left, values, right = np.linalg.svd(kernel.reshape(len(kernel), -1).astype(np.float64), full_matrices=False)
    root = np.sqrt(values)
    first = (root[:, None] * right).reshape(len(values), *kernel.shape[1:])
    second = (left * root).reshape(len(kernel), len(values), *(1,) * (kernel.ndim - 2))
    return first.astype(np.float32), second.astype(np.float32)


def fold_batch_normalization(patient: Patient, layer: str) -> Operation:
    """Fold a batch normalization into the convolution or fully connected layer before it, and remove it."""
    norm = patient.operator(layer)
    site = patient.site(layer)
    old = site.layer
    source = old.inputs[0] if old.inputs else None
    before = site.room.get(source.layer) if source is not None else None
    operator = patient.operator(f"{site.prefix}{before.name}") if before is not None else None
    if not isinstance(norm, BatchNormalization) or not norm.track_running_stats:
        raise refused(
            "cannot-fold",
            tr("'{layer}' is not a batch normalization with running statistics", layer=layer),
            layer,
            tr("choose another layer"),
        )
    if (
        before is None
        or not isinstance(operator, Convolution | TransposedConvolution | FullyConnected)
        or before.activation is not None
        or before.bypassed
        or site.room.consumers(before.name) != (old.name,)
        or (isinstance(operator, TransposedConvolution) and operator.groups != 1)
        or (isinstance(operator, FullyConnected) and patient.inference.states[layer].inputs[0].rank != 2)
    ):
        raise refused(
            "cannot-fold",
            tr(
                "'{layer}' cannot be folded: it must be the only reader of a convolution without activation",
                layer=layer,
            ),
            layer,
            tr("insert a convolution before it, or remove the activation"),
        )
    tensors: dict[WeightKey, NDArray[np.float32]] = {}
    for owner in site.owners:
        names = f"{owner}{before.name}", f"{owner}{old.name}"
        tensors |= _folded(patient, *names, norm, axis=1 if isinstance(operator, TransposedConvolution) else 0)
    edits: dict[str, tuple[Layer | None, Layer | None]] = {old.name: (old, None)}
    for consumer in site.room.consumers(old.name):
        reader = site.room[consumer]
        inputs = tuple(Source(before.name) if s is not None and s.layer == old.name else s for s in reader.inputs)
        edits[consumer] = (reader, replace(reader, inputs=inputs))
    folded = replace(before, activation=old.activation, params={**before.params, "apply_bias": "true"})
    edits[before.name] = (before, folded)
    title = tr("Fold {layer} into {before}", layer=layer, before=before.name)
    return patient.finish(title, site.edit(patient.graph, Edit("", edits)), tensors)


def _folded(
    patient: Patient, before: str, norm: str, operator: BatchNormalization, axis: int
) -> dict[WeightKey, NDArray[np.float32]]:
    """Kernel and bias with scale, bias, mean and variance of the normalization multiplied in, in double precision.

    The weights of the activation of the normalization move to the convolution.
    """
    weights = patient.weights.tensors

    def of(layer: str, tensor: str, default: float) -> NDArray[np.float64]:
        found = weights.get(WeightKey(layer, tensor))
        return np.full(count, default) if found is None else found.astype(np.float64)

    kernel = weights[WeightKey(before, "kernel")]
    count = kernel.shape[axis]
    factor = of(norm, "scale", 1.0) / np.sqrt(of(norm, "variance", 1.0) + operator.epsilon)
    bias = of(norm, "bias", 0.0) + (of(before, "bias", 0.0) - of(norm, "mean", 0.0)) * factor
    shape = [1] * kernel.ndim
    shape[axis] = count
    attached = {
        key.tensor: w for key, w in weights.items() if key.layer == norm and key.tensor.startswith("activation_")
    }
    return {
        WeightKey(before, "kernel"): (kernel * factor.reshape(shape)).astype(np.float32),
        WeightKey(before, "bias"): bias.astype(np.float32),
        **{WeightKey(before, tensor): array for tensor, array in attached.items()},
    }
