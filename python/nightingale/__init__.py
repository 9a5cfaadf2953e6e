"""Nightingale: real-time, multilingual text-to-speech on your own machine."""

from ._core import Error
from .tts import TTS, load
from .voice import Voice

__all__ = ["TTS", "Error", "Voice", "load"]
