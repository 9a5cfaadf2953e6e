"""Tensor names of the official checkpoints."""

from __future__ import annotations

from torch import Tensor, nn


class OfficialModule(nn.Module):
    """A module whose tensors have a prefix in official checkpoints."""

    prefix: str

    def official_tensors(self) -> dict[str, Tensor]:
        return {self.prefix + name: tensor for name, tensor in self.state_dict().items()}

    def load_official(self, tensors: dict[str, Tensor]) -> None:
        """Loads the tensors with this module's prefix as float32; others are ignored."""
        own = {
            name.removeprefix(self.prefix): tensor.float()
            for name, tensor in tensors.items()
            if name.startswith(self.prefix)
        }
        self.load_state_dict(self.convert(own))

    def convert(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adapts tensors of another variant, by name without prefix."""
        return tensors
