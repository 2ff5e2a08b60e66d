"""Steps and validations of a training run by hand, with a small network and no process."""

from __future__ import annotations

import math
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from project_scripts import scripts

torch = pytest.importorskip("torch")


class Pixels(torch.nn.Module):
    """A network for images with weights that 2:4 sparsity applies to."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 1)
        self.last = torch.nn.Conv2d(8, 3, 1)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def model() -> ModuleType:
    made = ModuleType("model")
    made.NetworkClass = Pixels
    return made


def images(folder, count=3, side=12):
    folder.mkdir(parents=True)
    rng = np.random.default_rng(4)
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (side, side, 3), np.uint8)).save(folder / f"{number}.png")
    return str(folder)


def pixel(path):
    with Image.open(path) as image:
        return image.getpixel((0, 0))[0]


def records(folder, events=None):
    return SimpleNamespace(
        folder=folder, results=(folder,), event=lambda kind, **more: (events or []).append((kind, more))
    )


@pytest.fixture
def run(tmp_path):
    """Makes a run of the denoising project with settings."""
    data = images(tmp_path / "images")
    torch.manual_seed(0)
    weights = {name: name.replace(".", "_") for name in Pixels().state_dict()}
    with scripts(tmp_path, stubs={"model": model()}, weights=weights) as get:
        train, Config, Processes = get("train"), get("config").Config, get("processes").Processes
        settings = {"data": data, "synthetic": 0, "patch": 8, "batch": 2, "workers": 0, "steps": 10, "monitor": False}

        def make(saved=None, **more):
            config = Config(**{**settings, **more})
            return train.Run(config, records(tmp_path / "run"), Processes(torch.device("cpu")), saved)

        yield make


def sparse(state):
    """The weights with two of every four along the input channels at zero."""
    kernel = state["last.weight"].clone()
    kernel[:, [0, 3, 5, 6]] = 0.0
    return {**state, "last.weight": kernel}


def test_the_zeros_of_pruned_weights_stay_in_the_weights_and_in_their_average(run, tmp_path):
    torch.save(sparse(Pixels().state_dict()), tmp_path / "pruned.pt")
    made = run(from_weights=str(tmp_path / "pruned.pt"), sparse_2_4=True, ema=0.5, lr=0.1, weight_decay=0.1)
    zeros = made.network.last.weight == 0
    assert zeros.sum() == 3 * 4
    for _ in range(4):
        made.train_step()
        for network in (made.network, made.average.module):
            assert (network.last.weight[zeros] == 0).all()
            assert (network.last.weight[~zeros] != 0).all()
            assert (network.first.weight != 0).all()


@pytest.mark.parametrize("ema", [0.5, 0.9])
def test_the_average_follows_the_weights_after_each_step(run, ema):
    made = run(ema=ema, lr=0.1)
    expected = None
    for _ in range(5):
        made.train_step()
        now = made.network.first.weight.detach().clone()
        expected = now if expected is None else ema * expected + (1 - ema) * now
        torch.testing.assert_close(made.average.module.first.weight, expected)
    assert run().average is None


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_learning_rate_of_a_step_is_that_of_the_schedule(run, optimizer):
    made = run(optimizer=optimizer, lr=0.2, warmup=3, steps=9)
    used = []
    for _ in range(9):
        made.train_step()
        (group,) = made.optimizer.param_groups
        used.append(group["lr"])
    cosine = [0.1 * (1 + math.cos(math.pi * number / 6)) for number in range(6)]
    assert used == pytest.approx([0.2 / 3, 0.4 / 3, 0.2, *cosine])
    assert made.step == 9


@pytest.mark.parametrize(("clip", "limit"), [(0.0, math.inf), (1e-3, 1e-3), (1e6, math.inf)])
def test_the_gradient_is_clipped_to_its_largest_norm(run, clip, limit):
    """A step of SGD without momentum moves the weights by the learning rate times the gradient."""
    made = run(optimizer="sgd", momentum=0.0, weight_decay=0.0, clip=clip, lr=0.5, warmup=0)
    before = [parameter.detach().clone() for parameter in made.parameters]
    made.train_step()
    moved = (
        torch.stack([(now - then).square().sum() for now, then in zip(made.parameters, before, strict=True)])
        .sum()
        .sqrt()
    )
    norm = float(moved.detach()) / 0.5
    assert norm == pytest.approx(limit, rel=1e-2) if limit < math.inf else norm > 1e-2


def test_losses_since_the_last_reading_are_means_of_their_steps_and_nan_names_its_step(run):
    made = run()
    for _ in range(3):
        made.train_step()
    rows = made.read_losses()
    assert [list(row) for row in rows] == [["l1"]] * 3
    made.train_step()
    assert len(made.read_losses()) == 1
    with torch.no_grad():
        made.network.last.bias.fill_(math.nan)
    made.train_step()
    with pytest.raises(Exception, match=r"the loss \(l1\) is NaN or infinite at step 5; use a smaller --lr"):
        made.read_losses()


@pytest.mark.parametrize("settings", [{}, {"ema": 0.5}, {"optimizer": "sgd"}, {"sparse_2_4": True}])
def test_a_run_that_is_restored_in_the_middle_ends_as_if_it_had_not_stopped(run, tmp_path, settings):
    if "sparse_2_4" in settings:
        torch.save(sparse(Pixels().state_dict()), tmp_path / "pruned.pt")
        settings = {**settings, "from_weights": str(tmp_path / "pruned.pt")}
    whole = run(**settings)
    for _ in range(3):
        whole.train_step()
    whole.validation.best, whole.validation.waited, whole.elapsed = 12.5, 3, 60.0
    whole.save(best=False)
    state = torch.load(tmp_path / "run" / "checkpoints" / "last.pt", weights_only=True)
    again = run(state, **settings)
    assert (again.step, again.elapsed, again.validation.best, again.validation.waited) == (3, 60.0, 12.5, 3)
    for _ in range(3):
        whole.train_step()
        again.train_step()
    for one, other in ((whole.network, again.network), (whole.average, again.average)):
        for name, tensor in (one.state_dict() if one is not None else {}).items():
            torch.testing.assert_close(other.state_dict()[name], tensor, rtol=0, atol=0)
    assert whole.read_losses()[3:] == again.read_losses()
    with pytest.raises(Exception, match="start without --resume"):
        run(state, **{**settings, "optimizer": "adamw" if settings.get("optimizer") == "sgd" else "sgd"})


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_what_is_saved_are_the_weights_or_their_average(run, tmp_path, best, ema):
    made = run(ema=ema, lr=0.1)
    for _ in range(3):
        made.train_step()
    made.save(best)
    expected = (made.average.module if ema else made.network).state_dict()
    folder = tmp_path / "run"
    files = {folder / "weights.pt", *([folder / "checkpoints" / "best.pt"] if best else [])}
    for path in files:
        found = torch.load(path, weights_only=True)
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert (folder / "checkpoints" / "best.pt").exists() is best
    assert {path.name for path in (folder / "weights").iterdir()} == {f"{n.replace('.', '_')}.npy" for n in expected}
    np.testing.assert_array_equal(np.load(folder / "weights" / "last_weight.npy"), expected["last.weight"])


# --- validation ------------------------------------------------------------------------------------------------------


@pytest.fixture
def validation(tmp_path):
    """Makes a validation of pairs, and the module."""
    with scripts(tmp_path, stubs={"model": model()}) as get:
        module, Config = get("validation"), get("config").Config
        yield module, lambda shown, on_training=False, **more: module.Validation(shown, on_training, Config(**more))


PAIR = (torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 4, 4))


@pytest.mark.parametrize(
    ("patience", "stops"), [(0, []), (1, [2, 3, 5, 6, 7]), (2, [3, 6, 7]), (3, [7]), (4, [])]
)  # fmt: skip
@pytest.mark.parametrize("metric", ["psnr", ""])
def test_training_stops_after_so_many_validations_without_a_better_one(validation, patience, stops, metric):
    _, make = validation
    made = make([("a", *PAIR)], early_stopping=patience)
    judged = []
    for score in (1.0, 3.0, 3.0, 2.0, 5.0, 4.0, 5.0, -1.0):
        metrics, losses = ({metric: score}, {"l1": 9.0}) if metric else ({}, {"l1": 4.0 - score, "tv": -4.0})
        judged.append(made.judge(metrics, losses))
    assert [number for number, (best, _) in enumerate(judged) if best] == [0, 1, 4]
    assert [number for number, (_, stop) in enumerate(judged) if stop] == stops
    other = make([("a", *PAIR)], early_stopping=patience)
    other.restore(made.state())
    assert (other.best, other.waited) == (5.0, 3)
    assert not other.judge({"psnr": 5.0}, {})[0]


def test_without_validation_data_every_result_is_the_best_and_training_goes_on(validation):
    _, make = validation
    made = make([], True, early_stopping=1)
    assert [made.judge({}, {}) for _ in range(3)] == [(True, False)] * 3
    assert not made.on_training  # there are no values to mark
    assert make([("a", *PAIR)], True).on_training
    assert not make([("a", *PAIR)], False).on_training


def test_a_validation_measures_and_writes_every_image(validation, tmp_path, monkeypatch):
    module, make = validation
    shown = [
        (name, torch.full((count, 3, 4, 4), value), torch.zeros(count, 3, 4, 4))
        for name, count, value in (("a", 1, 0.2), ("b", 3, 0.6))
    ]
    made = make([*shown, ("a", *PAIR)], noise="0")
    seen = []

    class Objective(torch.nn.Module):
        def forward(self, inputs, targets):
            assert not self.training
            assert torch.is_inference_mode_enabled()
            seen.append((float(inputs[0].mean()), float(targets[0].mean())))
            return inputs[0] + 0.1, {"l1": inputs[0].mean()}

    monkeypatch.setattr(
        module.data,
        "measure",
        lambda output, targets, inputs: {"psnr": float((output - targets[0]).mean() + 10 * inputs[0].mean())},
    )
    monkeypatch.setattr(
        module.data,
        "views",
        lambda inputs, output, targets: {"inputs": inputs[0][0], "targets": targets[0][0], "output": output[0]},
    )
    monkeypatch.setattr(module, "place", lambda pair, device: ((pair[0],), (pair[0] / 2,)))
    objective = Objective()
    metrics, losses = made.run(objective, torch.device("cpu"), tmp_path / "run", 500)
    assert objective.training
    assert np.array(seen) == pytest.approx(np.array([(0.2, 0.1), (0.6, 0.3), (0.0, 0.0)]))
    assert losses == pytest.approx({"l1": (0.2 + 3 * 0.6) / 5})
    assert metrics == pytest.approx({"psnr": (0.2 + 2 + 3 * (0.4 + 6) + 0.1) / 5})
    folder = tmp_path / "run" / "validation"
    names = {"a.png", "b.png", "a_2.png"}
    assert {path.name: {file.name for file in path.iterdir()} for path in folder.iterdir()} == dict.fromkeys(
        ("inputs", "targets", "step_000500"), names
    )
    values = {kind: pixel(folder / kind / "b.png") for kind in ("inputs", "targets", "step_000500")}
    assert values == {"inputs": 153, "targets": 77, "step_000500": 179}
    (folder / "inputs" / "a.png").write_bytes(b"edited")
    made.run(objective, torch.device("cpu"), tmp_path / "run", 1000)
    assert (folder / "inputs" / "a.png").read_bytes() == b"edited"  # they do not change
    assert (folder / "step_001000" / "b.png").exists()


# --- a page of samples -----------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Runs samples.py, and counts how often the samples were closed."""
    data = images(tmp_path / "images")
    monkeypatch.chdir(tmp_path)
    with scripts(tmp_path) as get:
        samples, closed = get("samples"), []
        monkeypatch.setattr(get("mixture").Mixture, "close", lambda _: closed.append(1))
        options = ["--data", data, "--synthetic", "0", "--patch", "8"]
        yield lambda *more: (samples.main([*options, *more]), len(closed))


