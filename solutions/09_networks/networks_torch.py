"""The networks of this lab in PyTorch, as keras.applications has them.

There is nothing to fill in here. A convolution has a bias, or the batch
normalisation a scale, where Keras's has one, so that the weights are as many.
"""

import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel


class Unit(nn.Sequential):
    """A convolution, batch normalisation, and ReLU unless it is left out."""

    def __init__(self, inputs: int, outputs: int, size, stride: int = 1,
                 padding="same", bias: bool = False, relu: bool = True,
                 scale: bool = False) -> None:
        norm = nn.BatchNorm2d(outputs, eps=1e-3)
        norm.weight.requires_grad_(scale)
        if stride > 1 and padding == "same":
            padding = (size - 1) // 2
        parts = [nn.Conv2d(inputs, outputs, size, stride, padding, bias=bias),
                 norm]
        if relu:
            parts.append(nn.ReLU())
        super().__init__(*parts)


class Bottleneck(nn.Module):
    """Three convolutions of a ResNet, and the way around them."""

    def __init__(self, inputs: int, width: int, stride: int,
                 shortcut: bool) -> None:
        super().__init__()
        like = {"bias": True, "scale": True}
        self.main = nn.Sequential(
            Unit(inputs, width, 1, stride, **like),
            Unit(width, width, 3, **like),
            Unit(width, 4 * width, 1, relu=False, **like),
        )
        self.around = nn.Identity()
        if shortcut:
            self.around = Unit(inputs, 4 * width, 1, stride, relu=False,
                               **like)

    def forward(self, x):
        """(n, inputs, h, w) to (n, 4 * width, h / stride, w / stride)."""
        return F.relu(self.main(x) + self.around(x))


def resnet(blocks: list) -> nn.Sequential:
    """A ResNet of so many blocks in each of its four stages."""
    parts = [Unit(3, 64, 7, 2, bias=True, scale=True),
             nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2 ** stage
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            parts.append(Bottleneck(inputs, width, stride, block == 0))
            inputs = 4 * width
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    return nn.Sequential(*parts)


class Branches(nn.Module):
    """Several ways from one input, their channels put side by side."""

    def __init__(self, *ways) -> None:
        super().__init__()
        self.ways = nn.ModuleList(ways)

    def forward(self, x):
        """Every way takes the whole input."""
        return torch.cat([way(x) for way in self.ways], 1)


def chain(inputs: int, *units) -> nn.Sequential:
    """Units one behind the other: each (outputs, size)."""
    parts = []
    for outputs, size in units:
        parts.append(Unit(inputs, outputs, size))
        inputs = outputs
    return nn.Sequential(*parts)


def pooled(inputs: int, outputs: int) -> nn.Sequential:
    """Averages of 3 x 3 pixels, then a 1 x 1 convolution."""
    average = nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)
    return nn.Sequential(average, Unit(inputs, outputs, 1))


def halved(front: nn.Module, inputs: int, outputs: int) -> nn.Sequential:
    """Some units, and then a 3 x 3 convolution of half as many pixels."""
    return nn.Sequential(front, Unit(inputs, outputs, 3, 2, padding=0))


def inception_v3() -> nn.Sequential:
    """Inception-v3, without the second classifier of its authors."""
    parts = [Unit(3, 32, 3, 2, padding=0), Unit(32, 32, 3, padding=0),
             Unit(32, 64, 3), nn.MaxPool2d(3, 2),
             Unit(64, 80, 1, padding=0), Unit(80, 192, 3, padding=0),
             nn.MaxPool2d(3, 2)]
    inputs = 192
    for last in (32, 64, 64):
        parts.append(Branches(
            chain(inputs, (64, 1)),
            chain(inputs, (48, 1), (64, 5)),
            chain(inputs, (64, 1), (96, 3), (96, 3)),
            pooled(inputs, last)))
        inputs = 64 + 64 + 96 + last
    parts.append(Branches(
        Unit(inputs, 384, 3, 2, padding=0),
        halved(chain(inputs, (64, 1), (96, 3)), 96, 96),
        nn.MaxPool2d(3, 2)))
    inputs = 768
    for mid in (128, 160, 160, 192):
        row = (1, 7)
        column = (7, 1)
        parts.append(Branches(
            chain(inputs, (192, 1)),
            chain(inputs, (mid, 1), (mid, row), (192, column)),
            chain(inputs, (mid, 1), (mid, column), (mid, row), (mid, column),
                  (192, row)),
            pooled(inputs, 192)))
    parts.append(Branches(
        halved(chain(inputs, (192, 1)), 192, 320),
        halved(chain(inputs, (192, 1), (192, (1, 7)), (192, (7, 1))),
               192, 192),
        nn.MaxPool2d(3, 2)))
    inputs = 1280
    for _ in range(2):
        fork = Branches(Unit(384, 384, (1, 3)), Unit(384, 384, (3, 1)))
        second = Branches(Unit(384, 384, (1, 3)), Unit(384, 384, (3, 1)))
        parts.append(Branches(
            chain(inputs, (320, 1)),
            nn.Sequential(chain(inputs, (384, 1)), fork),
            nn.Sequential(chain(inputs, (448, 1), (384, 3)), second),
            pooled(inputs, 192)))
        inputs = 2048
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*parts)


