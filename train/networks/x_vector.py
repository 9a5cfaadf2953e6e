"""CAMPPlus in PyTorch: the x-vector of a speaker for the flow."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 80
X_VECTOR = 192
HEAD_CHANNELS = 32
DENSE_BLOCKS = ((12, 1), (24, 2), (16, 2))  # layers, dilation
BOTTLENECK = 4  # times the growth
SEGMENT = 100  # frames that share a mask
MIN_VARIANCE = 1e-12


@dataclass(frozen=True)
class XVectorSize:
    growth: int  # channels that a dense layer adds
    channels: int  # before the dense blocks


X_VECTOR_SIZES = {
    "small": XVectorSize(growth=8, channels=64),
    "tiny": XVectorSize(growth=4, channels=16),
}


class NormRelu(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.batchnorm = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.batchnorm(x))


class ResidualBlock(nn.Module):
    """Two convolutions with a shortcut. stride: over frequency"""

    def __init__(self, stride: int) -> None:
        super().__init__()
        channels = HEAD_CHANNELS
        self.conv1 = nn.Conv2d(channels, channels, 3, (stride, 1), 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut.append(nn.Conv2d(channels, channels, 1, (stride, 1), bias=False))
            self.shortcut.append(nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.shortcut(x))


class Head(nn.Module):
    """Convolutions over frequency and time that reduce the bands to an eighth."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, HEAD_CHANNELS, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(HEAD_CHANNELS)
        self.layer1 = nn.Sequential(ResidualBlock(2), ResidualBlock(1))
        self.layer2 = nn.Sequential(ResidualBlock(2), ResidualBlock(1))
        self.conv2 = nn.Conv2d(HEAD_CHANNELS, HEAD_CHANNELS, 3, (2, 1), 1, bias=False)
        self.bn2 = nn.BatchNorm2d(HEAD_CHANNELS)

    def forward(self, fbank: Tensor) -> Tensor:
        """[B, frames, 80] → [B, 320, frames]"""
        x = fbank.transpose(1, 2)[:, None]
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        return functional.relu(self.bn2(self.conv2(x))).flatten(1, 2)


class MaskedConv(nn.Module):
    """A convolution whose channels are masked by the local and the global context."""

    def __init__(self, inputs: int, growth: int, dilation: int) -> None:
        super().__init__()
        self.linear_local = nn.Conv1d(
            inputs, growth, 3, padding=dilation, dilation=dilation, bias=False
        )
        self.linear1 = nn.Conv1d(inputs, inputs // 2, 1)
        self.linear2 = nn.Conv1d(inputs // 2, growth, 1)

    def forward(self, x: Tensor) -> Tensor:
        segments = functional.avg_pool1d(x, SEGMENT, SEGMENT, ceil_mode=True)
        context = functional.relu(self.linear1(segments + x.mean(-1, keepdim=True)))
        masks = self.linear2(context).sigmoid()
        mask = masks.repeat_interleave(SEGMENT, -1)[..., : x.shape[-1]]
        return self.linear_local(x) * mask


class DenseLayer(nn.Module):
    def __init__(self, inputs: int, growth: int, dilation: int) -> None:
        super().__init__()
        inner = BOTTLENECK * growth
        self.nonlinear1 = NormRelu(inputs)
        self.linear1 = nn.Conv1d(inputs, inner, 1, bias=False)
        self.nonlinear2 = NormRelu(inner)
        self.cam_layer = MaskedConv(inner, growth, dilation)

    def forward(self, x: Tensor) -> Tensor:
        return self.cam_layer(self.nonlinear2(self.linear1(self.nonlinear1(x))))


class DenseBlock(nn.ModuleDict):
    """Each layer sees the features of all before it. x: [B, C, T]"""

    def __init__(self, layers: int, inputs: int, growth: int, dilation: int) -> None:
        super().__init__(
            {
                f"tdnnd{i + 1}": DenseLayer(inputs + i * growth, growth, dilation)
                for i in range(layers)
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.values():
            x = torch.cat([x, layer(x)], 1)
        return x


class Transit(nn.Module):
    """Halves the channels after a block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.nonlinear = NormRelu(channels)
        self.linear = nn.Conv1d(channels, channels // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.nonlinear(x))


class Entry(nn.Module):
    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(inputs, channels, 5, 2, 2, bias=False)
        self.nonlinear = NormRelu(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.nonlinear(self.linear(x))


class Statistics(nn.Module):
    """Mean and deviation of each channel in time: [B, C, T] → [B, 2C, 1]"""

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x.float(), -1, keepdim=True)
        # The square root has no finite gradient at 0, the variance of a constant channel.
        return torch.cat([mean, variance.clamp_min(MIN_VARIANCE).sqrt()], 1)


class Exit(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.linear = nn.Conv1d(inputs, X_VECTOR, 1, bias=False)
        self.nonlinear = nn.Sequential(
            OrderedDict(batchnorm=nn.BatchNorm1d(X_VECTOR, affine=False))
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.nonlinear(self.linear(x))[..., 0]


class XVector(nn.Module):
    def __init__(self, size: XVectorSize) -> None:
        super().__init__()
        self.head = Head()
        channels = size.channels
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        stages["tdnn"] = Entry(HEAD_CHANNELS * BANDS // 8, channels)
        for i, (layers, dilation) in enumerate(DENSE_BLOCKS, 1):
            stages[f"block{i}"] = DenseBlock(layers, channels, size.growth, dilation)
            channels += layers * size.growth
            stages[f"transit{i}"] = Transit(channels)
            channels //= 2
        stages["out_nonlinear"] = NormRelu(channels)
        stages["stats"] = Statistics()
        stages["dense"] = Exit(2 * channels)
        self.xvector = nn.Sequential(stages)

    def forward(self, fbank: Tensor) -> Tensor:
        """fbank: [B, frames, 80], with zero mean in each band → [B, 192]"""
        return self.xvector(self.head(fbank))
