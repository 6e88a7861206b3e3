"""Batch norm as one operation, as in 01."""

from scaleout import layers


def network(channels) -> keras.Model:
    """The network that is trained; unet.py builds it."""
    return layers.fuse(unet.build(channels))
