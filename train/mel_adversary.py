"""The adversarial loss of a distilled flow: a squared error alone blurs what tokens leave open."""

from __future__ import annotations

import torch
from torch import Tensor

from .flow_examples import FlowBatch
from .nan_guard import guarded_adamw
from .networks.mel_discriminator import MelDiscriminator
from .vocoder_losses import adversarial_loss, discriminator_loss, feature_loss

CHANNELS = 64
LEARNING_RATE = 2e-4
BETAS = (0.8, 0.99)
FEATURE_WEIGHT = 1.0  # of the discriminator's features beside its score
WARM_UP = 50  # steps in which only the discriminator learns
LARGEST_WEIGHT = 100.0


class MelAdversary:
    """A discriminator of mels that learns beside the flow."""

    def __init__(self, share: float, device: str, channels: int = CHANNELS) -> None:
        """share: of the gradient at the mel, relative to that of another loss"""
        self._share = share
        self.discriminator = MelDiscriminator(channels).to(device)
        self._parameters = list(self.discriminator.parameters())
        self._optimizer = guarded_adamw(self._parameters, device, BETAS)
        self._steps = 0

    def losses(
        self, mel: Tensor, expected: Tensor, batch: FlowBatch, beside: Tensor
    ) -> dict[str, Tensor]:
        """Trains the discriminator, then judges the mel with it.

        mel: of the flow, [B, T, 80]; expected: by its encoder; beside: the other loss of the mel
        """
        mask = batch.frame_mask
        # Equal where the prompt is, so that nothing is learned there.
        made = torch.where(batch.prompt_mask[..., None], batch.mel, mel)
        loss = self._train(made.detach(), expected, batch)
        self._steps += 1
        found = {"discriminator": loss}
        if self._steps <= WARM_UP:
            return found
        self.discriminator.requires_grad_(False)
        with torch.no_grad():
            of_true = self.discriminator(batch.mel, expected, mask)
        of_made = self.discriminator(made, expected, mask)
        features = feature_loss([of_true], [of_made])
        judged = adversarial_loss([of_made]) + FEATURE_WEIGHT * features
        return found | {"adversarial": self._weight(judged, beside, mel) * judged}

    def _train(self, made: Tensor, expected: Tensor, batch: FlowBatch) -> Tensor:
        """A step of the discriminator. → its loss, without gradient"""
        self.discriminator.requires_grad_(True)
        masks = batch.frame_mask.repeat(2, 1)
        output = self.discriminator(torch.cat((batch.mel, made)), expected.repeat(2, 1, 1), masks)
        true, false = output.split(len(made))
        loss = discriminator_loss([true], [false])
        self._optimizer.step(loss, LEARNING_RATE, self._parameters)
        return loss.detach()

    def _weight(self, loss: Tensor, beside: Tensor, mel: Tensor) -> Tensor:
        """The factor that makes the loss's gradient at the mel `share` times the other's."""
        own, other = (torch.autograd.grad(x, mel, retain_graph=True)[0] for x in (loss, beside))
        ratio = other.float().norm() / own.float().norm().clamp_min(1e-12)
        return (self._share * ratio).clamp_max(LARGEST_WEIGHT)
