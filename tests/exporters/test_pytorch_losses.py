"""Losses: each against a formula written by hand, and worked examples of what they train."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from loss_networks import generated, named, restorer, segmenter, speller
from PIL import Image
from pytorch_networks import lint, load_source, node
from warm_python import run_python

from designer.files.document import read_document
from designer.files.weights import load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.runtime.session import Session
from designer.training.progress import Stepped, parse_line
from exporters.pytorch import export_project, generate_source
from exporters.pytorch.losses import losses_of
from exporters.pytorch.source import module_source, network_module

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
DOCUMENTS = Path(__file__).parents[1] / "data" / "agreement"


# --- values, against formulas in numpy ------------------------------------------------------------------------------


def ssim_by_hand(x, y, window=5, sigma=1.5, peak=1.0):
    """The mean of SSIM over all windows that fit, each window by itself, in float64."""
    places = np.arange(window) - window // 2
    curve = np.exp(-0.5 * (places / sigma) ** 2)
    weights = np.outer(curve, curve)
    weights /= weights.sum()
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    found = []
    for n, c in np.ndindex(x.shape[:2]):
        for top, left in np.ndindex(x.shape[2] - window + 1, x.shape[3] - window + 1):
            a, b = (t[n, c, top : top + window, left : left + window].astype(np.float64) for t in (x, y))
            ma, mb = (weights * a).sum(), (weights * b).sum()
            va, vb = (weights * (a - ma) ** 2).sum(), (weights * (b - mb) ** 2).sum()
            cov = (weights * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + c1) * (2 * cov + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))
    return np.mean(found)


def gradient_by_hand(x, y):
    across, down = np.diff(x - y, axis=3), np.diff(x - y, axis=2)
    return np.abs(across).mean() + np.abs(down).mean()


def huber_by_hand(x, y, delta=0.2):
    d = np.abs(x - y)
    return np.where(d <= delta, 0.5 * d**2, delta * (d - 0.5 * delta)).mean()


def bce_by_hand(x, y):
    p = 1 / (1 + np.exp(-x.astype(np.float64)))
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()


IMAGE_LOSSES = {
    "l1_loss": ({}, lambda x, y: np.abs(x - y).mean()),
    "mse_loss": ({}, lambda x, y: ((x - y) ** 2).mean()),
    "huber_loss": ({"delta": 0.2}, huber_by_hand),
    "charbonnier_loss": ({"epsilon": 0.05}, lambda x, y: np.sqrt((x - y) ** 2 + 0.05**2).mean()),
    "ssim_loss": ({"window": 5}, lambda x, y: 1 - ssim_by_hand(x, y)),
    "gradient_loss": ({}, gradient_by_hand),
    "bce_loss": ({}, bce_by_hand),
}


@pytest.mark.parametrize("kind", IMAGE_LOSSES)
def test_image_losses_are_what_their_formulas_say(registry, kind):
    params, formula = IMAGE_LOSSES[kind]
    graph = restorer(
        node("compared", kind, "tail", "clean", **params),
        node("halved", kind, "tail", "clean", **params, weight=0.5),
        node("in all", kind, "tail", "clean", **params, reduction="sum"),
    )
    _, losses = generated(graph, registry)
    rng = np.random.default_rng(3)
    made, clean = (rng.random((2, 3, 9, 8), np.float32) for _ in range(2))
    values = losses(torch.from_numpy(made), torch.from_numpy(clean))
    wanted = formula(made.astype(np.float64), clean.astype(np.float64))
    assert values["compared"].item() == pytest.approx(wanted, rel=2e-5)
    assert values["halved"].item() == pytest.approx(wanted / 2, rel=2e-5)
    if kind != "gradient_loss":  # two sums of different length
        count = made.size if kind != "ssim_loss" else 2 * 3 * 5 * 4
        assert values["in all"].item() == pytest.approx(wanted * count, rel=2e-5)


def test_probabilities_are_weighted_like_scores(registry):
    graph = read_document(DOCUMENTS.parent / "training" / "bce_pos_weight_ignored.xml").graph
    _, losses = generated(graph, registry)
    rng = np.random.default_rng(3)
    p, y = (rng.uniform(0.1, 0.9, (2, 2, 8, 8)).astype(np.float32) for _ in range(2))
    value = named(losses(torch.from_numpy(p), torch.from_numpy(y)), "l")["l"]
    assert value.item() == pytest.approx(-(5 * y * np.log(p) + (1 - y) * np.log(1 - p)).mean(), rel=2e-5)


@pytest.mark.parametrize("kind", [k for k in IMAGE_LOSSES if k != "bce_loss"])
def test_image_losses_train_a_restorer(registry, kind):
    """Noise is added; a few steps make the loss smaller."""
    torch.manual_seed(0)
    params, _ = IMAGE_LOSSES[kind]
    network, losses = generated(restorer(node("compared", kind, "result", "clean", **params)), registry)
    clean = torch.nn.functional.avg_pool2d(torch.rand(4, 3, 20, 20), 5, stride=1)
    noisy = clean + 0.1 * torch.randn_like(clean)
    first, last = train(network, losses, (noisy,), (clean,), "compared", steps=25)
    assert last < 0.8 * first


def train(network, losses, inputs, targets, name, steps, lr=1e-2):
    """The first and the last loss of a few steps of Adam."""
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    reported = []
    for _ in range(steps):
        _, read = network.forward_training(*inputs)
        loss = named(losses(*read, *targets), name)[name]
        reported.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return reported[0], reported[-1]


def test_weights_that_network_and_losses_share_are_one_module(registry, tmp_path):
    graph = read_document(DOCUMENTS / "shared_weights_in_loss.xml").graph
    made = losses_of(graph, registry)
    assert made.shared == ("net",)
    source = module_source(made.module, "Losses")
    assert "class Net(" not in source
    network = load_source(module_source(network_module(graph, registry, taps=made.taps), "Network")).Network()
    losses = load_source(source).Losses()
    assert not [*losses.parameters()]
    x, target = torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8)
    output, read = network.forward_training(x)
    value = losses(*read, target, network.net)
    assert value.item() == pytest.approx((output - network(target)).abs().mean().item(), rel=1e-6)
    value.backward()
    both = network.net.c.weight.grad.clone()
    network.zero_grad()
    (network(x) - network(target)).abs().mean().backward()
    torch.testing.assert_close(both, network.net.c.weight.grad)


def test_a_project_trains_the_one_module(registry, tmp_path):
    """A siamese network: the distance of what one module makes of two images can only fall where both follow it."""
    export_project(
        read_document(DOCUMENTS / "shared_weights_in_loss.xml").graph, registry, tmp_path / "siamese", "Siamese"
    )
    command = ["train.py", "--synthetic", "4", "--steps", "3", "--batch", "2", "--patch", "8", "--threads", "1"]
    done = run_python(tmp_path / "siamese", *command)
    assert done.returncode == 0, done.stderr
    saved = torch.load(tmp_path / "siamese" / "runs" / "001" / "checkpoints" / "last.pt", weights_only=True)
    assert saved["losses"] == {}
    assert sorted(saved["network"]) == ["net.c.bias", "net.c.weight"]


def test_all_inputs_of_a_network_reach_its_training_too(registry):
    graph = Graph(
        [
            *(node(name, "input", dims="8x8x3") for name in ("photo", "depth", "target")),
            node("both", "concatenation", "photo", "depth"),
            node("mixed", "convolution", "both", features=3),
            node("again", "element_wise", "mixed", "depth", operation="subtract"),
            node("result", "output", "again"),
            node("difference", "l1_loss", "again", "target"),
        ]
    )
    network, losses = generated(graph, registry)
    photo, depth, target = torch.rand(3, 2, 3, 8, 8)
    result, read = network.forward_training(photo=photo, depth=depth)
    expected = network.mixed(torch.cat((photo, depth), 1)) - depth
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(network(photo=photo, depth=depth), expected)
    value = named(losses(*read, target), "difference")["difference"]
    torch.testing.assert_close(value, (expected - target).abs().mean())


# --- cross-entropy ---------------------------------------------------------------------------------------------------


def test_cross_entropy_trains_a_segmenter(registry):
    torch.manual_seed(0)
    graph = segmenter()
    network, losses = generated(graph, registry)
    image = torch.rand(2, 3, 16, 16)
    labels = (image.mean(1, keepdim=True) * 7.99).floor().clamp(2, 5) - 2  # N x 1 x H x W: how bright, in 4 classes
    with torch.no_grad():
        result, read = network.forward_training(image)
        value = named(losses(*read, labels), "right class")["right class"]
    shares = torch.log(torch.exp(result) / torch.exp(result).sum(1, keepdim=True))
    by_hand = -shares.gather(1, labels.long()).mean()
    assert value.item() == pytest.approx(by_hand.item(), rel=1e-5)
    first, last = train(network, losses, (image,), (labels,), "right class", steps=120, lr=0.03)
    assert last < 0.4 * first
    assert (network(image).argmax(1) == labels[:, 0]).float().mean() > 0.85


# --- CTC -------------------------------------------------------------------------------------------------------------


def spelled(path, blank=0):
    """What a path of classes spells: repetitions are one symbol, blanks go."""
    return tuple(symbol for symbol, _ in itertools.groupby(path) if symbol != blank)


def test_ctc_is_the_sum_over_all_ways_to_spell(registry):
    _, losses = generated(speller(steps=5, symbols=2, classes=3), registry)
    scores = np.random.default_rng(1).normal(size=(1, 5, 3)).astype(np.float32)
    shares = np.exp(scores[0]) / np.exp(scores[0]).sum(1, keepdims=True)
    paths = itertools.product(range(3), repeat=5)
    chance = sum(np.prod([shares[t, c] for t, c in enumerate(path)]) for path in paths if spelled(path) == (1, 2))
    text = torch.tensor([1.0, 2.0]).reshape(1, 1, 1, 2)  # as the input layer takes them
    value = named(losses(torch.from_numpy(scores), text), "spelling")["spelling"]
    assert value.item() == pytest.approx(-np.log(chance) / 2, rel=1e-5)  # the mean counts symbols


def test_ctc_trains_a_speller(registry):
    """Three symbols somewhere in eight steps: nobody says where, training finds out."""
    torch.manual_seed(0)
    network, losses = generated(speller(), registry)
    texts = torch.tensor([[1, 2, 3], [3, 1, 2]])
    signal = 0.1 * torch.randn(2, 4, 1, 8)
    for sample, (text, places) in enumerate(zip(texts.tolist(), ((0, 3, 6), (1, 4, 7)), strict=True)):
        for symbol, place in zip(text, places, strict=True):
            signal[sample, symbol, 0, place] += 1.0
    target = texts.float().reshape(2, 1, 1, 3)
    first, last = train(network, losses, (signal,), (target,), "spelling", steps=120, lr=0.05)
    assert last < 0.2 * first
    read = network(signal).argmax(2)
    assert [spelled(path) for path in read.tolist()] == [tuple(text) for text in texts.tolist()]


# --- what is written -------------------------------------------------------------------------------------------------


def three_losses():
    """Two losses of the result, one behind a layer that only it needs, and one of their values shown."""
    return restorer(
        node("difference", "l1_loss", "result", "clean"),
        node("structure", "ssim_loss", "tail", "clean", weight=0.2, window=7),
        node("side", "convolution", "head", features=3, kernel="1x1"),
        node("sideways", "mse_loss", "side", "clean", weight=0.5),
        node("shown", "output", "sideways"),
    )


def test_sources_of_network_and_losses(registry):
    graph = three_losses()
    assert "side" not in generate_source(graph, registry, "Network")
    network, losses = generated(graph, registry)
    assert set(dict(network.named_children())) == {"head", "tail"}
    assert set(dict(losses.named_parameters())) == {"side.weight", "side.bias"}
    image = torch.rand(1, 3, 16, 16)
    result, read = network.forward_training(image)
    assert torch.equal(result, network(image))
    values = losses(*read, image)
    assert set(values) == {"difference", "structure", "sideways"}
    head, tail = torch.relu(network.head(image)), network(image)
    assert torch.allclose(values["sideways"], 0.5 * torch.nn.functional.mse_loss(losses.side(head), image))
    assert torch.allclose(values["difference"], torch.nn.functional.l1_loss(tail, image))


def test_a_loss_that_others_compute_with_counts_through_them(registry):
    graph = restorer(
        node("difference", "l1_loss", "tail", "clean"),
        node("scaled", "unary", "difference", function="sqrt"),
        node("again", "mse_loss", "tail", "image"),
    )
    made = losses_of(graph, registry)
    assert [str(s) for s in made.module.outputs] == ["again", "scaled"]
    assert [str(s) for s in made.targets] == ["clean"]
    assert {str(s) for s in made.taps} == {"tail", "image"}


def test_losses_apart_from_the_network(registry, tmp_path):
    graph = restorer(node("alone", "l1_loss", "clean", "clean"))
    with pytest.raises(DiagnosticError) as caught:
        export_project(graph, registry, tmp_path / "p", "Net")
    assert caught.value.diagnostics[0].code == "losses-apart"
    only = Graph([layer for layer in three_losses() if layer.type != "output"])
    with pytest.raises(DiagnosticError) as caught:
        export_project(only, registry, tmp_path / "p", "Net")
    assert caught.value.diagnostics[0].code == "only-training"
    assert not (tmp_path / "p").exists()


def test_losses_that_were_removed_are_the_default(registry, tmp_path):
    folder = tmp_path / "p"
    export_project(three_losses(), registry, folder, "Net")
    assert "structure" in (folder / "losses.py").read_text("utf-8")
    export_project(restorer(), registry, folder, "Net")
    assert "L1" in (folder / "losses.py").read_text("utf-8")
    assert "L1" in (folder / "README.md").read_text("utf-8")


# --- the scripts -----------------------------------------------------------------------------------------------------

TRAIN = ("train.py", "--synthetic", "2", "--batch", "2", "--patch", "16", "--threads", "1", "--json-progress")


def photograph(tmp_path):
    """A folder with one picture: a ramp."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    ramp = np.arange(40, dtype=np.uint8)[None, :, None] * 6
    Image.fromarray(np.tile(ramp, (40, 1, 3))).save(folder / "ramp.png")
    return folder


