"""Batches for T3 without end, made beside the training by processes of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from .t3_examples import Examples, T3Batch

WORKERS = 5  # where a GPU would wait for batches
AHEAD = 4  # batches of each that wait: a worker makes many at once, then none for a while


class BatchStream(IterableDataset):
    """Endless batches, each worker's drawn apart."""

    def __init__(self, examples: Examples, positions: int, seed: int) -> None:
        self._examples, self._positions, self._seed = examples, positions, seed

    def __iter__(self) -> Iterator[T3Batch]:
        worker = get_worker_info()
        number = worker.id if worker else 0
        return self._examples.batches(self._positions, (self._seed, number))


def batch_loader(
    examples: Examples, positions: int, seed: int, on_gpu: bool, workers: int | None = None
) -> DataLoader:
    """Of `Examples.batches`. workers: none without a GPU, unless said otherwise"""
    if workers is None:
        workers = WORKERS if on_gpu else 0
    return DataLoader(
        BatchStream(examples, positions, seed),
        None,
        num_workers=workers,
        prefetch_factor=AHEAD if workers else None,
        pin_memory=on_gpu,
        worker_init_fn=_outlive_termination,
    )


def _outlive_termination(worker: int) -> None:
    """The run ends its workers once it has taken its last step, whoever else is asked to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
