"""The networks of the models in PyTorch, with the tensor names of the official checkpoints."""
