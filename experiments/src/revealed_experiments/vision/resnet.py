"""ResNet-18 (He, Zhang, Ren and Sun, 2016), in plain torch.

Names and shapes of all parameters are those of torchvision, so its checkpoints load; the numbers
are the same too (tests compare the two where torchvision is installed).

Letters: B pictures, C color channels, (H, W) pixels.
"""

from __future__ import annotations

from torch import Tensor, nn

from .heads import ScoreLinear


class BasicBlock(nn.Module):
    """relu(x + two 3 x 3 convolutions of x), with x shrunk by a 1 x 1 one where shapes differ."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            shrink = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(shrink, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        kept = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + kept)


class ResNet18(nn.Module):
    """(B, C, H, W) -> (B, outputs)."""

    def __init__(self, outputs: int = 1000, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _layer(64, 64, 1)
        self.layer2 = _layer(64, 128, 2)
        self.layer3 = _layer(128, 256, 2)
        self.layer4 = _layer(256, 512, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = ScoreLinear(512, outputs)
        initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


class ResNet18Start(nn.Module):
    """(B, C, H, W) -> (B, 64, H / 4, W / 4): ResNet-18 up to the end of its first layer.

    The truncated network used on maps since blackbox differentiation: at 8 pixels a cell it leaves
    2 x 2 values for each, and each sees about five cells across. Its parameters have the names
    that they have in the whole network.
    """

    width = 64

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _layer(64, 64, 1)
        initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer1(self.maxpool(self.relu(self.bn1(self.conv1(x)))))


def initialize(module: nn.Module) -> None:
    """Convolutions from a normal distribution that keeps the size of gradients through ReLUs."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


def _layer(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(before, after, stride), BasicBlock(after, after, 1))
