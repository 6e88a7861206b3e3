"""What other programs wrote of their work, read: oneDNN, TensorFlow, Horovod."""