def test_the_project_trains_with_its_losses(registry, tmp_path):
    graph = three_losses()
    folder = tmp_path / "p"
    export_project(graph, registry, folder, "Net")
    assert lint(folder) == ""
    readme = (folder / "README.md").read_text("utf-8")
    assert "- `structure`" in readme
    assert "- target `clean`: N x 3 x 16 x 16" in readme
    done = run_python(
        folder, *TRAIN, "--data", str(photograph(tmp_path)), "--steps", "4", "--validate-every", "2", plots=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [event for line in done.stdout.splitlines() if isinstance(event := parse_line(line), Stepped)]
    assert set(steps[-1].losses) == {"difference", "sideways", "structure"}
    assert steps[-1].loss == pytest.approx(sum(steps[-1].losses.values()), rel=1e-5)
    saved = torch.load(folder / "runs" / "001" / "checkpoints" / "last.pt", weights_only=True)
    assert set(saved["losses"]) == {"side.weight", "side.bias"}
    assert {p.name for p in (folder / "weights").iterdir()} == {
        f"{layer}_{tensor}.npy" for layer in ("head", "tail") for tensor in ("kernel", "bias")
    }
    assert (folder / "before_after.png").is_file()
    assert (folder / "curves.png").is_file()
    weights = load_weights(folder / "weights", required_weights(Inference(graph, registry)))
    session = Session(graph, registry, weights)
    picture = np.random.default_rng(0).random((1, 3, 16, 16), np.float32)
    session.set_input("image", picture, is_image=True)
    result = session.run()
    assert set(result.outputs) == {"result"}
    state = torch.load(folder / "weights.pt", weights_only=True)
    network, _ = generated(graph, registry)
    network.load_state_dict(state)
    assert np.allclose(result.outputs["result"], network(torch.from_numpy(picture)).detach().numpy(), atol=1e-5)


STOP = """
import sys, train
arguments = [*sys.argv[1:], "--steps", "4", "--validate-every", "2", "--output"]
assert train.main([*arguments, "whole"]) == 0
class Stop(train.Run):  # as if the power went after the first checkpoint
    def save(self, best):
        super().save(best)
        sys.exit(5)
Run, train.Run = train.Run, Stop
try:
    train.main([*arguments, "parts"])
except SystemExit:
    train.Run = Run
sys.exit(train.main(["--resume", "--threads", "1", "--run", "parts"]))
"""


def test_a_stopped_training_goes_on_exactly(registry, tmp_path):
    export_project(three_losses(), registry, tmp_path / "p", "Net")
    done = run_python(tmp_path / "p", "-c", STOP, *TRAIN[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    whole, parts = (
        torch.load(tmp_path / "p" / name / "checkpoints" / "last.pt", weights_only=True) for name in ("whole", "parts")
    )
    for part in ("network", "losses"):
        assert whole[part]
        assert all(torch.equal(whole[part][key], parts[part][key]) for key in whole[part])
    assert parts["step"] == 4


def with_sample(folder):
    """Put the README's example of `sample` into data.py."""
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("    def sample("))
    body = itertools.takewhile(lambda line: line.startswith("    "), lines[begin + 1 :])
    text = (folder / "data.py").read_text("utf-8")
    assert text.count(PLAIN) == 1
    (folder / "data.py").write_text(text.replace(PLAIN, "".join(f"{line[4:]}\n" for line in body)), "utf-8")


PLAIN = "    return (clean + noise,), clean\n"


def test_a_speller_is_trained_as_the_readme_says(registry, tmp_path):
    folder = tmp_path / "p"
    export_project(speller(), registry, folder, "Speller")
    with_sample(folder)
    assert lint(folder) == ""
    done = run_python(folder, *TRAIN, "--steps", "150", "--lr", "0.05", "--amp")
    assert done.returncode == 0, done.stdout + done.stderr
    reported = [event.losses for event in map(parse_line, done.stdout.splitlines()) if isinstance(event, Stepped)]
    assert reported[-1]["spelling"] < 0.5 * reported[0]["spelling"]
