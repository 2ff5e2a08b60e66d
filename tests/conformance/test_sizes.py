"""Size contracts against torch: a sample of sizes, or all up to 160 x 160 (`make conformance`)."""

from __future__ import annotations

import pytest
from size_trials import CASES, REGISTRY, MetaNetwork, sizes

from designer.operators.size_contract import size_contract
from designer.operators.size_fix import accept_every_size, obstacle

ALL = [pytest.param(group, name, id=f"{group}-{name}") for group, cases in CASES.items() for name in cases]
DOCUMENTS = [pytest.param(group, name, id=f"{group}-{name}") for group in ("samples", "built") for name in CASES[group]]


@pytest.mark.timeout(7200)  # with --all-pairs
@pytest.mark.parametrize(("group", "name"), ALL)
def test_rules_are_those_of_torch(group: str, name: str, every_pair: bool) -> None:
    if group == "imported":
        pytest.importorskip("onnx")
    case = CASES[group][name]()
    contract = case.contract
    assert contract.problem is None
    assert all(item.height.proven and item.width.proven for item in contract.inputs)
    wrong = [trial for trial in case.outcomes(all_pairs=every_pair) if trial.accepted != trial.runs]
    assert not wrong, (wrong[:10], len(wrong), [(str(i.height), str(i.width)) for i in contract.inputs])


@pytest.mark.parametrize(("group", "name"), DOCUMENTS)
def test_the_fix_makes_every_size_work(group: str, name: str) -> None:
    case = CASES[group][name]()
    if reason := obstacle(case.contract):
        pytest.skip(reason)
    graph = case.graph.copy()
    edit = accept_every_size(graph, REGISTRY, case.contract)
    graph.apply(edit)
    network = MetaNetwork(graph, size_contract(graph, REGISTRY))
    assert all(network.runs(h, w) for h, w in list(sizes(case.contract, all_pairs=False))[::8])
    graph.apply(edit.reversed())
    assert graph == case.graph
