"""Which images training reads: files of folders, what is held out, pairs, patches, and the pool of synthetic images."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from project_scripts import scripts

torch = pytest.importorskip("torch")


def gray(path, value=0, size=(6, 4)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, value).save(path)
    return path


def fill(folder, count, pattern="{:03}.png", **more):
    return [gray(folder / pattern.format(number), number, **more) for number in range(count)]


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["bmp", "jpeg", "jpg", "png", "ppm", "tif", "tiff", "webp"])
@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_images_of_every_ending_are_found_in_any_case(tmp_path, ending, change):
    found = [tmp_path / f"{name}.{change(ending)}" for name in ("a", "sub/b", "sub/deeper/c")]
    for path in (*found, tmp_path / "notes.txt", tmp_path / "d.gif", tmp_path / ending):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / f"folder.{ending}").mkdir()
    with scripts(tmp_path) as get:
        assert get("images").find_images(tmp_path) == sorted(found)
        assert get("images").find_images(str(tmp_path)) == sorted(found)
        with pytest.raises(get("images").DataError, match="use --validation with a folder"):
            get("images").find_images(found[0], "--validation")
        with pytest.raises(get("images").DataError, match="use --data with a folder"):
            get("images").find_images(tmp_path / "missing")


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_an_image_is_saved_with_its_values_clipped_and_rounded(tmp_path, channels):
    image = torch.linspace(-0.5, 1.5, 5 * 7 * channels).reshape(channels, 5, 7)
    expected = np.floor(np.clip(image.numpy(), 0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)
    with scripts(tmp_path) as get:
        get("images").save_image(image, tmp_path / "result.PNG")
        found = get("images").load_image(tmp_path / "result.PNG", channels)
    np.testing.assert_array_equal(found, expected)
    assert not list(tmp_path.glob("*.part"))


def test_outputs_that_are_not_images_are_not_saved(tmp_path):
    with scripts(tmp_path) as get:
        images = get("images")
        with pytest.raises(images.DataError, match="2 channels"):
            images.save_image(torch.zeros(2, 4, 4), tmp_path / "a.png")
        with pytest.raises(images.DataError, match=r"use \.png"):
            images.save_image(torch.zeros(3, 4, 4), tmp_path / "a.xyz")
    assert not list(tmp_path.glob("a.*"))


def test_decoded_images_are_kept_up_to_a_size_and_the_oldest_are_dropped(tmp_path, monkeypatch):
    paths = fill(tmp_path / "images", 4)
    with scripts(tmp_path) as get:
        images = get("images")
        monkeypatch.setattr(images, "KEPT_BYTES", 3 * 6 * 4)
        decoded = []
        load = images.load_image
        monkeypatch.setattr(
            images, "load_image", lambda path, channels: decoded.append(path.stem) or load(path, channels)
        )
        files = images.ImageFiles(paths, 1)
        for number in (0, 1, 2, 0, 3, 0, 2, 1):
            found, array = files.load(number)
            assert (found, array.shape, array[0, 0, 0]) == (number, (4, 6, 1), number)
        assert decoded == ["000", "001", "002", "003", "001"]
        monkeypatch.setattr(images, "KEPT_BYTES", 1)
        small = images.ImageFiles(paths, 1)
        assert [small.load(number)[0] for number in (0, 0, 1, 0)] == [0, 0, 1, 0]  # the last one is always kept
        assert decoded[5:] == ["000", "001", "000"]


def test_a_broken_image_is_replaced_by_the_next_and_the_last_by_the_first(tmp_path):
    paths = fill(tmp_path / "images", 4)
    with scripts(tmp_path) as get:
        images = get("images")
        files = images.ImageFiles(paths, 1)
        for number in (1, 3):
            data = paths[number].read_bytes()
            paths[number].write_bytes(data[: len(data) // 2])
        assert [files.load(number)[0] for number in range(4)] == [0, 2, 2, 0]
        assert files.broken_names() == [str(paths[1]), str(paths[3])]
        assert (len(files), files.area()) == (4, 4 * 24)
        paths[0].write_bytes(b"")
        again = images.ImageFiles(paths[1::-1], 1)
        assert images.ImageFiles(paths[:3], 1).sizes == [(0, 0), (0, 0), (4, 6)]
        with pytest.raises(images.DataError, match="none of the 2 images can be read"):
            again.load(1)


# --- what is held out ------------------------------------------------------------------------------------------------

HELD_OUT = {1: [], 9: [], 10: [0], 11: [0], 19: [0], 20: [0, 10], 21: [0, 10], 30: [0, 10, 20]}


def opened(get, task, folder, count, validation=0):
    """The numbers of the images for training and of those for validation."""
    settings = {"synthetic": 0, "patch": 4, "workers": 0}
    for name, number in (("data", count), ("validation", validation)):
        if task == "classification":
            for label in range(3):
                (folder / name / str(label)).mkdir(parents=True)
            fill(folder / name, number, "1/{:03}.png")
        elif task == "restoration":
            for side in ("inputs", "targets") if number else ():
                fill(folder / name / side, number, size=(8, 8))
        elif number:
            fill(folder / name, number)
        if number:
            settings[name] = str(folder / name)
    if task == "restoration":
        settings |= {side: str(folder / "data" / side) for side in ("inputs", "targets")} | {"data": ""}
    known = get("config").Config.__dataclass_fields__
    config = get("config").Config(**{name: value for name, value in settings.items() if name in known})
    if task == "classification":
        samples, shown, on_training = get("data").open_data(config, folder / "cache")
        validated = [int(float(value) * 255 + 0.5) for _, images, _ in shown for value in images[:, 0, 0, 0]]
        return [int(path.stem) for path in samples.photos.paths], [] if on_training else validated
    if task == "restoration":
        pairs, held_out = get("pairs").open_pairs(config, 3, 3)
        found = (pairs, held_out) if held_out is not None else (pairs,)
        assert [one.inputs.paths for one in found] != [one.targets.paths for one in found]
        names = [[int(path.stem) for path in one.inputs.paths] for one in found]
        assert names == [[int(path.stem) for path in one.targets.paths] for one in found]
        assert all("inputs" in str(path) for one in found for path in one.inputs.paths)
        assert all("targets" in str(path) for one in found for path in one.targets.paths)
        return names[0], names[1] if held_out is not None else []
    photos, _, held_out = get("mixture").open_mixture(config, folder / "cache")
    return [int(path.stem) for path in photos.paths], [int(path.stem) for path in held_out]


@pytest.mark.parametrize("task", ["denoising", "classification", "restoration"])
@pytest.mark.parametrize("count", HELD_OUT)
def test_every_tenth_image_is_held_out_where_there_are_ten_for_each(tmp_path, task, count):
    with scripts(tmp_path, task) as get:
        training, validation = opened(get, task, tmp_path / "images", count)
    assert validation == HELD_OUT[count]
    assert training == [number for number in range(count) if number not in HELD_OUT[count]]


@pytest.mark.parametrize("task", ["denoising", "classification", "restoration"])
def test_a_folder_for_validation_leaves_all_images_for_training(tmp_path, task):
    with scripts(tmp_path, task) as get:
        training, validation = opened(get, task, tmp_path / "images", 12, validation=3)
    assert (training, validation) == (list(range(12)), [0, 1, 2])


# --- pairs -----------------------------------------------------------------------------------------------------------


def pair_files(get, folder, count=3, size=(6, 4)):
    images = get("images")
    sides = [fill(folder / side, count, size=size) for side in ("inputs", "targets")]
    return [images.ImageFiles(paths, 1) for paths in sides], sides


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_with_a_broken_half_is_replaced_as_a_whole(tmp_path, side):
    with scripts(tmp_path) as get:
        files, paths = pair_files(get, tmp_path)
        pairs = get("pairs").PairFiles(*files)
        data = paths[side][1].read_bytes()
        paths[side][1].write_bytes(data[: len(data) // 2])
        for number, expected in ((0, 0), (1, 2), (2, 2), (1, 2)):
            image, target = pairs.load(number)
            assert (image[0, 0, 0], target[0, 0, 0]) == (expected, expected)
        assert [name for name, *_ in pairs.whole(9, 99, 1)] == ["000", "002"]
        samples = get("pairs").PairSamples(get("config").Config(patch=4), pairs, torch.from_numpy)
        assert len(samples.broken_names()) == 1
        assert samples.counts() == (3, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_whose_half_is_broken_from_the_start_is_left_out(tmp_path, side):
    with scripts(tmp_path) as get:
        _, paths = pair_files(get, tmp_path)
        paths[side][0].write_bytes(b"no image")
        files = [get("images").ImageFiles(one, 1) for one in paths]
        pairs = get("pairs").PairFiles(*files)
        assert [pairs.load(number)[0][0, 0, 0] for number in range(3)] == [1, 1, 2]


def test_pairs_of_different_sizes_are_refused_with_both_sizes(tmp_path):
    with scripts(tmp_path) as get:
        files, paths = pair_files(get, tmp_path)
        gray(paths[1][2], size=(4, 6))
        files[1] = get("images").ImageFiles(paths[1], 1)
        with pytest.raises(
            get("images").DataError, match=r"targets/002\.png has 4 x 6 pixels, but .*inputs/002\.png has 6 x 4"
        ):
            get("pairs").PairFiles(*files)


@pytest.mark.parametrize(
    ("count", "longest", "multiple", "shape"), [(2, 99, 1, (9, 13)), (1, 10, 4, (8, 8)), (3, 99, 4, (8, 12)), (9, 12, 5, (5, 10))]
)  # fmt: skip
def test_whole_pairs_are_cropped_to_the_longest_side_and_a_multiple(tmp_path, count, longest, multiple, shape):
    with scripts(tmp_path) as get:
        files, _ = pair_files(get, tmp_path, size=(13, 9))
        found = list(get("pairs").PairFiles(*files).whole(count, longest, multiple))
        assert [name for name, *_ in found] == ["000", "001", "002"][:count]
        for number, (_, image, target) in enumerate(found):
            assert image.shape[:2] == target.shape[:2] == shape
            assert (image == number).all()
        with pytest.raises(get("images").DataError, match="is smaller than 10 x 10 pixels"):
            list(get("pairs").PairFiles(*files).whole(1, 99, 10))


def test_patches_of_a_pair_are_of_the_same_place_and_turned_alike(tmp_path):
    ramp = np.arange(12 * 9, dtype=np.uint8).reshape(9, 12)
    for side, array in (("inputs", ramp), ("targets", 255 - ramp)):
        (tmp_path / side).mkdir()
        Image.fromarray(array).save(tmp_path / side / "a.png")
    seen = set()
    with scripts(tmp_path) as get:
        files = [get("images").ImageFiles([tmp_path / side / "a.png"], 1) for side in ("inputs", "targets")]
        config = get("config").Config(patch=4, seed=3)
        samples = get("pairs").PairSamples(config, get("pairs").PairFiles(*files), lambda array: array.copy())
        for number in range(120):
            image, target = samples[number]
            values = (image[0] * 255).round().int().numpy()
            np.testing.assert_array_equal(values, 255 - target[:, :, 0].astype(int))
            seen.add((int(values[0, 1] - values[0, 0]), int(values[1, 0] - values[0, 0])))
            np.testing.assert_array_equal(samples[number][0], image)
    steps = {1, -1}, {12, -12}
    assert seen == {(a, b) for one, other in (steps, steps[::-1]) for a in one for b in other}  # all eight orientations


def test_pairs_are_those_of_the_same_path_and_the_first_without_a_partner_are_named(tmp_path):
    fill(tmp_path / "inputs", 3)
    fill(tmp_path / "targets", 3, "{:03}.bmp")
    with scripts(tmp_path) as get:
        pairs, error = get("pairs"), get("images").DataError
        sides = [str(tmp_path / side) for side in ("inputs", "targets")]
        assert [(a.name, b.name) for a, b in pairs.find_pairs(*sides)] == [
            (f"{n:03}.png", f"{n:03}.bmp") for n in range(3)
        ]
        for number in range(3, 10):
            gray(tmp_path / ("inputs" if number % 2 else "targets") / f"{number:03}.png")
        with pytest.raises(error, match=r"without a partner: 003, 004, 005, 006, 007$"):
            pairs.find_pairs(*sides)
        for empty in ("a", "b"):
            (tmp_path / empty).mkdir()
        with pytest.raises(error, match=r"there are no images$"):
            pairs.find_pairs(str(tmp_path / "a"), str(tmp_path / "b"))
        for given in ((sides[0], ""), ("", sides[1])):
            with pytest.raises(error, match="use --inputs FOLDER and --targets FOLDER"):
                pairs.find_pairs(*given)


# --- patches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(9, 14), (5, 14), (14, 5), (4, 4)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_patches_have_their_size_and_small_images_are_mirrored(tmp_path, size, channels):
    image = np.random.default_rng(0).integers(0, 256, (*size, channels), np.uint8)
    with scripts(tmp_path) as get:
        images = get("images")
        rng = np.random.default_rng(1)
        for _ in range(12):
            assert images.scaled_cut(rng, image, 6).shape == (6, 6, channels)
        wide = np.concatenate([image, image[::-1]]) if size[0] < 6 else image
        wide = np.concatenate([wide, wide[:, ::-1]], 1) if size[1] < 6 else wide
        places = [wide[y : y + 6, x : x + 6] for y in range(wide.shape[0] - 5) for x in range(wide.shape[1] - 5)]
        for _ in range(12):
            patch = images.cut(rng, image, 6)
            assert any(np.array_equal(patch, place) for place in places)


def test_some_patches_are_cut_larger_and_averaged(tmp_path):
    """Of a checkerboard, patches of twice the side are even."""
    board = (np.indices((24, 24)).sum(0) % 2 * 200).astype(np.uint8)[:, :, None]
    with scripts(tmp_path) as get:
        rng = np.random.default_rng(0)
        found = [get("images").scaled_cut(rng, board, 6) for _ in range(200)]
    even, plain = (sum(set(np.unique(patch)) == values for patch in found) for values in ({100}, {0, 200}))
    assert 30 <= even <= 70  # a quarter
    assert 75 <= plain <= 125  # a half


@pytest.mark.parametrize(("processes", "batch"), [(1, 5), (2, 6), (3, 6)])
def test_processes_share_each_batch(tmp_path, processes, batch):
    with scripts(tmp_path) as get:
        parts = [get("images").Steps(3, 7, batch, rank, processes) for rank in range(processes)]
    assert [len(part) for part in parts] == [4] * processes
    for step, lists in enumerate(zip(*parts, strict=True), 3):
        assert [number for part in lists for number in part] == list(range(step * batch, (step + 1) * batch))


# --- the mixture of photos and synthetic images ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("photos", "synthetic", "made"),
    [(3, -1, 13), (15, -1, 1), (17, -1, 0), (3, 5, 5), (3, 0, 0), (0, 4, 4), (20, 2, 2)],
)
@pytest.mark.parametrize(("workers", "reading"), [(0, 6), (2, 54), (-1, 102)])
def test_synthetic_images_fill_up_few_photos(tmp_path, photos, synthetic, made, workers, reading):
    paths = fill(tmp_path / "images", photos)
    settings = {"data": str(tmp_path / "images") if photos else "", "synthetic": synthetic, "patch": 4, "batch": 6}
    with scripts(tmp_path) as get:
        config = get("config").Config(**settings, workers=workers, seed=9, refresh=7)
        files, pool, held_out = get("mixture").open_mixture(config, tmp_path / "cache")
        mixture = get("mixture").Mixture(config, files, pool)
    held = photos // 10
    if synthetic < 0:
        made = max(0, 16 - (photos - held))
    assert (mixture.counts(), len(held_out)) == ((photos - held, made), held)
    assert (pool.seed, pool.refresh, pool.reading, pool.channels) == (9, 7, reading, 3)
    assert set(pool.photos) == {str(path) for path in paths if path not in held_out}
    assert mixture.area() == (photos - held) * 24 + made * pool.side**2


def test_every_photo_and_synthetic_image_is_used_equally_often(tmp_path):
    with scripts(tmp_path) as get:
        mixture, config = get("mixture"), get("config").Config(patch=2)
        used = []

        def load(kind):
            return lambda number, *more: (
                used.append((kind, number, *more))
                or (np.zeros((4, 4, 1), np.uint8) if kind == "synthetic" else (number, np.zeros((4, 4, 1), np.uint8)))
            )

        class Pool(SimpleNamespace):
            def __len__(self):
                return self.count

        made = mixture.Mixture(config, Pool(count=2, load=load("photo")), Pool(count=3, load=load("synthetic")))
        for number in range(600):
            assert made.patch(np.random.default_rng((0, number)), number).shape == (2, 2, 1)
    kinds = [(kind, number) for kind, number, *_ in used]
    assert set(kinds) == {*(("photo", n) for n in range(2)), *(("synthetic", n) for n in range(3))}
    assert all(80 <= kinds.count(kind) <= 160 for kind in set(kinds))
    assert all(more == [] or more == [sample] for sample, (_, _, *more) in enumerate(used))


# --- the pool of synthetic images ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "refresh"), [(3, 4), (1, 1), (5, 2), (4, 0)])
def test_the_oldest_image_of_the_pool_is_replaced_after_every_few_samples(tmp_path, monkeypatch, count, refresh):
    with scripts(tmp_path) as get:
        pool = get("synthetic").SyntheticImages(count, 1, 8, 0, refresh, tmp_path, [])
    read = []
    monkeypatch.setattr(type(pool), "_read", lambda _, number: read.append(number) or number)
    expected, following = list(range(count)), count
    for sample in range(30):
        if refresh and sample and sample % refresh == 0:
            expected[expected.index(min(expected))] = following
            following += 1
        assert [pool.load(slot, sample) for slot in range(count)] == expected
    assert read == list(range(following))  # each one once


@pytest.mark.parametrize(("count", "refresh", "reading"), [(3, 4, 8), (2, 1, 0), (3, 0, 5)])
def test_images_are_asked_for_before_samples_need_them_and_removed_afterwards(
    tmp_path, monkeypatch, count, refresh, reading
):
    with scripts(tmp_path) as get:
        synthetic = get("synthetic")
        pool = synthetic.SyntheticImages(count, 1, 8, 0, refresh, tmp_path, ["p.png"], reading)
    stream, commands = io.BytesIO(), []
    maker = SimpleNamespace(stdin=stream, kill=lambda: None, communicate=lambda: None)
    monkeypatch.setattr(synthetic.subprocess, "Popen", lambda command, **_: commands.append(command) or maker)
    monkeypatch.setattr(type(pool), "_read", lambda _, number: number)
    alive = set()
    for sample in range(24):
        before = stream.tell()
        pool.prepare(sample)
        for number in map(int, stream.getvalue()[before:].split()):
            assert number not in alive
            alive.add(number)
            (pool.folder / f"{number}.png").touch()
        kept = {int(path.stem) for path in pool.folder.glob("*.png")}
        for ahead in range(sample, sample + reading + 1):
            assert {pool.load(slot, ahead) for slot in range(count)} <= kept
        assert len(kept) <= 2 * count + reading // max(refresh, 1) + synthetic.AHEAD + 1
        pool._kept.clear()
    assert sorted(alive) == list(range(len(alive)))
    assert commands[0][2:] == [str(pool.folder), str(pool.side), "1", "0", "p.png"]
    pool.close()
