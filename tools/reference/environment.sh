#!/bin/sh
# Makes the virtual environment of the PyTorch reference in DIR, or completes the one there:
#     tools/reference/environment.sh DIR
# Then: export NIGHTINGALE_REFERENCE_PYTHON=DIR/bin/python
# pip's own settings (PIP_INDEX_URL and the like) choose where packages come from; the CPU build
# of torch is enough.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
[ -x "$1/bin/python" ] || "${PYTHON:-python3}" -m venv "$1"
python="$1/bin/python"

"$python" -m pip install torch==2.13.0
"$python" -m pip install --no-deps chatterbox-tts==0.1.7 s3tokenizer torchaudio==2.11.0 \
    resemble-perth conformer
"$python" -m pip install librosa "transformers>=5,<6" diffusers einops omegaconf pyloudnorm \
    pykakasi safetensors onnx

# torchaudio's libraries want CUDA; what the reference uses of it is pure Python.
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
rm -f "$site"/torchaudio/lib/*.so

"$python" -c 'import chatterbox.mtl_tts'
