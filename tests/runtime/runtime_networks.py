"""A small U-Net twice: as a graph of ours and as plain torch written by hand, with the same weights."""

from __future__ import annotations

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source

RELU = ActivationSpec("relu", {"alpha": "0.0"})
LEAKY = ActivationSpec("relu", {"alpha": "0.1"})


def layer(name, type_, inputs="", activation=None, **params):
    sources = tuple(Source.parse(s) if s else None for s in inputs.split(",")) if inputs else ()
    return Layer(name, type_, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=activation)


def chain(*layers, size="32x24x3") -> Graph:
    """Layers (name, type, parameters) one after the other, between the input `image` and the output `result`."""
    made = [layer("image", "input", dims=size)]
    for name, type_, params in layers:
        made.append(layer(name, type_, made[-1].name, **params))
    return Graph([*made, layer("result", "output", made[-1].name)])


def unet_layers(features=8, size="32x24x3", tiling=0, before="image", **image):
    f = features
    return [
        layer("image", "input", dims=size, tiling=tiling, **image),
        layer("enc 1", "convolution", before, RELU, features=f, kernel="3x3"),
        layer("pool", "pooling", "enc 1", operation="max", size="2x2", stride="2x2"),
        layer("enc_2", "convolution", "pool", LEAKY, features=2 * f, kernel="5x5"),
        layer("norm", "batch_normalization", "enc_2"),
        layer("drop", "dropout", "norm", probability="0.2"),
        layer("down", "convolution", "drop", None, features=2 * f, kernel="3x3", stride="2x2"),
        layer("up_2", "upsample", "down", factor="2x2", method="nearest"),
        layer("plus", "element_wise", "up_2,drop", RELU, operation="add"),
        layer("up_1", "upsample", "plus", factor="2x2", method="nearest"),
        layer("cat", "concatenation", "up_1,enc 1", axis="1"),
        layer("dec", "convolution", "cat", RELU, features=f, kernel="3x3"),
        layer("out", "convolution", "dec", None, features=3, kernel="1x1"),
    ]


def unet(**kw) -> Graph:
    return Graph([*unet_layers(**kw), layer("result", "output", "out")], name="small unet")


def analysed(**kw) -> Graph:
    """The U-Net behind noise, its result mixed with the noisy picture."""
    layers = unet_layers(before="noise", **kw)
    return Graph(
        [
            *layers,
            layer("noise", "noise", "image", kind="gaussian", scale="0.1", seed="3"),
            layer("mix", "mix", "out,noise", selection="v_split", amount="0.5"),
            layer("result", "output", "mix"),
        ],
        name="analysed unet",
    )


def unet_weights(features=8, seed=0, note="") -> Weights:
    rng = np.random.default_rng(seed)
    f = features
    shapes = {
        ("enc 1", "kernel"): (f, 3, 3, 3),
        ("enc 1", "bias"): (f,),
        ("enc_2", "kernel"): (2 * f, f, 5, 5),
        ("enc_2", "bias"): (2 * f,),
        ("norm", "scale"): (2 * f,),
        ("norm", "bias"): (2 * f,),
        ("norm", "mean"): (2 * f,),
        ("norm", "variance"): (2 * f,),
        ("down", "kernel"): (2 * f, 2 * f, 3, 3),
        ("down", "bias"): (2 * f,),
        ("dec", "kernel"): (f, 3 * f, 3, 3),
        ("dec", "bias"): (f,),
        ("out", "kernel"): (3, f, 1, 1),
        ("out", "bias"): (3,),
    }
    tensors = {}
    for (name, tensor), shape in shapes.items():
        values = rng.normal(0, 0.15, shape)
        values = np.abs(values) + 0.5 if tensor in ("variance", "scale") else values
        tensors[WeightKey(name, tensor)] = values.astype(np.float32)
    return Weights(tensors, note=note)


def plain_unet(weights: Weights):
    """The same network as a function from an N x C x H x W array to one, in plain torch."""
    import torch
    import torch.nn.functional as F

    w = {tuple(key): torch.from_numpy(array) for key, array in weights.tensors.items()}

    def conv(x, name, **kw):
        return F.conv2d(x, w[name, "kernel"], w[name, "bias"], **kw)

    def run(array, capture=None):
        with torch.inference_mode():
            x = torch.from_numpy(np.array(array))
            a = F.relu(conv(x, "enc 1", padding=1))
            b = F.leaky_relu(conv(F.max_pool2d(a, 2), "enc_2", padding=2), 0.1)
            n = F.batch_norm(
                b, w["norm", "mean"], w["norm", "variance"], w["norm", "scale"], w["norm", "bias"], eps=1e-5
            )
            d = conv(n, "down", padding=1, stride=2)
            p = F.relu(F.interpolate(d, scale_factor=2, mode="nearest") + n)
            c = torch.cat([F.interpolate(p, scale_factor=2, mode="nearest"), a], 1)
            y = conv(F.relu(conv(c, "dec", padding=1)), "out")
        found = {"enc 1": a, "enc_2": b, "norm": n, "plus": p, "cat": c}
        return y.numpy() if capture is None else found[capture].numpy()

    return run


def pixels(height=24, width=32, batch=1, channels=3, seed=0):
    return np.random.default_rng(seed).random((batch, channels, height, width), np.float32)


def plain_torch_unet(weights: Weights):
    """The same network as a `torch.nn.Module` written by hand, for timing."""
    import torch
    from torch import nn

    def conv(name, **kw):
        kernel = torch.from_numpy(weights.tensors[WeightKey(name, "kernel")])
        made = nn.Conv2d(kernel.shape[1], kernel.shape[0], kernel.shape[2], **kw)
        made.weight.data = kernel.clone()
        made.bias.data = torch.from_numpy(weights.tensors[WeightKey(name, "bias")]).clone()
        return made

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc_1, self.enc_2 = conv("enc 1", padding=1), conv("enc_2", padding=2)
            self.down, self.dec, self.out = conv("down", padding=1, stride=2), conv("dec", padding=1), conv("out")
            norm = {t: torch.from_numpy(weights.tensors[WeightKey("norm", t)]).clone() for t in NORM}
            self.norm = nn.BatchNorm2d(len(norm["scale"]))
            self.norm.weight.data, self.norm.bias.data = norm["scale"], norm["bias"]
            self.norm.running_mean, self.norm.running_var = norm["mean"], norm["variance"]
            self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="nearest")
            self.relu, self.leaky = nn.ReLU(), nn.LeakyReLU(0.1)

        def forward(self, x):
            a = self.relu(self.enc_1(x))
            n = self.norm(self.leaky(self.enc_2(self.pool(a))))
            p = self.relu(self.up(self.down(n)) + n)
            return self.out(self.relu(self.dec(torch.cat([self.up(p), a], 1))))

    return Plain()


NORM = ("scale", "bias", "mean", "variance")
