"""The generated files of a deployment folder: the header for C++, the configuration for Triton, the README."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from exporters.interface import Interface, shape_text
from exporters.markdown import code

MAX_BATCH = 8
QUEUE_MICROSECONDS = 2000  # how long a request waits for others of the same size


def c_string(text: str) -> str:
    """A string literal of C, C++ and of protobuf's text format; bytes beyond ASCII are escaped in octal."""
    from google.protobuf.text_encoding import CEscape

    return f'"{CEscape(text, as_utf8=False)}"'


def network_header(interface: Interface) -> str:
    """The constants of the network for the C++ sample."""
    inputs = [
        f"    {{{c_string(e.name)}, {'true' if e.image else 'false'}, {e.channels}, {e.height or 0}, {e.width or 0}, "
        f"{_float(e.scale)}, {_float(e.shift)}, {e.multiple}}},"
        for e in interface.inputs
    ]
    outputs = [f"    {c_string(e.name)}," for e in interface.outputs]
    return "\n".join(
        [
            "// Inputs and outputs of the network, as in deploy.json.",
            "#pragma once",
            "",
            "#include <vector>",
            "",
            '#include "processing.h"',
            "",
            "namespace network {",
            "",
            "// name, is it an image, channels, height, width (0: any), scale, shift, multiple of height and width",
            "inline const std::vector<Input> inputs = {",
            *inputs,
            "};",
            "inline const std::vector<const char*> outputs = {",
            *outputs,
            "};",
            "",
            "}  // namespace network",
            "",
        ]
    )


def _float(value: float) -> str:
    return f"{value!r}f"


def triton_name(name: str) -> str:
    """The name of a model in a Triton repository, which is that of its folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "network"


def triton_config(name: str, interface: Interface) -> str:
    """`config.pbtxt`, in the text format of `inference.ModelConfig` (model_config.proto of Triton).

    With an open batch the server joins requests of the same size to batches.
    """
    batched = interface.batched
    lines = [
        f"name: {c_string(name)}",
        'platform: "onnxruntime_onnx"',
        f"max_batch_size: {MAX_BATCH if batched else 0}",
    ]
    for title, entries in (("input", interface.inputs), ("output", interface.outputs)):
        lines.append(f"{title} [")
        lines += [_tensor(e.name, e.shape[1:] if batched else e.shape, last=e is entries[-1]) for e in entries]
        lines.append("]")
    if batched:
        lines += ["dynamic_batching {", f"  max_queue_delay_microseconds: {QUEUE_MICROSECONDS}", "}"]
    return "\n".join([*lines, ""])


def _tensor(name: str, shape: Sequence[int | None], *, last: bool) -> str:
    dims = ", ".join(str(-1 if size is None else size) for size in shape)
    return f"  {{ name: {c_string(name)} data_type: TYPE_FP32 dims: [ {dims} ] }}{'' if last else ','}"


def readme(template: str, values: Mapping[str, str]) -> str:
    """The README with every placeholder replaced."""
    return re.sub("|".join(values), lambda found: values[found[0]], template)


def input_list(interface: Interface) -> str:
    """Inputs and outputs as a list in Markdown."""
    kinds = [("input", entry) for entry in interface.inputs] + [("output", entry) for entry in interface.outputs]
    return "\n".join(f"- {kind} {code(entry.name)}: {shape_text(entry.shape)}" for kind, entry in kinds)


def triton_text(interface: Interface) -> str:
    """What the README says about batching."""
    if interface.batched:
        return f"Requests of the same size are joined to batches of up to {MAX_BATCH} images (`dynamic_batching`)."
    return "The batch of the model is fixed, so the server runs one request at a time."
