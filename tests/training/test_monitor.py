"""monitor.py of exported projects: health of the layers, rules that stop a run, and the trail of weights."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import resources
from designer.graph.diagnostics import DiagnosticError
from designer.training.health import HealthFile
from designer.training.trail import Trail, write_frame

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def monitor():
    path = Path(resources.__file__).parent / "templates" / "pytorch" / "monitor.py"
    spec = importlib.util.spec_from_file_location("project_monitor", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


class Net(torch.nn.Module):
    """Two convolutions, the first with ReLU as exported source writes it, and batch normalization for its counter."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.last = torch.nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return self.last(torch.nn.functional.relu(self.norm(torch.nn.functional.relu(self.first(x)))))


def train(monitor, folder: Path, network, steps: int, *, rate: float = 1e-3, each=None, **options):
    """Train with the hooks where train.py has them; `each` is called before each step."""
    found = monitor.Monitor(folder, network, total_steps=steps, key_every=20, **options)
    optimizer = torch.optim.AdamW((p for p in network.parameters() if p.requires_grad), lr=rate)
    torch.manual_seed(1)
    for step in range(options.get("first", 0) + 1, steps + 1):
        if each is not None:
            each(step)
        x = torch.rand(8, 1, 16, 16)
        optimizer.zero_grad(set_to_none=True)
        (network(x) - x).square().mean().backward()
        found.after_backward(step, network)
        optimizer.step()
        found.after_step(step, network, optimizer)
    return found


def measured(folder: Path):
    file = HealthFile(folder / "health.jsonl")
    file.read()
    return file.measured


def problems(folder: Path) -> dict[tuple[str, str], int]:
    """The step at which each problem began, by layer and kind."""
    return {(p.layer, p.kind): p.since for health in measured(folder) for p in health.problems}


def test_a_healthy_network_is_measured_by_layer_and_has_no_problems(monitor, tmp_path):
    train(monitor, tmp_path, Net(), 60)
    found = measured(tmp_path)
    assert [health.step for health in found] == [1, 10, 20, 30, 40, 50, 60]
    first = found[-1].layers["first"]
    assert {"activation", "spread", "zeros", "dead", "gradient", "weight", "update"} <= first.keys()
    assert 0 < first["zeros"] < 1, "the output of the ReLU, not of the convolution"
    assert 0 < first["update"] < 0.1
    assert not problems(tmp_path)
    assert not (tmp_path / "control").exists()


def test_a_dead_layer_is_named_with_the_step_at_which_it_began(monitor, tmp_path):
    network = Net()

    def kill(step):
        if step == 25:
            with torch.no_grad():
                network.first.bias.fill_(-100.0)

    train(monitor, tmp_path, network, 60, each=kill)
    assert problems(tmp_path)["first", "dead"] == 30


def test_nan_is_named_at_its_step_and_stops_the_run(monitor, tmp_path):
    network = Net()

    def break_(step):
        if step == 33:
            with torch.no_grad():
                network.last.weight[0, 0] = float("nan")

    train(monitor, tmp_path, network, 40, each=break_)
    assert problems(tmp_path)["last", "not_finite"] == 33
    assert (tmp_path / "control").read_text() == "stop"
    stopped = next(health.stopped_by for health in measured(tmp_path) if health.stopped_by is not None)
    assert stopped.since == 33


def test_a_learning_rate_that_destroys_the_weights_is_called_exploding(monitor, tmp_path):
    train(monitor, tmp_path, Net(), 30, rate=0.5, stop_on=("exploding",))
    assert min(since for (_, kind), since in problems(tmp_path).items() if kind == "exploding") == 1
    assert (tmp_path / "control").read_text() == "stop"


def test_a_vanishing_gradient_is_named(monitor, tmp_path):
    network = Net()
    with torch.no_grad():
        network.last.weight.mul_(1e-9)
        network.last.weight.requires_grad_(True)
    network.last.weight.register_hook(lambda gradient: gradient * 1e3)
    train(monitor, tmp_path, network, 40, rate=1e-12)
    assert ("first", "vanishing") in problems(tmp_path)


