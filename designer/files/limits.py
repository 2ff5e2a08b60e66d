"""Limits on the content of files. All readers use these."""

from __future__ import annotations

MEBIBYTE = 1024 * 1024

MAX_DOCUMENT_BYTES = 64 * MEBIBYTE
MAX_SETTINGS_BYTES = 4 * MEBIBYTE
MAX_DEPTH = 32  # nesting of XML elements; the format itself needs 4
MAX_ELEMENTS = 1_000_000  # elements, comments and processing instructions in one document
MAX_LAYERS = 200_000
MAX_PORTS = 1024  # inputs of one layer, and inputs and outputs of one template
MAX_LINKS = 1_000_000  # inputs of all layers
MAX_NAMESPACES = 256  # prefix declarations in one document
MAX_ATTRIBUTES = 256  # of one element
MAX_TEXT = 1_000_000  # characters of one attribute: a parameter can contain source code
MAX_POSITION = 1_000_000_000  # canvas units, in both directions
MAX_ARRANGED = 20_000  # layers of a network or template without positions; more are all placed at 0,0

MAX_WEIGHT_FILES = 100_000
MAX_WEIGHT_HEADER = 64 * MEBIBYTE  # the list of tensors in a .safetensors file
MAX_WEIGHT_BYTES = 64 * 1024 * MEBIBYTE  # all tensors of one network, in fp32
