"""The fused batch normalisation against Keras's own layer: the same numbers from one operation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleout import layers

pytestmark = pytest.mark.timeout(300)  # of which TensorFlow takes half a minute on a busy machine

SHAPE = (8, 6, 5, 4)


def _images(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (3 * rng.standard_normal(shape) + rng.standard_normal(shape[-1])).astype(np.float32)


def _pair(shape: tuple[int, ...] = SHAPE, **how: Any) -> tuple[Any, Any]:
    """Keras's layer and ours, with the same weights, none of which is 0 or 1."""
    import keras

    pair = keras.layers.BatchNormalization(**how), layers.fused_batch_norm()(**how)
    for layer in pair:
        layer.build(shape)
    rng = np.random.default_rng(1)
    weights = [0.5 + rng.random(w.shape).astype(np.float32) for w in pair[0].weights]
    for layer in pair:
        layer.set_weights(weights)
    return pair


def _network() -> Any:
    import keras

    keras.utils.set_random_seed(0)
    at = keras.layers
    parts = [at.Conv2D(6, 3), at.BatchNormalization(epsilon=1e-5), at.ReLU(), at.Conv2D(5, 2)]
    parts += [at.BatchNormalization(center=False), at.ReLU(), at.Flatten(), at.Dense(3)]
    return keras.Sequential([at.Input(SHAPE[1:]), *parts])


def _loss_and_gradients(model: Any, steps: int = 3) -> tuple[float, list[np.ndarray]]:
    import keras
    import tensorflow as tf

    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(0.05)
    for step in range(steps):
        with tf.GradientTape() as tape:
            loss = entropy(np.arange(8) % 3, model(_images(step), training=True))
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)
    return float(loss), [g.numpy() for g in gradients]


def _operations(layer: Any, training: bool) -> set[str]:
    import tensorflow as tf

    spec = tf.TensorSpec((None, *SHAPE[1:]), layer.compute_dtype)
    graph = tf.function(lambda x: layer(x, training=training)).get_concrete_function(spec).graph
    return {operation.type for operation in graph.get_operations()}


def test_a_network_has_the_same_loss_gradients_and_statistics() -> None:
    plain = _network()
    fused = layers.fuse(plain)
    (loss, gradients), (ours, mine) = _loss_and_gradients(plain), _loss_and_gradients(fused)
    assert ours == pytest.approx(loss, rel=1e-4)
    for wanted, found in zip(gradients, mine, strict=True):
        assert np.abs(found - wanted).max() <= 1e-4 * max(1.0, np.abs(wanted).max())
    for wanted, found in zip(
        plain.non_trainable_variables, fused.non_trainable_variables, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        fused(_images(9), training=False), plain(_images(9), training=False), rtol=1e-3, atol=1e-4
    )
    kinds = [type(layer).__name__ for layer in fused.layers]
    assert kinds.count("FusedBatchNormalization") == 2 and "BatchNormalization" not in kinds


def test_the_variance_that_is_kept_is_that_of_keras() -> None:
    """TensorFlow's operation divides by n - 1, which shows where n is small."""
    plain, fused = _pair((2, 1, 2, 4), momentum=0.5)
    x = _images(shape=(2, 1, 2, 4))
    np.testing.assert_allclose(
        fused(x, training=True), plain(x, training=True), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(fused.moving_variance, plain.moving_variance, rtol=1e-5)
    np.testing.assert_allclose(fused.moving_mean, plain.moving_mean, rtol=1e-5)
    one = _images(shape=(1, 1, 1, 4))
    np.testing.assert_allclose(fused(one, training=True), plain(one, training=True), atol=1e-5)
    np.testing.assert_allclose(fused.moving_variance, plain.moving_variance, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("how", [{}, {"center": False}, {"scale": False}, {"axis": 3}])
def test_one_operation_does_it(how: dict[str, Any], training: bool) -> None:
    plain, fused = _pair(**how)
    x = _images()
    np.testing.assert_allclose(
        fused(x, training=training), plain(x, training=training), rtol=1e-4, atol=1e-5
    )
    ran = _operations(fused, training)
    assert "FusedBatchNormV3" in ran and not {"Mean", "SquaredDifference", "Rsqrt"} & ran
    assert "FusedBatchNormV3" not in _operations(plain, training), "or this test tells nothing"


def test_in_bf16_it_is_right_within_the_rounding_of_bf16() -> None:
    import tensorflow as tf

    exact, _ = _pair()
    _, fused = _pair(dtype="mixed_bfloat16")
    x = tf.cast(_images(), tf.bfloat16)  # what both begin with
    with tf.GradientTape(persistent=True) as tape:
        wide = tf.cast(x, tf.float32)
        tape.watch([x, wide])
        y, wanted = fused(x, training=True), exact(wide, training=True)
        ours, theirs = tf.reduce_sum(tf.cast(y, tf.float32) ** 3), tf.reduce_sum(wanted**3)
    assert y.dtype == tf.bfloat16 and fused.gamma.dtype == "float32"
    gap = np.abs(tf.cast(y, tf.float32).numpy() - wanted.numpy())
    assert np.all(gap <= 2.0**-8 * np.abs(wanted.numpy()) + 1e-3)
    assert gap.max() > 0, "it is not bf16 at all"
    np.testing.assert_allclose(fused.moving_variance, exact.moving_variance, rtol=1e-3)
    found = tf.cast(tape.gradient(ours, fused.gamma.value), tf.float32).numpy()
    right = tape.gradient(theirs, exact.gamma.value).numpy()
    assert np.abs(found - right).max() <= 2.0**-6 * np.abs(right).max()


def test_it_is_saved_and_read_again(tmp_path: Path) -> None:
    import keras

    model = layers.fuse(_network())
    _loss_and_gradients(model)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert [type(layer) for layer in again.layers] == [type(layer) for layer in model.layers]
    np.testing.assert_array_equal(
        again(_images(), training=False), model(_images(), training=False)
    )
