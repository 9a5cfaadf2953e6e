#!/bin/sh
# Makes the virtual environment of mlx-audio in DIR, or completes the one there, on Linux:
#     tools/reference/mlx_audio_environment.sh DIR
# Then: export NIGHTINGALE_MLX_AUDIO_PYTHON=DIR/bin/python
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
[ -x "$1/bin/python" ] || "${PYTHON:-python3}" -m venv "$1"
python="$1/bin/python"

# What its Chatterbox models and their converter import; playback needs more. The converter of Turbo
# is in a fork that has the same name to Python.
"$python" -m pip install --no-deps mlx-audio==0.6.2
"$python" -m pip install --no-deps --target "$1/plus" --upgrade mlx-audio-plus==0.1.8
"$python" -m pip install mlx==0.32.4 mlx-cpu==0.32.4 huggingface_hub jinja2 miniaudio numpy \
    safetensors scipy sentencepiece tokenizers tqdm transformers

"$python" -c 'import mlx_audio.tts.models.chatterbox.scripts.convert'
