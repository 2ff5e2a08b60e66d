"""Networks as people write them in torch, for imports: each with the size of its input."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv(inputs: int, outputs: int, kernel: int = 3, **options: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, padding=options.pop("padding", kernel // 2), **options)


class UNet(nn.Module):
    """Max pooling down, transposed convolutions or enlargement up, and skip connections."""

    def __init__(self, depth: int, transposed: bool) -> None:
        super().__init__()
        self.down = nn.ModuleList(conv(3 if d == 0 else 4, 4) for d in range(depth))
        up = nn.ConvTranspose2d(4, 4, 2, 2) if transposed else nn.Upsample(scale_factor=2, mode="nearest")
        self.up = nn.ModuleList(up for _ in range(depth))
        self.join = nn.ModuleList(conv(8, 4) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for layer in self.down:
            x = F.relu(layer(x))
            skips.append(x)
            x = F.max_pool2d(x, 2)
        for up, join, skip in zip(self.up, self.join, reversed(skips), strict=True):
            x = F.relu(join(torch.cat([up(x), skip], 1)))
        return x


class Residual(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.body(x)
        return result


class Fcn(nn.Module):
    """Coarse scores are enlarged by transposed convolutions and added to finer ones."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = conv(3, 4, stride=2), conv(4, 4, stride=2)
        self.score, self.up, self.final = (
            conv(4, 4, 1),
            nn.ConvTranspose2d(4, 4, 4, 2, 1),
            nn.ConvTranspose2d(4, 3, 4, 2, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        fine = F.relu(self.one(x))
        coarse = F.relu(self.two(fine))
        result: Tensor = self.final(self.up(coarse) + self.score(fine))
        return result + x


class Pyramid(nn.Module):
    """Averages at three scales, enlarged and concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = conv(9, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        for factor in (2, 4):
            small = F.avg_pool2d(x, factor)
            parts.append(F.interpolate(small, scale_factor=float(factor), mode="nearest"))
        result: Tensor = self.mix(torch.cat(parts, 1))
        return result


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(conv(3 + 4 * n, 4) for n in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return F.avg_pool2d(x, 2)


def torch_networks() -> dict[str, tuple[Callable[[], nn.Module], tuple[int, int]]]:
    """By name: how to make the module, and height and width of its input."""
    relu = nn.ReLU
    return {
        "srcnn": (lambda: nn.Sequential(conv(3, 4, 9, padding=0), relu(), conv(4, 3, 5, padding=0)), (40, 48)),
        "vdsr": (lambda: Residual(nn.Sequential(conv(3, 4), relu(), conv(4, 3))), (32, 32)),
        "edsr_x4": (lambda: nn.Sequential(conv(3, 4), Residual(conv(4, 4)), conv(4, 48), nn.PixelShuffle(4)), (24, 32)),
        "espcn_x3": (lambda: nn.Sequential(conv(3, 27, 5), nn.PixelShuffle(3)), (24, 24)),
        "unet_1": (lambda: UNet(1, True), (32, 32)),
        "unet_3": (lambda: UNet(3, True), (32, 64)),
        "unet_4_nearest": (lambda: UNet(4, False), (64, 64)),
        "fcn": (Fcn, (32, 32)),
        "pyramid": (Pyramid, (32, 24)),
        "dense": (Dense, (24, 24)),
        "autoencoder": (
            lambda: Residual(
                nn.Sequential(conv(3, 4, 4, stride=2, padding=1), relu(), nn.ConvTranspose2d(4, 3, 4, 2, 1))
            ),
            (32, 32),
        ),
        "patchgan": (
            lambda: nn.Sequential(
                *(
                    layer
                    for n in range(3)
                    for layer in (conv(3 if n == 0 else 4, 4, 4, stride=2, padding=1), nn.LeakyReLU(0.2))
                ),
                conv(4, 1, 4, padding=1),
            ),
            (64, 64),
        ),
        "style": (
            lambda: nn.Sequential(
                nn.ReflectionPad2d(4),
                conv(3, 4, 9, padding=0),
                nn.InstanceNorm2d(4),
                relu(),
                nn.Upsample(scale_factor=2, mode="nearest"),
                nn.ReflectionPad2d(1),
                conv(4, 3, padding=0),
            ),
            (32, 32),
        ),
        "mobile": (
            lambda: nn.Sequential(
                conv(3, 6, 1), conv(6, 6, groups=6, stride=2), nn.BatchNorm2d(6), relu(), conv(6, 6, 1), nn.ReLU6()
            ),
            (32, 32),
        ),
        "dilated": (
            lambda: nn.Sequential(conv(3, 4, 3, padding=2, dilation=2), conv(4, 3, 3, padding=0, dilation=4)),
            (32, 32),
        ),
        "resnet": (
            lambda: nn.Sequential(
                conv(3, 4, 7, stride=2),
                nn.MaxPool2d(3, 2, 1),
                Residual(conv(4, 4)),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(4, 10),
            ),
            (64, 64),
        ),
        "vgg": (
            lambda: nn.Sequential(
                conv(3, 4), relu(), nn.MaxPool2d(2), conv(4, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 8 * 6, 5)
            ),
            (32, 24),
        ),
        "ceil": (
            lambda: nn.Sequential(conv(3, 4), nn.MaxPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(2, 2, ceil_mode=True)),
            (32, 32),
        ),
        "output_padding": (
            lambda: Residual(nn.Sequential(conv(3, 4, stride=2), nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1))),
            (32, 32),
        ),
        "lp": (
            lambda: nn.Sequential(nn.ZeroPad2d((3, 0, 1, 2)), nn.AvgPool2d((5, 3), (3, 2)), conv(3, 3, 1)),
            (40, 40),
        ),
        "gated": (
            lambda: Residual(
                nn.Sequential(conv(3, 6), nn.GLU(1), conv(3, 3, 5, stride=3), nn.Upsample(scale_factor=3))
            ),
            (33, 33),
        ),
    }
