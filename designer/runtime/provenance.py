"""The provenance of results: every written file includes it, with the same keys."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import metadata
from typing import Protocol

from designer.files.document import write_document
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.api import Operator
from designer.runtime.engine_registry import default_engines

VERSION = "version."  # prefix of the keys of versions in `Provenance.texts`
_OURS = ("layerwright", "numpy", "PySide6-Essentials")


class Configuration(Protocol):
    """How a network is run; implemented by `RunOptions`, `Settings` and `OpenRequest`."""

    @property
    def engine(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...


def written_at() -> str:
    """The time in UTC to the second, as ISO 8601.

    `SOURCE_DATE_EPOCH` replaces the clock (reproducible-builds.org): with it the same input gives the same bytes.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    fixed = epoch.isascii() and epoch.isdigit() and len(epoch) <= 11
    time = datetime.fromtimestamp(int(epoch), UTC) if fixed else datetime.now(UTC)
    return time.replace(microsecond=0).isoformat()


def versions() -> dict[str, str]:
    """Versions of Python, this program, and the packages of engines, read without importing them."""
    found = {name: _version(name) for name in (*_OURS, *(engine.package for engine in default_engines()))}
    return {"python": platform.python_version()} | {name: text for name, text in found.items() if text}


@cache
def _version(package: str) -> str:
    """The version of a package, empty without it. It is read once: all folders of installed packages are searched for it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """One network and how it was run. Fields that do not apply are empty: an exported file has no engine and no noise.

    `document_sha256` is that of the document as written to a file; `weights_sha256` is described at `Weights.sha256`.
    """

    document: str
    document_sha256: str
    weights: str = ""
    weights_sha256: str = ""
    engine: str = ""
    precision: str = ""
    layout: str = ""
    device: str = ""
    threads: str = ""
    noise: str = ""
    noise_seed: str = ""
    date: str = field(default_factory=written_at)
    versions: Mapping[str, str] = field(default_factory=versions)

    def texts(self) -> dict[str, str]:
        """Names and values for a file, without those that are empty."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "versions"}
        found = {name: text for name, text in plain.items() if text}
        return found | {f"{VERSION}{name}": version for name, version in self.versions.items()}

    def comment(self) -> str:
        """The comment of an image file: JSON."""
        return json.dumps({"provenance": self.texts()})


def provenance(
    document: str,
    graph: Graph,
    weights: Weights | None = None,
    run: Configuration | None = None,
    *,
    noise: str = "",
    noise_seed: str = "",
) -> Provenance:
    """The provenance of a result of `graph`, created now; `document` is the name of its file."""
    weights = weights or Weights()
    return run_provenance(
        document, digest_of(graph), weights.title, weights.sha256, run, noise=noise, noise_seed=noise_seed
    )


def run_provenance(
    document: str,
    document_sha256: str,
    weights: str,
    weights_sha256: str,
    run: Configuration | None,
    *,
    noise: str = "",
    noise_seed: str = "",
) -> Provenance:
    """The provenance of a run whose network and weights are in another process."""
    if run is None:
        return Provenance(document, document_sha256, weights, weights_sha256)
    threads = str(run.threads) if run.threads else "all cores"
    configured = (run.engine, run.precision, run.layout, run.device, threads)
    return Provenance(document, document_sha256, weights, weights_sha256, *configured, noise, noise_seed)


def noise_layers(inference: Inference) -> dict[str, str]:
    """The arguments `noise` and `noise_seed` of a network with noise layers."""
    read = {name: inference.read(name).operator for name in inference.graph.layers}
    noises = {n: o for n, o in read.items() if isinstance(o, Operator) and o.type == "noise"}
    return {
        "noise": "; ".join(f"{name}: {noise.summary()}" for name, noise in noises.items()),
        "noise_seed": "; ".join(f"{name}: {noise.values()['seed']}" for name, noise in noises.items()),
    }


def digest_of(graph: Graph) -> str:
    """SHA-256 of `graph` as written to a document, followed by which layers share weights: only an inlined graph has that."""
    found = sha256(write_document(graph))
    shared = sorted((layer.name, layer.weights_of) for layer in graph if layer.weights_of)
    if shared:
        found.update(json.dumps(shared).encode())
    return found.hexdigest()


def texts_of(found: Mapping[str, Provenance]) -> dict[str, dict[str, str]]:
    """Data for JSON, by name of the network."""
    return {name: item.texts() for name, item in found.items()}