def vgg16(side: int) -> nn.Sequential:
    """VGG-16: thirteen convolutions, and three large dense layers."""
    parts = []
    inputs = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            parts += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
            inputs = width
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *parts, nn.Flatten(),
        nn.Linear(512 * (side // 32) ** 2, 4096), nn.ReLU(),
        nn.Linear(4096, 4096), nn.ReLU(),
        nn.Linear(4096, 1000))


def cnn() -> nn.Sequential:
    """The small network of 05."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def make_model(network: str, side: int) -> nn.Module:
    """A fresh network for images (n, 3, side, side); the cnn's are 28 x 28."""
    depths = {"resnet50": [3, 4, 6, 3], "resnet101": [3, 4, 23, 3],
              "resnet152": [3, 8, 36, 3]}
    if network in depths:
        return resnet(depths[network])
    if network == "inception_v3":
        return inception_v3()
    if network == "vgg16":
        return vgg16(side)
    return cnn()


def flops_per_image(model: nn.Module, image: torch.Tensor) -> float:
    """Multiplications and additions of one training step, for one image."""
    forward = []

    def note(layer, inputs, output) -> None:
        # Each weight is used once for each pixel of the layer's output.
        forward.append(2.0 * layer.weight.numel() * output[0, 0].numel())

    hooks = [layer.register_forward_hook(note) for layer in model.modules()
             if isinstance(layer, nn.Conv2d | nn.Linear)]
    was = model.training
    with torch.no_grad():
        model.eval()(image)
    model.train(was)
    for hook in hooks:
        hook.remove()
    # Backward takes two products as large; the image needs no gradient.
    return sum(forward) + sum(forward) + sum(forward[1:])


class Trainer:
    """A network, and its training step in two forms."""

    def __init__(self, network: str, side: int, dtype: str, seed: int) -> None:
        torch.manual_seed(seed)
        self.bfloat16 = dtype == "bfloat16"
        model = make_model(network, side)
        first = next(m for m in model.modules() if isinstance(m, nn.Conv2d))
        pixels = 28 if network == "cnn" else side
        image = torch.zeros(1, first.in_channels, pixels, pixels)
        self.flops_per_image = flops_per_image(model, image)
        # The channels of a pixel side by side, as in TensorFlow.
        self.model = model.to(memory_format=torch.channels_last)
        weights = [w for w in model.parameters() if w.requires_grad]
        self.parameters = sum(w.numel() for w in weights)
        self.optimizer = torch.optim.SGD(weights, 0.01)

    def begin_together(self, ranks=None) -> None:
        """All ranks begin with the weights of rank 0. Which take part is in
        RANK and WORLD_SIZE; Horovod is given a communicator for that."""
        if isinstance(self.model, DistributedDataParallel):
            return
        if not dist.is_initialized():
            # Distributed: the ranks find each other
            dist.init_process_group("gloo")
        # Distributed: begins equal, and backward() averages the gradients
        # Distributed: batch norm's running averages stay each rank's own, as
        # with Horovod; else DDP would send them in the steps of `alone`, too
        self.model = DistributedDataParallel(self.model,
                                             broadcast_buffers=False)

    def end_together(self) -> None:
        """There is nothing to end: DDP has no thread that asks."""

    def leave(self) -> None:
        """Nobody leaves while another still waits for a message.

        This process ends here.
        """
        # Distributed: all have finished
        dist.barrier()
        # Without DDP around it: were DDP the last to hold the process group,
        # it would free it at its own end, and may then wait for ever.
        self.model = self.model.module
        # Distributed: the ranks part
        dist.destroy_process_group()
        # As in ddp.py: a thread of Gloo's could abort Python at its end. MPI
        # has to be ended first, by hand.
        from mpi4py import MPI

        MPI.Finalize()
        sys.stdout.flush()
        os._exit(0)

    def batch(self, images: np.ndarray, labels: np.ndarray) -> tuple:
        """NumPy's arrays, (n, side, side, channels), as PyTorch's."""
        # (n, channels, side, side), in memory as it was
        x = torch.from_numpy(images).permute(0, 3, 1, 2)
        return x, torch.from_numpy(labels)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """One step; the loss."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def alone(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """One step on this rank's own gradients; the loss."""
        if not isinstance(self.model, DistributedDataParallel):
            return self.step(x, y)
        # Distributed: nothing is sent in here
        with self.model.no_sync():
            return self.step(x, y)

    def together(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """One step on the average of all ranks' gradients; the loss."""
        return self.step(x, y)
