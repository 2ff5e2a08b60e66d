"""Parts of the training scripts on their own, without a run: the templates of a task with data for the scripts made here."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from project_scripts import scripts

from exporters.pytorch.tasks import TASKS

torch = pytest.importorskip("torch")


# --- images --------------------------------------------------------------------------------------------------------


def turned(path: Path, pixels: np.ndarray) -> Path:
    """Write an image that is to be turned by 90 degrees clockwise, so that it is `pixels` upright."""
    image = Image.fromarray(np.rot90(pixels).copy())
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(path, exif=exif, **({"compression": "tiff_lzw"} if path.suffix == ".tif" else {}))
    return path


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_masks_are_upright_as_images_are(tmp_path, ending):
    mask = np.array([[0, 1, 2], [2, 0, 255]], np.uint8)
    path = turned(tmp_path / f"mask{ending}", mask)
    with scripts(tmp_path, "segmentation") as get:
        images = get("images")
    assert images.image_size(path) == (2, 3)
    assert images.load_mask(path, 3)[:, :, 0].tolist() == mask.tolist()
    assert images.load_image(path, 1)[:, :, 0].tolist() == mask.tolist()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_uncompressed_gray_tiff_files_are_upright(tmp_path, orientation):
    stored = np.arange(16 * 24, dtype=np.uint8).reshape(16, 24) % 251
    path = tmp_path / "gray.tif"
    Image.fromarray(stored).save(path, tiffinfo={0x0112: orientation})
    upright = {3: 2, 6: 3, 8: 1}  # quarter turns against the clock of the orientations without a flip
    flipped = {2: stored[:, ::-1], 4: stored[::-1], 5: stored.T, 7: stored[::-1, ::-1].T}
    expected = flipped.get(orientation, np.rot90(stored, upright.get(orientation, 0)))
    with scripts(tmp_path, "segmentation") as get:
        images = get("images")
    with scripts(tmp_path) as get:
        (photo,) = get("synthetic").load_photos([str(path)])
    assert images.image_size(path) == expected.shape
    assert (images.load_image(path, 1)[:, :, 0] == expected).all()
    assert (images.load_mask(path, 255)[:, :, 0] == expected).all()
    assert (photo[:, :, 0] == expected).all()


# --- classes -------------------------------------------------------------------------------------------------------


def test_number_255_is_a_class_of_images_and_not_one_of_masks(tmp_path):
    with scripts(tmp_path, "classification", classes=300) as get:
        Losses, accuracy = get("losses").Losses, get("metrics").accuracy
    labels = torch.tensor([255, 7])
    scores = 20.0 * torch.nn.functional.one_hot(torch.tensor([255, 8]), 300)
    assert accuracy(scores, labels) == 0.5
    assert Losses()(scores, labels)["cross_entropy"].item() == pytest.approx(10.0, abs=1e-3)  # the mean of 0 and 20
    pixels = torch.nn.functional.one_hot(torch.tensor([[[0, 1, 2, 2]]]), 3).movedim(-1, 1) * 20.0
    mask = torch.tensor([[[0, 2, 255, 255]]])
    assert accuracy(pixels, mask) == 0.5
    assert Losses()(pixels, mask)["cross_entropy"].item() == pytest.approx(10.0, abs=1e-3)


@pytest.mark.parametrize("targets", [(), ((1, 1, 1),), ((1,),)])
def test_the_accuracy_of_images_with_targets_of_any_shape(tmp_path, targets):
    with scripts(tmp_path, "classification", targets=targets) as get:
        data = get("data")
    _, wanted = data.sample(torch.zeros(3, 3, 8, 8), torch.tensor([0, 2, 1]))
    scores = torch.nn.functional.one_hot(torch.tensor([0, 2, 2]), 3).float()
    assert data.measure(scores, (wanted,), ()) == {"accuracy": pytest.approx(2 / 3)}


# --- files ---------------------------------------------------------------------------------------------------------


def test_gray_images_of_16_bits_keep_their_brightness(tmp_path):
    levels = np.array([[0, 257, 25700], [32896, 65278, 65535]], np.uint16)
    Image.fromarray(levels).save(tmp_path / "deep.png")
    with scripts(tmp_path) as get:
        images = get("images")
    expected = np.array([[0, 1, 100], [128, 254, 255]])
    for channels in (1, 3):
        found = images.load_image(tmp_path / "deep.png", channels)
        assert found.shape == (2, 3, channels)
        assert (found == expected[:, :, None]).all()
    assert (images.load_image(tmp_path / "deep.png", 4)[..., 3] == 255).all()


def test_validation_images_of_the_same_name_do_not_replace_each_other(tmp_path):
    with scripts(tmp_path) as get:
        validation, config = get("validation"), get("config")
    shown = [(name, torch.zeros(1), torch.full((1,), k)) for k, name in enumerate(("im1", "im1_2", "im1", "im1"))]
    found = validation.Validation(shown, False, config.Config()).shown
    assert [(name, int(value)) for name, _, value in found] == [("im1", 0), ("im1_2", 1), ("im1_3", 2), ("im1_4", 3)]


def test_the_page_before_and_after_has_the_last_step(tmp_path, monkeypatch):
    for step in (250, 999_750, 1_000_000):
        (tmp_path / "validation" / f"step_{step:06}").mkdir(parents=True)
        Image.new("L", (2, 2)).save(tmp_path / "validation" / f"step_{step:06}" / "a.png")
    with scripts(tmp_path) as get:
        plots = get("plots")
    used = []
    monkeypatch.setattr(plots.Image, "open", lambda path: used.append(path.parent.name) or np.zeros((2, 2)))
    monkeypatch.setattr(plots, "side_by_side", lambda images, target: None)
    plots.before_after(tmp_path, tmp_path / "page.png")
    assert used == ["step_1000000"]


def test_weights_beside_counters_and_damaged_arrays(tmp_path):
    entries = {
        "bn.num_batches_tracked": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
        "conv.kernel": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},  # as the designer calls it
    }
    head = json.dumps(entries).encode()
    content = len(head).to_bytes(8, "little") + head + bytes(8) + np.array([1, 2], "<f4").tobytes()
    (tmp_path / "w.safetensors").write_bytes(content)
    (tmp_path / "npy").mkdir()
    with scripts(tmp_path) as get:
        storage = get("storage")
    assert {name: array.tolist() for name, array in storage.read_weights(tmp_path / "w.safetensors").items()} == {
        "conv.weight": [1, 2]
    }
    for content in (b"", b"damaged"):
        (tmp_path / "npy" / "conv_kernel.npy").write_bytes(content)
        with pytest.raises(storage.StorageError, match="cannot be read"):
            storage.read_weights(tmp_path / "npy")


def test_images_of_a_pair_have_names_of_their_own(tmp_path):
    for file in ("inputs/a.png", "inputs/b/a.png", "targets/a.jpg", "targets/b/a.png"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with scripts(tmp_path, "restoration") as get:
        pairs = get("pairs")
    folders = str(tmp_path / "inputs"), str(tmp_path / "targets")
    found = [(one.relative_to(tmp_path), other.relative_to(tmp_path)) for one, other in pairs.find_pairs(*folders)]
    assert found == [(Path("inputs/a.png"), Path("targets/a.jpg")), (Path("inputs/b/a.png"), Path("targets/b/a.png"))]
    (tmp_path / "targets" / "a.png").touch()
    with pytest.raises(pairs.DataError, match=r"a\.jpg and .*a\.png have the same name"):
        pairs.find_pairs(*folders)


# --- runs ----------------------------------------------------------------------------------------------------------


class Optimizer:
    """As in PyTorch, its state has the settings of its groups."""

    def __init__(self, **settings) -> None:
        self.param_groups = [{"params": [0], **settings}]

    def load_state_dict(self, state) -> None:
        self.param_groups = [dict(group) for group in state]


def test_a_resumed_run_has_the_settings_of_its_command(tmp_path):
    with scripts(tmp_path) as get:
        checkpoints, config, storage = get("checkpoints"), get("config"), get("storage")
    saved = {
        "network": {}, "losses": {}, "average": {}, "scaler": {}, "validation": {}, "masks": {}, "step": 3, "elapsed": 1.0,
        "optimizer": [{"params": [0], "weight_decay": 0.1, "momentum": 0.9}], "config": {"optimizer": "sgd"},
        "random": {"cpu": torch.get_rng_state()},
    }  # fmt: skip
    stateless = SimpleNamespace(load_state_dict=lambda state: None, restore=lambda state: None)
    run = SimpleNamespace(
        network=stateless, objective=SimpleNamespace(loss=stateless), optimizer=Optimizer(weight_decay=0.5, momentum=0.0),
        average=None, scaler=stateless, validation=stateless, device=torch.device("cpu"),
        config=config.Config(optimizer="sgd"),
    )  # fmt: skip
    checkpoints.restore(run, saved)
    assert run.optimizer.param_groups == [{"params": [0], "weight_decay": 0.5, "momentum": 0.0}]
    assert (run.step, run.elapsed) == (3, 1.0)
    run.config = config.Config(optimizer="adamw")
    with pytest.raises(storage.StorageError, match="other settings; start without --resume"):
        checkpoints.restore(run, saved)


@pytest.mark.parametrize(("first", "armed"), [(0, True), (5, False), (9, True), (10, False), (19, True)])
def test_activations_are_kept_only_in_the_step_that_is_measured(tmp_path, first, armed):
    with scripts(tmp_path) as get:
        monitor = get("monitor")
    made = monitor.Monitor(tmp_path, torch.nn.Identity(), total_steps=30, key_every=10, first=first)
    try:
        assert (made._mode is not None) == armed
    finally:
        made._disarm()


# --- values at the limits ------------------------------------------------------------------------------------------


def test_which_values_settings_take(tmp_path):
    with scripts(tmp_path) as get:
        config = get("config")
    for parse, good, bad in (
        (config.count, ("1", " 20 "), ("0", "-1", "1.5", "")),
        (config.from_zero, ("0", "7"), ("-1", "0.5", "x")),
        (config.rate, ("1e-9", "0.999"), ("0", "1", "-0.1", "nan", "x")),
        (config.positive, ("0", "12.5"), ("-0.1", "inf", "nan")),
        (config.fraction, ("0", "0.999"), ("1", "-0.1", "nan")),
        (config.noise_level, ("0", "255", "0-255", "25.5-25.5"), ("256", "0-256", "9-3", "-1", "1.2.3", "")),
        (config.shot_level, ("0", "1", "1e-3-0.02"), ("1.1", "0-2", "0.5-0.1")),
        (config.problems, ("", "dead", "dead,frozen"), ("dead,tired", " dead")),
    ):
        for text in good:
            parse(text)
        for text in bad:
            with pytest.raises(argparse.ArgumentTypeError):
                parse(text)
    assert config.levels("1e-3-2e-2") == (0.001, 0.02)
    saved = {"steps": 7, "epochs": 3, "lr": 0.5, "of_another_version": 1}
    for given, expected in (({}, (7, 3)), ({"epochs": 9}, (0, 9)), ({"steps": 8}, (8, 3))):
        made = config.Command(given, "", "", True, False).config(saved)
        assert (made.steps, made.epochs, made.lr) == (*expected, 0.5)


def test_learning_rates_at_the_ends(tmp_path):
    with scripts(tmp_path) as get:
        config, rate = get("config"), get("optimization").learning_rate
    for settings, step, steps, expected in (
        ({"warmup": 4}, 0, 14, 0.25), ({"warmup": 4}, 3, 14, 1.0), ({"warmup": 4}, 4, 14, 1.0), ({"warmup": 4}, 9, 14, 0.5),
        ({"warmup": 4}, 14, 14, 0.0), ({"warmup": 0}, 0, 1, 1.0), ({"warmup": 5}, 2, 3, 0.6), ({}, 99, 5000, 1.0),
        ({}, 49, 500, 1.0), ({}, 0, 9, 1.0),
    ):  # fmt: skip
        assert rate(config.Config(lr=1.0, **settings), step, steps) == pytest.approx(expected), (settings, step)


def test_patches_steps_and_metrics_are_those_of_their_axes(tmp_path):
    with scripts(tmp_path) as get:
        images, metrics, mean = get("images"), get("metrics"), get("validation").mean
        monitored = get("infer").run(lambda x: x[..., ::2, ::2], [torch.arange(35.0).reshape(1, 1, 5, 7)])
    rng = np.random.default_rng(0)
    picture = np.arange(30).reshape(3, 10, 1)
    seen = {images.cut_together(rng, [picture, -picture], 3)[0].tobytes() for _ in range(200)}
    assert len(seen) == 8  # of 10 columns; all of the three rows
    one, other = images.cut_together(rng, [picture[:2], -picture[:2]], 4)
    assert one.shape == (4, 4, 1)
    assert (one == -other).all()
    assert (one[2:] == one[1::-1]).all()  # mirrored below
    assert [*images.Steps(3, 5, 4, 1, 2)] == [[14, 15], [18, 19]]
    assert len(images.Steps(3, 5, 4)) == 2
    black, gray = torch.zeros(1, 1, 6, 9), torch.zeros(1, 1, 6, 9)
    gray[..., 0, :] = 1
    assert metrics.psnr(black, black) == pytest.approx(120)
    assert metrics.psnr(black, black + 0.1) == pytest.approx(20)
    assert metrics.psnr_y(black, gray, 1) == pytest.approx(120)  # the border does not count
    assert metrics.psnr_y(black, gray, 0) == pytest.approx(10 * np.log10(6))
    white = torch.ones(1, 3, 2, 2)
    assert metrics.psnr_y(white, 0 * white, 0) == pytest.approx(-20 * np.log10(219 / 255), abs=1e-3)  # 16 to 235
    assert metrics.ssim(gray, gray) == pytest.approx(1)
    assert metrics.ssim(black[..., :1, :], gray[..., :1, :]) == pytest.approx(1e-4 / 1.0001, rel=1e-3)
    assert mean([(1, {"a": 1.0}), (3, {"a": 5.0})]) == {"a": 4.0}
    assert mean([]) == {}
    (output,) = monitored.values()  # of 5 x 7 pixels, padded to 8 x 8, at half the size
    assert output.tolist() == [[[[0, 2, 4, 6], [14, 16, 18, 20], [28, 30, 32, 34]]]]


def test_which_values_of_a_layer_are_problems(tmp_path):
    with scripts(tmp_path) as get:
        monitor = get("monitor")
    usual = monitor.Layer(gradients=[1.0, 1.0, 9.0])  # median 1
    for values, density, rate, expected in (
        ({"gradient": 100.0}, None, 1.0, set()),
        ({"gradient": 101.0}, None, 1.0, {"exploding"}),
        ({"update": 0.3}, None, 1.0, set()),
        ({"update": 0.31}, None, 1.0, {"exploding"}),
        ({"gradient": math.inf}, None, 1.0, {"exploding"}),  # skipped by mixed precision
        ({"weight": math.nan, "update": 0.5}, None, 1.0, {"not_finite"}),
        ({}, 2e-6, 1.0, set()),
        ({}, 1.9e-6, 1.0, {"vanishing"}),
        ({"dead": 0.5}, None, 1.0, {"dead"}),
        ({"dead": 0.49, "saturated": 0.89}, None, 1.0, set()),
        ({"saturated": 0.9}, None, 1.0, {"saturated"}),
        ({"weight": 1.0, "update": 0.9e-8}, None, 1.0, {"frozen"}),
        ({"weight": 1.0, "update": 1e-8}, None, 1.0, set()),
        ({"weight": 0.0, "update": 0.0}, None, 1.0, set()),
        ({"weight": 1.0, "update": 0.0}, None, 0.0, set()),
    ):
        assert monitor._problems(values, usual, density, 2.0, rate) == expected, values
    assert monitor._problems({"gradient": 1e6}, monitor.Layer(gradients=[1.0, 1.0]), None, 2.0, 1.0) == set()


def test_activations_are_measured_over_places_and_the_first_images(tmp_path):
    with scripts(tmp_path) as get:
        monitor = get("monitor")
    made = monitor.Monitor(tmp_path, torch.nn.Identity(), total_steps=30, key_every=10)
    made._disarm()
    image = torch.zeros(6, 4, 2, 3)
    image[3, 0, 1, 2] = 2.0  # one place of one image is enough
    image[5, 1:] = 9.0  # not measured
    tokens = torch.zeros(1, 5, 2)
    tokens[0, 4, 1] = 1.0
    made._values = {
        "image": ("relu", image), "tokens": ("relu", tokens), "row": ("relu", torch.tensor([[0.0, 1.0], [0.0, 0.0]])),
        "gate": ("sigmoid", torch.tensor([[0.01, 0.02, 0.5, 0.99]])), "turn": ("tanh", torch.tensor([[-0.99, 0.0]])),
    }  # fmt: skip
    found = made._activations()
    assert {name: values["dead"] for name, values in found.items()} == {
        "image": 0.75, "tokens": 0.5, "row": 0.5, "gate": 0.0, "turn": 0.0,
    }  # fmt: skip
    assert (found["gate"]["saturated"], found["turn"]["saturated"], found["row"]["zeros"]) == (0.5, 0.5, 0.75)
    assert found["image"]["activation"] == pytest.approx(2 / 96)
    assert made._values == {}


def test_masks_are_those_of_weights_with_two_of_four_along_the_inputs(tmp_path):
    with scripts(tmp_path) as get:
        storage = get("storage")
    network = torch.nn.ModuleDict(
        {name: torch.nn.Linear(inputs, 2, bias=True) for name, inputs in (("a", 9), ("b", 8), ("small", 3))}
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(1.0)
        network["a"].weight[:, [0, 3, 5, 6]] = 0.0  # the ninth is in no group
        network["b"].weight[0, [0, 1, 4, 5]] = 0.0  # only one row
    masks = storage.sparse_masks(network)
    assert list(masks) == ["a.weight"]
    assert masks["a.weight"][1].tolist() == [False, True, True, False, True, False, False, True, True]
    with torch.no_grad():
        network["a"].weight.fill_(2.0)
    storage.apply_masks(network, masks)
    assert network["a"].weight.sum() == 2 * 5 * 2
    other = {"a.weight": torch.zeros(2, 9), "b.weight": torch.zeros(2, 7), "c": torch.zeros(1)}
    torch.save({"params": {f"module.{name}": tensor for name, tensor in other.items()}}, tmp_path / "other.pt")
    report = str(storage.adopt(network, tmp_path / "other.pt"))
    assert report.startswith(
        f"1 of 6 tensors of {tmp_path / 'other.pt'}; not in the file: a.bias, b.bias, small.weight"
    )
    assert report.endswith("of another shape: b.weight (2, 7), not (2, 8); not needed: c")


def test_lines_of_metrics_are_means_with_their_own_times(tmp_path):
    with scripts(tmp_path) as get:
        Records, Config = get("records").Records, get("config").Config
    records = Records(as_json=True)
    records.folder, records.results = tmp_path / "run", (tmp_path / "run",)
    records.begin(Config(batch=4, tensorboard=False), 0, 20_000, 3, {})
    rows = [{"a": float(number), "b": 1.0} for number in range(1, 6)]
    records.report(8, rows, 2.0, 10.0, [0.1, 0.2, 0.3, 0.4, 0.5], {"psnr": 30.0})
    first, *_ = lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert (first["total_steps"], len(lines)) == (20_000, 4)
    names = ("step", "epoch", "loss", "losses", "learning_rate", "elapsed", "throughput")
    assert [tuple(line[name] for name in names) for line in lines[1:]] == [
        (5, 2, 2.5, {"a": 1.5, "b": 1.0}, 0.2, 8.8, 10.0),
        (7, 3, 4.5, {"a": 3.5, "b": 1.0}, 0.4, 9.6, 10.0),
        (8, 3, 6.0, {"a": 5.0, "b": 1.0}, 0.5, 10.0, 10.0),
    ]
    assert [line.get("validation") for line in lines[1:]] == [None, None, {"psnr": 30.0}]
    assert [records.due(step, seconds) for step, seconds in ((4, 0.3), (5, 0.3), (4, 0.25))] == [True, False, False]


def test_validation_images_are_cropped_to_the_multiple_on_each_axis(tmp_path):
    picture = np.arange(11 * 14, dtype=np.uint8).reshape(11, 14)
    Image.fromarray(picture).convert("RGB").save(tmp_path / "a.png")
    with scripts(tmp_path) as get:
        data, config = get("data"), get("config")
    for noise, level in (("0-55", 25), ("25-50", 25), ("5-10", 10), ("30-60", 60)):
        ((name, clean, added),) = data.validation_pair(tmp_path / "a.png", 3, config.Config(noise=noise))
        assert (name, clean.shape) == ("a", (1, 3, 8, 12))
        assert clean[0, 0, 7, 11].item() == pytest.approx(picture[7, 11] / 255)
        again = torch.randn(3, 8, 12, generator=torch.Generator().manual_seed(3)) * (level / 255)
        assert torch.allclose(added[0], again)
    with scripts(tmp_path, "super-resolution") as get:
        data, samples = get("data"), get("samples")
        page = samples.page([(torch.zeros(3, 4, 2), torch.ones(3, 8, 4))] * 7)
    ((_, small, large),) = data.validation_pair(tmp_path / "a.png")
    assert (small.shape, large.shape) == ((1, 3, 4, 4), (1, 3, 8, 8))
    step = samples.SIDE + samples.GAP
    assert page.size == (6 * step + samples.GAP, 4 * step + 3 * samples.GAP)
    seen = [page.getpixel((step // 2, row * step + step // 2 + row // 2 * samples.GAP)) for row in range(4)]
    assert seen == [(0, 0, 0), (255, 255, 255)] * 2
    assert page.getpixel((step + step // 2, 2 * step + step // 2)) == (40, 40, 40)  # seven samples


def test_pixels_that_do_not_count_leave_losses_and_metrics_finite(tmp_path):
    """A mask without pixels that count adds nothing to the accuracy of the others, and to the loss."""
    with scripts(tmp_path, "segmentation", classes=2) as get:
        loss, mean = get("losses").Losses(), get("validation").mean
        scores = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
        masks = scores.argmax(1)
        masks[0] = 255
        rows = [(1, get("data").measure(scores[k : k + 1], (masks[k : k + 1],), ())) for k in range(2)]
        value = loss(scores, masks)["cross_entropy"]
        nothing = loss(scores[:1], masks[:1])["cross_entropy"]
        ratio = get("metrics").pixel_accuracy(scores[:1], masks[:1])
    assert mean(rows)["accuracy"] == 1.0
    assert value.item() == pytest.approx(torch.nn.functional.cross_entropy(scores[1:], masks[1:]).item())
    assert nothing.item() == 0.0
    assert ratio.value() == 0.0


def test_the_plot_of_segmentation_has_the_metric_that_chooses_the_best_checkpoint(tmp_path, monkeypatch):
    values = {"iou": 0.25, "accuracy": 0.75, "loss": 1.0}
    lines = [{"schema": 1}, {"step": 1, "loss": 1.0, "losses": {"cross_entropy": 1.0}, "validation": values}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    drawn = []
    with scripts(tmp_path, "segmentation") as get:
        plots = get("plots")
        monkeypatch.setattr(plots.Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
        plots.curves(tmp_path, tmp_path / "curves.png")
    assert drawn[0].axes[1].get_ylabel() == "mean IoU"


def lines_of(axis):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.get_lines()}


def drawn_curves(folder, monkeypatch, get, entries):
    """The two plots of a run with these entries."""
    lines = [{"schema": 1}, *entries]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    plots, drawn = get("plots"), []
    monkeypatch.setattr(plots.Figure, "savefig", lambda figure, target, **_: drawn.append((figure, target)))
    plots.curves(folder, folder / "curves.png")
    ((figure, target),) = drawn
    assert target == folder / "curves.png"
    return figure.axes


def test_curves_show_every_loss_and_validation_of_the_run(tmp_path, monkeypatch):
    entries = [
        {"step": 2, "loss": 4.0, "losses": {"l1": 1.0, "ssim": 3.0}},
        {"step": 4, "loss": 2.0, "losses": {"l1": 0.5, "ssim": 1.5}, "validation": {"psnr": 20.0, "noisy_psnr": 15.0}},
        {"step": 6, "loss": 1.0, "losses": {"l1": 0.5, "ssim": 0.5}, "validation": {"psnr": 25.0, "noisy_psnr": 15.5}},
    ]

    def mean(values):  # each value weighs 0.95 times as much as the next one
        rows = [values[: count + 1] for count in range(len(values))]
        return [np.average(row, weights=0.95 ** np.arange(len(row))[::-1]) for row in rows]

    with scripts(tmp_path, "denoising") as get:
        left, right = drawn_curves(tmp_path, monkeypatch, get, entries)
    seen = lines_of(left)
    assert seen.pop("loss") == ([2, 4, 6], [4.0, 2.0, 1.0])
    expected = {"running mean": [4.0, 2.0, 1.0], "l1": [1.0, 0.5, 0.5], "ssim": [3.0, 1.5, 0.5]}
    assert list(seen) == list(expected)
    for name, values in expected.items():
        assert seen[name] == ([2, 4, 6], pytest.approx(mean(values)))
    assert (left.get_xlabel(), left.get_ylabel(), left.get_yscale(), left.get_title()) == (
        "step",
        "loss",
        "log",
        "Training loss",
    )
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["loss", "running mean", "l1", "ssim"]
    assert lines_of(right) == {"network": ([4, 6], [20.0, 25.0]), "input": ([4, 6], [15.0, 15.5])}
    assert (right.get_xlabel(), right.get_ylabel(), right.get_title()) == ("step", "PSNR in dB", "Validation")
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["network", "input"]


def test_curves_of_one_loss_have_one_mean_and_negative_losses_a_linear_scale(tmp_path, monkeypatch):
    entries = [{"step": k, "loss": 1.0 - k, "losses": {"l1": 1.0 - k}} for k in range(3)]
    with scripts(tmp_path, "denoising") as get:
        left, right = drawn_curves(tmp_path, monkeypatch, get, entries)
    assert list(lines_of(left)) == ["loss", "running mean"]
    assert left.get_yscale() == "linear"
    assert not right.get_yticks().size


def test_a_run_that_was_stopped_before_its_validation_says_so(tmp_path, monkeypatch):
    with scripts(tmp_path, "denoising") as get:
        for entries in ([], [{"step": 1, "loss": 1.0, "losses": {"l1": 1.0}}]):
            _left, right = drawn_curves(tmp_path, monkeypatch, get, entries)
            assert [text.get_text() for text in right.texts] == ["not validated yet"]
            assert right.get_legend() is None
            assert not right.get_xticks().size


def test_folders_of_classes_without_images_are_named(tmp_path):
    with scripts(tmp_path, "classification") as get:
        for name in "abc":
            (tmp_path / "images" / name).mkdir(parents=True)
        with pytest.raises(get("images").DataError, match="there are no images in the folders of"):
            get("data").find_labelled(tmp_path / "images", "--data")


def test_an_empty_folder_for_validation_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with scripts(tmp_path) as get:
        config = get("config").Config(data="", validation=str(tmp_path / "empty"), synthetic=1)
        with pytest.raises(get("images").DataError, match="empty; add images to the folder, or leave out --validation"):
            get("mixture").open_mixture(config, tmp_path / "cache")


@pytest.mark.parametrize("shape", [(), (10,), (3, 8), (3, 4, 8, 8)])
@pytest.mark.parametrize("task", TASKS)
def test_a_network_without_an_image_for_the_data_is_an_error_with_its_shape(tmp_path, task, shape):
    words = (
        "'image' of the network is N"
        + "".join(f" x {size}" for size in shape)
        + ", but the data are images N x C x H x W"
    )
    paired = {"inputs": str(tmp_path), "targets": str(tmp_path)} if task in ("restoration", "segmentation") else {}
    with scripts(tmp_path, task, inputs=(shape,)) as get:
        config = get("config").Config(**(paired or {"data": str(tmp_path)}))
        with pytest.raises(get("images").DataError, match=words):
            get("data").open_data(config, tmp_path / "cache")
        with pytest.raises(get("images").DataError, match=words):
            get("infer").load_inputs([turned(tmp_path / "a.png", np.zeros((4, 6), np.uint8))])


def test_the_data_have_the_channels_of_the_first_input_that_is_an_image(tmp_path):
    (tmp_path / "images").mkdir()
    turned(tmp_path / "images" / "a.png", np.zeros((20, 20), np.uint8))
    with scripts(tmp_path, inputs=((), (3,), (1, 8, 8))) as get:
        config = get("config").Config(data=str(tmp_path / "images"), synthetic=0, patch=8)
        samples, shown, _ = get("data").open_data(config, tmp_path / "cache")
        assert samples[0][0].shape == (1, 8, 8)
    assert shown[0][1].shape == (1, 1, 20, 20)


def test_a_target_with_one_number_per_sample_that_does_not_fit_is_named(tmp_path):
    with scripts(tmp_path, targets=((),)) as get:
        objective = get("objective")
    image = torch.zeros(2, 3, 8, 8)
    objective.check_fit((image,), (torch.zeros(2),))
    with pytest.raises(objective.ObjectiveError, match=r"the target '.*' is N in the network, but .* \(2, 3, 8, 8\)"):
        objective.check_fit((image,), (image,))


def test_an_output_that_does_not_fit_the_target_is_an_error_of_training(tmp_path):
    with scripts(tmp_path) as get:
        train = get("train")
        loss, (output, target) = get("losses").Losses(), (torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 8, 8))
        run = SimpleNamespace(forward=lambda inputs, targets: (output, loss(output, target)))
        with pytest.raises(train.TrainingError, match="the network's output is"):
            train.Run.losses(run, (output,), (target,))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            (1, 8, 16, 16),
            "output is N x 8 x 16 x 16, .* make an output of the shape N x 3 x 8 x 8, or choose another task$",
        ),
        ((1, 8, 8, 8), "output is N x 8 x 8 x 8, .* give the output 3 channels, or choose another task$"),
        ((1,), "output is N, .* make an output of the shape N x 3 x 8 x 8, or choose another task$"),
    ],
)
def test_a_wrong_output_names_the_task_and_the_shape_that_it_needs(tmp_path, shape, words):
    with scripts(tmp_path) as get:
        loss = get("losses").Losses()
    with pytest.raises(ValueError, match=words) as caught:
        loss(torch.zeros(shape), torch.zeros(1, 3, 8, 8))
    assert "the target of the task 'denoising' is N x 3 x 8 x 8" in str(caught.value)
    assert "data.py" not in str(caught.value)


def test_an_output_of_another_size_than_the_masks_names_the_task(tmp_path):
    with scripts(tmp_path, "segmentation") as get:
        loss = get("losses").Losses()
    with pytest.raises(ValueError, match="the task 'segmentation' are N x 8 x 8; make an output with scores") as caught:
        loss(torch.zeros(1, 3, 4, 4), torch.zeros(1, 8, 8, dtype=torch.int64))
    assert "data.py" not in str(caught.value)


def test_an_input_of_channels_that_no_image_has_is_named(tmp_path):
    with (
        scripts(tmp_path) as get,
        pytest.raises(get("images").DataError, match=r"8 channels, .* give the input one of"),
    ):
        get("images").load_image(tmp_path / "a.png", 8)


def test_photos_of_16_bits_give_their_colors_to_synthetic_images(tmp_path):
    ramp = np.linspace(0, 65535, 40 * 50).reshape(40, 50).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "gray.png")
    with scripts(tmp_path) as get:
        (photo,) = get("synthetic").load_photos([str(tmp_path / "gray.png")])
    assert (photo.min(), photo.max()) == (0, 255)
    assert photo.mean() == pytest.approx(127.5, abs=1)


def test_a_run_that_replaces_another_removes_its_results_when_it_begins(tmp_path):
    """Not before: it can start from the weights of the run that it replaces."""
    run = tmp_path / "run"
    (run / "weights").mkdir(parents=True)
    (run / "checkpoints").mkdir()
    for name in ("weights/conv_kernel.npy", "weights.pt", "curves.png", "events.out.tfevents.1", "notes.txt"):
        (run / name).touch()
    with scripts(tmp_path) as get:
        command = get("config").parse(["--output", str(run), "--no-tensorboard"], "")
        records = get("records").Records(as_json=True)
        records.open(command)
        assert not (run / "checkpoints").exists()
        assert (run / "weights.pt").exists()
        records.begin(command.config(), 0, 10, 1, {})
    assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl", "notes.txt", "status.json"]


def test_a_resumed_run_drops_metrics_and_validation_images_after_its_checkpoint(tmp_path):
    run = tmp_path / "run"
    kept, dropped = ("inputs", "step_000010", "step_000020", "step_x"), ("step_000021", "step_1000030")
    for name in (*kept, *dropped):
        (run / "validation" / name).mkdir(parents=True)
        (run / "validation" / name / "a.png").touch()
    lines = [json.dumps(line) for line in ({"schema": 1}, *({"step": step} for step in (10, 20, 21)))]
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    with scripts(tmp_path) as get:
        records, Config = get("records").Records(as_json=True), get("config").Config
    records.folder = run
    records.begin(Config(tensorboard=False), 20, 40, 1, {})
    assert sorted(path.name for path in (run / "validation").iterdir()) == sorted(kept)
    assert (run / "metrics.jsonl").read_text().splitlines()[1:] == lines[1:3]


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_synthetic_images_of_any_channels_are_kept_in_files(tmp_path, monkeypatch, channels):
    with scripts(tmp_path) as get:
        synthetic = get("synthetic")
        images = synthetic.SyntheticImages(1, channels, 64, 0, 0, tmp_path / "cache", [])
        images.side, images.folder = 32, tmp_path
        monkeypatch.setattr(
            synthetic, "dead_leaves", lambda side, rng, _: rng.integers(0, 256, (side, side, 3), np.uint8)
        )
        monkeypatch.setattr(sys, "argv", ["synthetic.py", str(tmp_path), "32", str(channels), "0"])
        monkeypatch.setattr(sys, "stdin", ["0\n"])
        synthetic.main()
        assert (tmp_path / "0.png").exists()
        np.testing.assert_array_equal(images.load(0, 0), synthetic.make(0, 32, channels, 0, []))


def test_the_running_mean_weighs_the_first_losses_as_the_others(tmp_path):
    with scripts(tmp_path) as get:
        smoothed = get("plots").smoothed
    values = [9.0, *np.random.default_rng(1).uniform(0.5, 1.5, 60)]
    for count in (1, 2, 7, 61):
        weights = 0.95 ** np.arange(count)[::-1]
        assert smoothed(values)[count - 1] == pytest.approx(np.average(values[:count], weights=weights))
    assert smoothed([3.0] * 5) == pytest.approx([3.0] * 5)
    assert smoothed([]) == []
