"""The PyTorch reference, chatterbox-tts, stage by stage, for comparisons.

`jobs` runs in an environment that has torch and chatterbox-tts (environment.sh makes one) and
imports nothing of Nightingale; `client` asks it from an environment that has neither.
"""
