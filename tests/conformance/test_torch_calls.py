"""Calls of torch that become layers compute what torch computes, or the import says that they do not."""

from __future__ import annotations

import random
import warnings

import pytest

pytest.importorskip("torch")
from torch_trials import fault
from torch_variants import GENERATORS, variant

from designer.operators.registry import Registry, default_registry

PARTS = 40  # of the databases; tests of one part run in one process
SAMPLE = 40  # calls of the databases in `make test`
VARIANTS, ALL_VARIANTS = 1, 40  # calls of each kind


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The databases take seconds to load, so that `make test` has only one test of them."""
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(PARTS if metafunc.config.getoption("--all-pairs") else 1))


def test_samples_of_pytorch(part: int, every_pair: bool, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("expecttest")
    monkeypatch.setattr("torch.backends.disable_global_flags", lambda: None)  # would forbid flags in other tests too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_samples import databases

        found = databases(converted=not every_pair)
        if every_pair:
            samples = [sample for name in list(found)[part::PARTS] for sample in found[name]()]
        else:
            chosen = random.Random(1)
            several = (list(found[name]()) for name in chosen.sample(sorted(found), SAMPLE))
            samples = [chosen.choice(some) for some in several if some]
    faults = {sample.name: fault(sample.module, sample.inputs, registry) for sample in samples}
    assert not {name: found for name, found in faults.items() if found}


@pytest.mark.parametrize("kind", GENERATORS, ids=lambda kind: kind.__name__)
def test_random_calls(kind: object, every_pair: bool, registry: Registry) -> None:
    faults = {}
    for seed in range(ALL_VARIANTS if every_pair else VARIANTS):
        faults[seed] = fault(*variant(kind, seed), registry)
    assert not {seed: found for seed, found in faults.items() if found}
