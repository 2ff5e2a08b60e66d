"""infer.py: padding, several inputs and outputs, what is written and printed, and its errors."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from project_scripts import scripts

torch = pytest.importorskip("torch")


class Doubling(torch.nn.Module):
    """Outputs of twice, once and half the size, and a vector; the weight scales all of them."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor([1.0]))
        self.sizes = []

    def forward(self, x, *others):
        self.sizes.append([tuple(tensor.shape) for tensor in (x, *others)])
        y = x * self.factor
        large = torch.nn.functional.interpolate(y, scale_factor=2)
        return {"same": y, "large": large, "half": y[..., ::2, ::2], "mean": y.mean((2, 3))}


def model(network=Doubling) -> ModuleType:
    made = ModuleType("model")
    made.NetworkClass = network
    return made


@pytest.fixture
def infer(tmp_path):
    with scripts(tmp_path, stubs={"model": model()}) as get:
        yield get("infer")


def photo(path, height=6, width=9, value=None, channels=3):
    array = np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)
    array = array if value is None else np.full_like(array, value)
    Image.fromarray(array[..., 0] if channels == 1 else array).save(path)
    return array


@pytest.mark.parametrize(("height", "width"), [(6, 9), (8, 12), (5, 4), (1, 1)])
def test_images_are_padded_to_the_multiple_and_outputs_cropped_in_proportion(infer, height, width):
    image = torch.rand(1, 3, height, width)
    network = Doubling()
    found = infer.run(network, [image])
    tall, wide = -(-height // 4) * 4, -(-width // 4) * 4
    assert network.sizes == [[(1, 3, tall, wide)]]
    shapes = {name: tuple(output.shape[2:]) for name, output in found.items()}
    half = -(-height // 2), -(-width // 2)
    assert shapes == {"same": (height, width), "large": (2 * height, 2 * width), "half": half, "mean": ()}
    torch.testing.assert_close(found["same"], image)
    torch.testing.assert_close(found["half"], image[..., ::2, ::2])
    padded = np.pad(image.numpy(), ((0, 0), (0, 0), (0, tall - height), (0, wide - width)), mode="edge")
    np.testing.assert_allclose(found["mean"], padded.mean((2, 3)), atol=1e-6)


def test_each_input_has_its_own_image_and_scale(tmp_path):
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    arrays = [photo(paths[0]), photo(paths[1], channels=1)]
    with scripts(tmp_path, stubs={"model": model()}, inputs=((3, 8, 8), (1, 8, 8))) as get:
        infer = get("infer")
        images = infer.load_inputs(paths)
        for image, array in zip(images, arrays, strict=True):
            np.testing.assert_allclose(image[0], array.transpose(2, 0, 1) / 255, atol=1e-6)
        infer.PROJECT["inputs"][1].update(scale=2.0, shift=-1.0)
        seen = []
        infer.run(lambda *tensors: seen.extend(tensors) or tensors[0], images)
        torch.testing.assert_close(seen[1][..., :6, :9], images[1] * 2 - 1)
        torch.testing.assert_close(seen[0][..., :6, :9], images[0])
        with pytest.raises(infer.DataError, match=r"takes 2 images \(image, image1\), not 1"):
            infer.load_inputs(paths[:1])
        photo(paths[1], height=7, channels=1)
        with pytest.raises(infer.DataError, match="the images have different sizes"):
            infer.load_inputs(paths)


def test_a_classifier_takes_images_of_its_size_and_prints_the_best_three(tmp_path):
    photo(tmp_path / "a.png", 20, 10, value=100)
    with scripts(tmp_path, "classification", classes=5, stubs={"model": model()}) as get:
        infer = get("infer")
        (image,) = infer.load_inputs([tmp_path / "a.png"])
        assert image.shape == (1, 3, 8, 8)
        scores = torch.tensor([[0.1, 2.0, -1.0, 0.5, 0.25]])
        said = infer.write_output(scores, tmp_path / "out.png")
        assert said == "class 1 (2.000), class 3 (0.500), class 4 (0.250)"
        assert infer.write_output(scores[:, :2], tmp_path / "out.png") == "class 1 (2.000), class 0 (0.100)"
    assert not (tmp_path / "out.png").exists()


def test_a_segmenter_writes_the_numbers_of_the_classes(tmp_path):
    scores = torch.zeros(1, 3, 4, 5)
    scores[0, 2, :2] = scores[0, 1, 2] = 1.0
    with scripts(tmp_path, "segmentation", stubs={"model": model()}) as get:
        assert get("infer").write_output(scores, tmp_path / "mask.png") == str(tmp_path / "mask.png")
    with Image.open(tmp_path / "mask.png") as image:
        assert np.asarray(image)[:, 0].tolist() == [2, 2, 1, 0]


def weights(path, factor=1.0):
    torch.save({"factor": torch.tensor([factor])}, path)
    return str(path)


def test_every_output_is_written_under_a_name_of_its_own(infer, tmp_path, capsys):
    array = photo(tmp_path / "a.png", value=100)
    saved = weights(tmp_path / "w.pt", 0.5)
    assert infer.main([str(tmp_path / "a.png"), "--output", str(tmp_path / "r.png"), "--weights", saved]) == 0
    said = capsys.readouterr().out.splitlines()
    paths = [tmp_path / f"r{number}.png" for number in ("", "_2", "_3")]
    assert said[:3] == [f"{name}: {path}" for name, path in zip(("same", "large", "half"), paths, strict=True)]
    assert said[3].startswith("mean: class ")
    assert said[3].count("(0.196)") == 3
    assert len(said) == 4
    with Image.open(paths[0]) as image:
        np.testing.assert_array_equal(np.asarray(image), array // 2)
    with Image.open(paths[1]) as image:
        assert image.size == (18, 12)


def test_noise_is_added_before_and_its_psnr_printed(infer, tmp_path, capsys):
    photo(tmp_path / "a.png", 64, 64, value=128)
    options = [str(tmp_path / "a.png"), "--output", str(tmp_path / "r.png"), "--weights", weights(tmp_path / "w.pt")]
    results = []
    for more in (["--noise", "25"], ["--noise", "25"], ["--noise", "25", "--seed", "1"], []):
        assert infer.main([*options, *more]) == 0
        said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PSNR")]
        with Image.open(tmp_path / "r.png") as image:
            results.append((said, np.asarray(image).astype(int)))
    (line,) = results[0][0]
    before, after = (float(word) for word in line.split() if word[0].isdigit())
    assert before == pytest.approx(20.2, abs=0.2)  # 20 log10(255 / 25)
    assert after == before  # the network changes nothing
    assert results[0][1].std() == pytest.approx(25, abs=1)
    assert (results[1][1] == results[0][1]).all()
    assert (results[2][1] != results[0][1]).any()
    assert results[3][0] == []
    assert (results[3][1] == 128).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": "missing.png"}, "missing.png"),
        ({"--weights": "nothing.pt"}, "run train.py first, or use --weights FILE"),
        ({"--output": "r.xyz"}, "use .png"),
        ({"--device": "nonsense"}, "device"),
        ({"--weights": "other.pt"}, "factor"),
    ],
)
def test_errors_end_in_a_sentence(infer, tmp_path, capsys, change, message):
    photo(tmp_path / "a.png")
    torch.save({"other": torch.zeros(1)}, tmp_path / "other.pt")
    given = {"image": "a.png", "--output": "r.png", "--weights": "w.pt", "--device": "cpu", **change}
    weights(tmp_path / "w.pt")
    line = [str(tmp_path / given.pop("image"))]
    for option, value in given.items():
        line += [option, value if option == "--device" else str(tmp_path / value)]
    assert infer.main(line) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
