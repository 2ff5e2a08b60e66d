"""Networks with rules about input sizes: as people write them, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


class Net:
    """Collects layers; each method call adds one that reads the previous one, or `read`."""

    def __init__(self, dims: str = "64x64x3") -> None:
        self.layers = [Layer("in", "input", params={"dims": dims})]

    @property
    def last(self) -> str:
        return self.layers[-1].name

    def add(self, type_name: str, /, *read: str, **params: object) -> str:
        name = f"{type_name}_{len(self.layers)}"
        inputs = tuple(Source.parse(text) for text in read or (self.last,))
        texts = {key: str(value) for key, value in params.items()}
        self.layers.append(Layer(name, type_name, inputs=inputs, params=texts))
        return name

    def conv(self, *read: str, features: int = 8, kernel: int = 3, stride: int = 1, **params: object) -> str:
        return self.add(
            "convolution", *read, features=features, kernel=f"{kernel}x{kernel}", stride=f"{stride}x{stride}", **params
        )

    def pool(self, *read: str, size: int = 2, stride: int = 0, **params: object) -> str:
        step = stride or size
        return self.add("pooling", *read, size=f"{size}x{size}", stride=f"{step}x{step}", **params)

    def made(self, *read: str) -> Graph:
        self.add("output", *read)
        return Graph(self.layers)


def unet(depth: int, *, padding: str = "same", up: str = "upsample", dims: str = "64x64x3") -> Graph:
    net = Net(dims)
    skips = []
    for _ in range(depth):
        skips.append(net.conv(padding=padding))
        net.pool()
    net.conv(padding=padding)
    for skip in reversed(skips):
        if up == "upsample":
            made = net.add("upsample", factor="2x2")
        else:
            made = net.add("transposed_convolution", features=8, kernel="2x2", stride="2x2", padding="valid")
        if padding == "valid":
            skip = net.add("crop", skip, made)
        net.add("concatenation", made, skip)
        net.conv(padding=padding)
    return net.made()


def shuffled(block: int, padding: str) -> Graph:
    net = Net("64x64x3")
    net.add("space_to_depth", block_size=block)
    net.conv(features=4 * block * block, padding=padding)
    net.add("depth_to_space", block_size=block)
    return net.made()


def classifier(*, flatten: bool) -> Graph:
    net = Net("32x32x3")
    net.conv(stride=2)
    net.pool(size=3, stride=2)
    net.conv(padding="valid")
    if not flatten:
        net.add("global_pooling")
    net.add("flatten")
    net.add("fully_connected", features=10)
    return net.made()


def encoder_decoder(extra: int) -> Graph:
    """Strided convolutions and back with transposed ones, added to the input."""
    net = Net("63x63x3" if extra == 0 else "64x64x3")
    net.conv(stride=2, padding="tuple", padding_tuple="1x1")
    net.add(
        "transposed_convolution",
        **{"features": 3, "kernel": "3x3", "stride": "2x2", "padding": "tuple", "padding_tuple": "1x1"},
        output_padding=f"{extra}x{extra}",
    )
    net.add("element_wise", "in", net.last)
    return net.made()


def windows(size: int) -> Graph:
    """Attention-like windows: blocks are moved to channels, mixed by 1 x 1 convolutions, and moved back."""
    net = Net("64x48x4")
    net.add("space_to_depth", block_size=size)
    net.conv(features=4 * size * size, kernel=1)
    net.add("depth_to_space", block_size=size)
    net.add("element_wise", "in", net.last)
    return net.made()


def pyramid() -> Graph:
    """Three scales of the input, brought back to one size."""
    net = Net("64x64x3")
    half = net.pool("in")
    quarter = net.pool(half)
    net.conv(quarter)
    small = net.add("upsample", factor="4x4")
    net.conv(half)
    middle = net.add("upsample", factor="2x2")
    net.add("concatenation", "in", middle, small)
    return net.made()


def patches() -> Graph:
    """A vision transformer's stem: patches become a sequence of learned positions."""
    net = Net("56x56x3")
    net.conv(features=16, kernel=14, stride=14, padding="valid")
    net.add("flatten", start_axis=2)
    net.add("permute", axes="0,2,1")
    net.add("layer_normalization", axis=-1)
    net.add("positional_encoding", kind="learned", max_length=16)
    return net.made()


def two_inputs() -> Graph:
    net = Net("40x40x3")
    net.layers.append(Layer("other", "input", params={"dims": "40x40x3"}))
    one = net.pool("in", size=4)
    two = net.pool("other", size=4)
    net.add("element_wise", one, two)
    return net.made()


def ceil_mode() -> Graph:
    net = Net("64x64x3")
    net.pool("in", size=3, stride=2, ceil_mode="true")
    small = net.pool(size=2, ceil_mode="true")
    net.add("upsample", small, factor="4x4")
    net.add("concatenation", "in", net.last)
    return net.made()


