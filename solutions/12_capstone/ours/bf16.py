"""oneDNN computes in bfloat16, as in 08."""


def network(channels) -> keras.Model:
    """The network that is trained; unet.py builds it."""
    tf.config.optimizer.set_experimental_options(
        {"auto_mixed_precision_onednn_bfloat16": True}
    )
    return layers.fuse(unet.build(channels))