def test_a_page_of_samples_is_written_where_it_is_asked_for(page, tmp_path):
    assert page() == (0, 1)
    assert page("--output", str(tmp_path / "page.png")) == (0, 2)
    assert (tmp_path / "samples.png").read_bytes() == (tmp_path / "page.png").read_bytes()


@pytest.mark.parametrize(
    ("more", "closed", "message"),
    [
        (("--output", "missing/page.png"), 1, "missing"),
        (("--data", "nowhere"), 0, "nowhere is not a folder"),
        (("--patch", "6"), 0, "must be a multiple of 4"),
    ],
)
def test_a_page_that_cannot_be_made_ends_with_a_sentence(page, capsys, more, closed, message):
    assert page(*more) == (1, closed)
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said


# --- synthetic images ------------------------------------------------------------------------------------------------


def test_textures_of_synthetic_images_come_from_photos_where_there_are_some(tmp_path, monkeypatch):
    photo = np.random.default_rng(2).integers(0, 256, (300, 280, 3), np.uint8)
    with scripts(tmp_path) as get:
        leaves = get("dead_leaves")
        part, used = leaves._photo_part, []
        monkeypatch.setattr(leaves, "_photo_part", lambda rng, given: used.append(given is photo) or part(rng, given))
        for seed in range(3):
            assert leaves.dead_leaves(32, np.random.default_rng(seed), [photo]).shape == (32, 32, 3)
        assert len(used) >= 3
        assert all(used)
        used.clear()
        leaves.dead_leaves(32, np.random.default_rng(0))
        assert used == []
        textures = [
            leaves._texture(np.random.default_rng(seed), np.full((5, 3), 90, np.uint8), [photo]) for seed in range(60)
        ]
    flat = sum(len(np.unique(texture)) == 1 for texture in textures)  # between two equal colors
    assert 25 <= flat <= 50  # the others are parts of the photo


def test_colors_of_synthetic_images_are_those_of_the_photo(tmp_path):
    red = np.zeros((20, 20, 3), np.uint8)
    red[..., 0] = 200
    with scripts(tmp_path) as get:
        palettes = [get("dead_leaves")._palette(np.random.default_rng(seed), [red]) for seed in range(40)]
    strongest = [int(np.argmax(palette.sum(0))) for palette in palettes]
    assert all((np.sort(palette.sum(0))[:2] == 0).all() for palette in palettes)
    assert strongest.count(0) >= 20  # in half of them the channels keep their order
    assert set(strongest) == {0, 1, 2}