def normalised() -> Graph:
    """Instance normalization has no value for single pixels."""
    net = Net("32x32x3")
    net.pool(size=2)
    net.add("instance_normalization")
    net.conv()
    return net.made()


def dilated() -> Graph:
    net = Net("64x64x3")
    net.conv(kernel=5, padding="valid", dilation="3x2")
    net.add("slice", axis=2, start=3, end=-4, step=3)
    net.add("padding", mode="reflect", left=5, right=5, top=2, bottom=2)
    return net.made()


def resized() -> Graph:
    net = Net("64x64x3")
    net.pool(size=3)
    net.add("resize", size="16x16")
    net.conv(features=3)
    net.add("padding", mode="circular", left=8, right=8, top=16, bottom=16)
    return net.made()


def reshaped() -> Graph:
    """A reshape with fixed rows: the product of height and width counts."""
    net = Net("16x16x4")
    net.add("reshape", shape="4,8,-1")
    return net.made()


def transposed() -> Graph:
    """The image is added to its transpose, so it must be square."""
    net = Net("24x24x3")
    net.add("permute", "in", axes="0,1,3,2")
    net.add("element_wise", "in", net.last)
    return net.made()


def random_network(seed: int) -> Graph:
    """A chain of size-changing layers with skip connections where sizes agree in the document."""
    random = Random(seed)
    net = Net(f"{random.choice((48, 64, 60))}x{random.choice((48, 64, 72))}x4")
    seen: list[tuple[str, str]] = []  # (layer, scale)
    scale = 0
    for _ in range(random.randint(4, 9)):
        kind = random.choice(
            ("conv", "conv", "valid", "stride", "pool", "ceil", "down", "up", "shuffle", "pad", "skip")
        )
        scale = _random_layer(net, random, kind, scale, seen)
        seen.append((net.last, str(scale)))
    return net.made()


def _random_layer(net: Net, random: Random, kind: str, scale: int, seen: list[tuple[str, str]]) -> int:
    if kind == "skip":
        options = [name for name, other in seen if other == str(scale)]
        if options:
            net.add("concatenation", net.last, random.choice(options))
        return scale
    if kind in ("stride", "pool", "ceil", "down") and scale >= 3:
        kind = "up"
    if kind in ("up", "shuffle") and scale <= 0:
        kind = "conv"
    match kind:
        case "conv":
            net.conv(kernel=random.choice((1, 3, 5)))
        case "valid":
            net.conv(kernel=random.choice((2, 3)), padding="valid")
            return 100 + random.randint(0, 10_000)
        case "stride":
            net.conv(stride=2, kernel=random.choice((2, 3)), padding=random.choice(("same", "valid")))
        case "pool":
            net.pool(size=2, operation=random.choice(("max", "average")))
        case "ceil":
            net.pool(size=random.choice((2, 3)), stride=2, ceil_mode="true")
        case "down":
            net.add("space_to_depth", block_size=2)
            net.conv(kernel=1)
        case "up":
            if random.random() < 0.5:
                net.add("upsample", factor="2x2")
            else:
                net.add("transposed_convolution", features=8, kernel="2x2", stride="2x2", padding="valid")
        case "shuffle":
            net.conv(features=16, kernel=1)
            net.add("depth_to_space", block_size=2)
        case "pad":
            net.add("padding", mode=random.choice(("reflect", "replicate")), left=3, right=2, top=4, bottom=1)
            return 100 + random.randint(0, 10_000)
    return scale + {"stride": 1, "pool": 1, "ceil": 1, "down": 1, "up": -1, "shuffle": -1}.get(kind, 0)


def networks() -> Iterator[tuple[str, Graph]]:
    """All of them by name."""
    yield from ((f"unet_{depth}", unet(depth)) for depth in (1, 2, 3, 4))
    yield "unet_transposed", unet(3, up="transposed")
    yield "unet_valid", unet(2, padding="valid", dims="92x92x3")
    yield "unet_odd_document", unet(2, dims="50x54x3")
    yield "shuffle_2", shuffled(2, "same")
    yield "shuffle_4_valid", shuffled(4, "valid")
    yield "classifier_flatten", classifier(flatten=True)
    yield "classifier_global", classifier(flatten=False)
    yield "encoder_decoder_odd", encoder_decoder(0)
    yield "encoder_decoder_even", encoder_decoder(1)
    yield "windows_8", windows(8)
    yield "pyramid", pyramid()
    yield "patches", patches()
    yield "two_inputs", two_inputs()
    yield "ceil_mode", ceil_mode()
    yield "normalised", normalised()
    yield "dilated", dilated()
    yield "resized", resized()
    yield "reshaped", reshaped()
    yield "transposed", transposed()
    yield from ((f"random_{seed}", random_network(seed)) for seed in range(12))
