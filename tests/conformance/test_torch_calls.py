"""Calls of torch that become layers compute what torch computes, or the import says that they do not."""

from __future__ import annotations

import random
import warnings

import pytest

pytest.importorskip("torch")
from torch_trials import tried
from torch_variants import GENERATORS, Generator, variant

from designer.operators.registry import Registry, default_registry

PARTS = 40  # of the databases; tests of one part run in one process
SAMPLE = 25  # calls of the databases in `make test`
CONVERTED = 14  # of them that become layers only
VARIANTS, ALL_VARIANTS = 2, 40  # calls of each kind
KEPT = {  # operators that do not always become layers
    "attention": {"scaled_dot_product_attention"},
    "padding": {"pad"},
    "product": {"matmul"},
    "reduction": {"linalg_vector_norm"},
    "resizing": {"upsample_bicubic2d", "upsample_bilinear2d", "upsample_nearest2d", "_upsample_nearest_exact2d"},
    "write": {"copy", "fill", "sub"},
}


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
    trials = {sample.name: tried(sample.module, sample.inputs, registry) for sample in samples}
    assert not {name: trial.fault for name, trial in trials.items() if trial.fault}
    if not every_pair:
        assert sum(trial.converted for trial in trials.values()) >= CONVERTED


@pytest.mark.parametrize("kind", GENERATORS, ids=lambda kind: kind.__name__)
def test_random_calls(kind: Generator, every_pair: bool, registry: Registry) -> None:
    trials = {seed: tried(*variant(kind, seed), registry) for seed in range(ALL_VARIANTS if every_pair else VARIANTS)}
    assert not {seed: trial.fault for seed, trial in trials.items() if trial.fault}
    kept = {operator for trial in trials.values() for operator in trial.kept}
    assert kept <= KEPT.get(kind.__name__, set())