def test_weights_that_should_change_and_do_not_are_named(monitor, tmp_path):
    network = Net()
    network.first.weight.register_hook(lambda gradient: gradient * 0)
    train(monitor, tmp_path, network, 40)
    assert ("first", "frozen") not in problems(tmp_path), "weight decay changes them"
    frozen = Net()
    (tmp_path / "b").mkdir()
    found = monitor.Monitor(tmp_path / "b", frozen, total_steps=40, key_every=20)
    optimizer = torch.optim.SGD(frozen.last.parameters(), lr=0.1)  # the first layer was forgotten
    for step in range(1, 41):
        x = torch.rand(8, 1, 16, 16)
        (frozen(x) - x).square().mean().backward()
        found.after_backward(step, frozen)
        optimizer.step()
        found.after_step(step, frozen, optimizer)
    assert problems(tmp_path / "b")["first", "frozen"] == 1


def test_layers_that_are_frozen_on_purpose_are_no_problem(monitor, tmp_path):
    network = Net()
    network.first.requires_grad_(False)
    train(monitor, tmp_path, network, 40)
    assert not problems(tmp_path)


def test_key_frames_are_bit_equal_and_differences_are_close(monitor, tmp_path):
    network, seen = Net(), {}

    def keep(step):
        seen[step - 1] = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    train(monitor, tmp_path, network, 60, each=keep)
    seen[60] = network.state_dict()
    trail = Trail(tmp_path / "trail")
    trail.read()
    assert [frame.step for frame in trail.frames] == list(range(0, 61, 5))
    assert [frame.step for frame in trail.frames if frame.kind == "key"] == [0, 20, 40, 60]
    for frame in trail.frames:
        weights = trail.weights(frame)
        for name, tensor in seen[frame.step].items():
            if frame.kind == "key":
                assert weights[name].tobytes() == tensor.numpy().tobytes(), (frame.step, name)
            else:
                base = seen[frame.key][name].numpy()
                change = np.abs(tensor.numpy() - base).max()
                assert np.abs(weights[name] - tensor.numpy()).max() <= change / 200 + 1e-7, (frame.step, name)


def test_a_resumed_run_replaces_the_frames_after_its_checkpoint(monitor, tmp_path):
    network = Net()
    train(monitor, tmp_path, network, 40)
    train(monitor, tmp_path, network, 60, first=20)
    trail = Trail(tmp_path / "trail")
    trail.read()
    assert [frame.step for frame in trail.frames] == list(range(0, 61, 5))
    assert all(frame.key in (0, 20, 40) for frame in trail.frames if frame.kind == "difference")
    assert [health.step for health in measured(tmp_path)] == [1, 10, 20, 30, 40, 50, 60]


def test_a_damaged_frame_is_named_and_a_torn_index_is_read(monitor, tmp_path):
    train(monitor, tmp_path, Net(), 20)
    trail = Trail(tmp_path / "trail")
    with (tmp_path / "trail" / "index.jsonl").open("a") as file:
        file.write('{"step": 25, "fi')
    trail.read()
    assert trail.frames[-1].step == 20
    (tmp_path / "trail" / trail.frames[-1].file).write_bytes(b"PK torn")
    with pytest.raises(DiagnosticError, match=r"00000020\.npz"):
        trail.weights(trail.frames[-1])
    np.savez(tmp_path / "trail" / trail.frames[-1].file, first=np.array([{}], object))
    with pytest.raises(DiagnosticError, match="OBJECT array"):  # never unpickled
        trail.weights(trail.frames[-1])
    with pytest.raises(DiagnosticError, match="no trail"):
        write_frame(tmp_path / "none", 5, tmp_path / "weights", {})


def test_a_frame_is_written_as_files_that_a_project_reads(monitor, tmp_path):
    network = Net()
    train(monitor, tmp_path, network, 20)
    write_frame(
        tmp_path / "trail", 20, tmp_path / "weights", {"first.weight": "first_kernel", "last.bias": "last_bias"}
    )
    assert sorted(path.name for path in (tmp_path / "weights").iterdir()) == ["first_kernel.npy", "last_bias.npy"]
    found = np.load(tmp_path / "weights" / "first_kernel.npy")
    assert found.tobytes() == network.first.weight.detach().numpy().tobytes()


def test_lines_are_json_without_nan(monitor, tmp_path):
    network = Net()
    with torch.no_grad():
        network.last.bias.fill_(float("inf"))
    train(monitor, tmp_path, network, 1)
    for line in (tmp_path / "health.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
