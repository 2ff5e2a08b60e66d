"""Small torch modules of the kinds that people bring: each returns a module and the shapes of its inputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

Shapes = tuple[tuple[int, ...], ...]


class BasicBlock(nn.Module):
    def __init__(self, channels: int, features: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, features, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(features)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(features, features, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != features:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, features, 1, stride, bias=False), nn.BatchNorm2d(features)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [16, 16, 32, 64, 128]
        self.layers = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(a, b, 1 if i == 0 else 2), BasicBlock(b, b))
                for i, (a, b) in enumerate(itertools.pairwise(sizes))
            )
        )
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = self._block(3, 8), self._block(8, 16), self._block(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.merge2, self.merge1 = self._block(32, 16), self._block(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def _block(channels: int, features: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(channels, features, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(features, features, 3, padding=1, padding_mode="reflect"),
            nn.GroupNorm(4, features),
            nn.SiLU(),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        one = self.down1(image)
        two = self.down2(functional.max_pool2d(one, 2))
        three = self.middle(functional.avg_pool2d(two, 2))
        two = self.merge2(torch.cat([self.up2(three), two], 1))
        one = self.merge1(torch.cat([self.up1(two), one], 1))
        return torch.sigmoid(self.head(one))


class InvertedResidual(nn.Module):
    def __init__(self, channels: int, features: int, stride: int) -> None:
        super().__init__()
        hidden = channels * 4
        self.same = stride == 1 and channels == features
        self.body = nn.Sequential(
            nn.Conv2d(channels, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, features, 1, bias=False),
            nn.BatchNorm2d(features),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.same else self.body(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1),
            nn.Hardswish(),
            InvertedResidual(8, 8, 1),
            InvertedResidual(8, 12, 2),
            InvertedResidual(12, 12, 1),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(12, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean([2, 3]))


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, dim))


class EncoderBlock(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, 4)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 32))
        self.pos_embed = nn.Parameter(torch.randn(1, 17, 32))
        self.blocks = nn.ModuleList(EncoderBlock(32) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim: int = 12) -> None:
        super().__init__()
        self.dwconv, self.norm = nn.Conv2d(dim, dim, 7, padding=3, groups=dim), nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.rand(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class Classifier(nn.Module):
    """An LSTM over words."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(12, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        out, _ = self.lstm(self.embedding(tokens))
        return self.fc(out[:, -1])


class DiffusionBlock(nn.Module):
    """A residual block with a time embedding, self-attention and upsampling."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, dim), nn.Conv2d(dim, dim, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm2, self.conv2 = nn.GroupNorm(4, dim), nn.Conv2d(dim, dim, 3, padding=1)
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.dim = dim

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        half = self.dim // 2
        frequencies = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        angles = t * frequencies
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        h = self.conv1(functional.silu(self.norm1(x))) + embedding[:, :, None, None]
        h = self.conv2(functional.silu(self.norm2(h))) + x
        batch, channels, height, width = h.shape
        tokens = h.reshape(batch, channels, height * width).transpose(1, 2)
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        h = h + attended.transpose(1, 2).reshape(batch, channels, height, width)
        return functional.interpolate(h, scale_factor=2, mode="nearest")


class Shared(nn.Module):
    """One convolution that is applied three times."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x + self.relu(self.conv(x))
        return x


MODELS: dict[str, tuple[Callable[[], nn.Module], Shapes]] = {
    "resnet": (ResNet, ((1, 3, 64, 64),)),
    "unet": (UNet, ((1, 3, 32, 32),)),
    "mobilenet": (MobileNet, ((1, 3, 32, 32),)),
    "vit": (VisionTransformer, ((1, 3, 32, 32),)),
    "convnext": (ConvNeXtBlock, ((1, 12, 16, 16),)),
    "lstm": (Classifier, ((1, 7),)),
    "diffusion": (DiffusionBlock, ((1, 16, 8, 8), (1, 1))),
    "shared": (Shared, ((1, 4, 16, 16),)),
}
TOKENS = ("lstm",)  # models whose inputs are int64


def build(name: str, seed: int = 0) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A model with random weights and running statistics, and example inputs."""
    make, shapes = MODELS[name]
    torch.manual_seed(seed)
    module = make().eval()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -0.5, 0.5)  # type: ignore[arg-type]
            nn.init.uniform_(part.running_var, 0.5, 2.0)  # type: ignore[arg-type]
    if name in TOKENS:
        return module, tuple(torch.zeros(shape, dtype=torch.int64) for shape in shapes)
    return module, tuple(torch.rand(shape) for shape in shapes)
