"""Legal and unique names for generated code, files and new layers."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Set

_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)) | {"self", "torch"}
# Attributes of torch.nn.Module that a layer's attribute must not hide. Listed here because this module never imports torch.
_MODULE = frozenset(
    "T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches "
    "eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict "
    "modules mtia name named_buffers named_children named_modules named_parameters parameters register_backward_hook "
    "register_buffer register_forward_hook register_forward_pre_hook register_full_backward_hook "
    "register_full_backward_pre_hook register_load_state_dict_post_hook register_load_state_dict_pre_hook "
    "register_module register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ "
    "set_extra_state set_submodule share_memory state_dict to to_empty train training type xpu zero_grad".split()
)


def identifier(name: str) -> str:
    """`name` as a legal Python identifier that is not a keyword, builtin or attribute of `torch.nn.Module`."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not text or text[0].isdigit():
        text = f"layer_{text}"
    if text in _RESERVED or text in _MODULE or text.startswith("__") or text.startswith("_"):
        text = f"{text.lstrip('_') or 'layer'}_"
        if text[0].isdigit():
            text = f"layer_{text}"
    return text


def free_identifier(name: str, taken: set[str], reserved: Set[str] = frozenset()) -> str:
    """`identifier(name)`, with `_2`, `_3`, ... appended if it is taken or reserved. The result is added to `taken`."""
    base = candidate = identifier(name)
    number = 2
    while candidate in taken or candidate in reserved:
        candidate = f"{base}_{number}"
        number += 1
    taken.add(candidate)
    return candidate


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Layer name -> identifier, deterministic and unique.

    Names that are identifiers already stay unchanged; among the others, duplicates get `_2`, `_3`, ... in name order.
    """
    ordered = sorted(set(names))
    result = {name: name for name in ordered if identifier(name) == name}
    taken = set(result.values())
    for name in ordered:
        if name in result:
            continue
        result[name] = free_identifier(name, taken)
    return result


def unique_name(base: str, taken: Iterable[str]) -> str:
    """The first of `base_0`, `base_1`, ... that is not taken: the name of a new layer."""
    used = taken if isinstance(taken, Mapping | Set) else set(taken)
    number = 0
    while f"{base}_{number}" in used:
        number += 1
    return f"{base}_{number}"
