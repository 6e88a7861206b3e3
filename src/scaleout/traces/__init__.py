"""Read what other programs wrote of their work: oneDNN, TensorFlow, Horovod."""
