# Written by tools/generate_stubs.py from csrc/bindings; do not edit.

"""Nightingale's C++ core."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


class Error(Exception):
    pass

def check_fork() -> None:
    """
    Raises an Error in a process that was forked from one with threads of the core.
    """

class TensorFile:
    @staticmethod
    def open(path: str) -> TensorFile: ...

    @staticmethod
    def open_strided(path: str, ranges: Sequence[tuple[str, int, int, int | None]], tensors: Sequence[tuple[str, str, str, int, Sequence[int], Sequence[int]]], scalars: Sequence[tuple[str, float]], quantized: bool = False) -> TensorFile:
        """
        A file whose format the caller has read. ranges: name, offset, bytes and CRC-32, if any, each; tensors: name, dtype, the range's name, offset, shape and strides in elements each.
        """

    def names(self) -> list[str]: ...

    def __contains__(self, name: str) -> bool: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def dtype(self, name: str) -> str: ...

    def bits(self, name: str) -> int:
        """Bits of a quantized tensor, 0 for other tensors."""

    def fewest_bits(self) -> int:
        """The fewest bits of any quantized tensor, 0 where none is."""

    def metadata(self, key: str) -> str | None: ...

    def scalar(self, name: str) -> float | None:
        """A plain number of a torch file; None where there is none."""

    def stored_bytes(self, name: str) -> numpy.ndarray:
        """The tensor's elements in its own type: uint8 [nbytes]."""

    def quantize(self, name: str, bits: int, transposed: bool = False) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """
        The tensor, its rows flattened, as the bytes of MLX's words (uint32), scales and biases (float16). Rows that are no whole groups of 64 follow each other in rows of one group.
        """

    def read(self, name: str) -> numpy.ndarray:
        """The tensor as a NumPy array, float32 or int32."""

def set_threads(count: int) -> None:
    """Sets the threads of the CPU backend, for the whole process."""

def threads() -> int:
    """Threads of the CPU backend."""

def idle_bytes() -> int:
    """Memory that CPU ops keep for the next ones."""

def system_allocations() -> int:
    """How often CPU ops have asked the system for memory."""

def release_memory() -> None:
    """Gives memory that nothing uses back to the system."""

def simd_name() -> str: ...

def bf16_name() -> str: ...

def blas_name() -> str: ...

def measure_read_bandwidth() -> float:
    """Bytes per second, measured now."""

def measure_best_bandwidth() -> float:
    """Bytes per second, measured now."""

def measure_gemm_flops() -> float:
    """Floating-point operations per second, measured now."""

def set_cache_limit(bytes: int) -> int:
    """How much freed memory MLX may keep; gives the limit before."""

def mlx_version() -> str: ...

def kernel_launches() -> int:
    """Launches of our GPU kernels in this process."""

def kernel_source_bytes() -> int:
    """
    Bytes of the kernel text in these launches, which MLX hashes each time.
    """

def first_kernel_launches() -> int:
    """
    Launches of GPU kernels that were the first of their kind: these compile.
    """

def launched_kernels() -> list[str]:
    """Names of the GPU kernels that have been launched."""

def gpu_available() -> bool: ...

def sound_tokens(tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[list[int], int]:
    """
    The tokens between start and stop that are sound, and how many were dropped.
    """

class MelSolver:
    def step(self) -> bool:
        """One step of the flow; False when none is left."""

    def mel(self) -> numpy.ndarray:
        """The new frames: [frames, mels]"""

class Flow:
    @staticmethod
    def load(file: TensorFile, options: object) -> tuple[Flow, list[str]]:
        """The model and the names of tensors it does not know."""

    def describe(self) -> dict[str, Any]: ...

    def solve(self, tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_mel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], speaker: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], options: object, *, finalize: bool, sentence: int = 0, first_frame: int = 0, temperature: float = 1.0, noise: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> MelSolver:
        """
        Begins to solve the mel of speech tokens in a voice; options: a resolved SpeechOptions.
        """

def t3_bits(name: str, bits: int) -> int:
    """The bits in which T3 keeps a tensor that is loaded with `bits`."""

def t3_transposed(name: str) -> bool:
    """Whether the floats of a T3 matrix are [inputs, outputs] in a file."""

class KvCache:
    @property
    def length(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

class Draft:
    """Proposes tokens in one voice: see T3.speak."""

    @staticmethod
    def ngram(prompt_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> Draft: ...

    @staticmethod
    def layers(model: T3, kept: Sequence[int] | None = None) -> Draft: ...

    @staticmethod
    def model(draft: T3, voice: KvCache) -> Draft: ...

def check_draft(model: T3, draft: T3) -> None:
    """Raises an Error where one T3 cannot propose tokens for the other."""

class T3:
    @staticmethod
    def load(file: TensorFile, options: object, settings_of: str | None = None) -> tuple[T3, list[str]]:
        """The model and the names of tensors it does not know."""

    def describe(self) -> dict[str, Any]: ...

    def keep_cache(self, bits: int, budget: float) -> None:
        """How KV caches are kept from now on; 0: as floats, and whole."""

    def conditioning(self, speaker: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, emotion: float) -> numpy.ndarray: ...

    def condition(self, speaker: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, emotion: float) -> KvCache:
        """The cache that every text in this voice begins with."""

    def logits(self, text_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], speech_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], voice: KvCache, chunk: int = 0) -> numpy.ndarray:
        """Teacher-forced logits: [rows, speech tokens, vocabulary]."""

    def text_positions(self, text_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], speech_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], voice: KvCache) -> list[int]:
        """Where in the text each of these tokens would be spoken."""

    def text_weights(self, text_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], speech_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], voice: KvCache, heads: Sequence[tuple[int, int]]) -> numpy.ndarray:
        """
        What each of these heads, in the order of their layers, gives to the text while each token is read: [heads, queries, framed text].
        """

    def speak(self, text_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], voice: KvCache, options: object, *, analyser: bool, sentence: int = 0, min_tokens: int = 0, draft: Draft | None = None, proposals: int | None = None, watched_heads: Sequence[tuple[int, int]] = []) -> SpeechTokens:
        """Begins to speak a text; options: a resolved SpeechOptions."""

class SpeechTokens:
    def next(self, ahead: Sequence[SpeechTokens] = []) -> int | None:
        """The next token; where it is computed, so are those of `ahead`."""

    def text_weights(self) -> numpy.ndarray:
        """
        What the watched heads, in the order of their layers, gave to the text when each token so far was chosen: [heads, tokens, framed text].
        """

    @property
    def cache_bytes(self) -> int:
        """Bytes of the positions that the KV cache holds."""

    @property
    def text_position(self) -> int: ...

    @property
    def stop_forced(self) -> int: ...

    @property
    def speculation(self) -> dict[str, int]: ...

class VocoderState:
    def copy(self) -> VocoderState: ...

class Vocoder:
    @staticmethod
    def load(file: TensorFile, options: object) -> tuple[Vocoder, list[str]]:
        """The model and the names of tensors it does not know."""

    @property
    def weight_bytes(self) -> int: ...

    def begin(self, *, seed: int, sentence: int = 0, phase: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, noise: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> VocoderState:
        """The state before the first frame. noise: [samples, 9]"""

    def feed(self, state: VocoderState, mel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], last: bool) -> numpy.ndarray:
        """The samples that are ready once these frames, [n, mels], are known."""

    def pitch(self, mel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> numpy.ndarray:
        """The pitch of a whole mel, [frames, mels], in Hz."""

class SpeechTokenizer:
    @staticmethod
    def load(s3gen: TensorFile) -> tuple[SpeechTokenizer, list[str]]:
        """The model and the names of its tensors that it does not know."""

    @property
    def weight_bytes(self) -> int: ...

    def log_mel(self, samples: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> numpy.ndarray:
        """
        What it hears of samples at 16 kHz, [n / 160, 128], 100 frames a second.
        """

    def tokens(self, log_mel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], loudest: float) -> numpy.ndarray:
        """
        The tokens of a part of a recording, 25 a second and 30 s at most. loudest: the greatest value in the log_mel of the whole.
        """

class VoiceBaker:
    @staticmethod
    def load(s3gen: TensorFile, voice_encoder: TensorFile, tokenizer: SpeechTokenizer | None = None) -> tuple[VoiceBaker, list[str]]:
        """The models and the names of tensors they do not know."""

    @property
    def weight_bytes(self) -> int: ...

    def bake(self, at_24k: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], at_16k: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_tokens: int) -> dict[str, numpy.ndarray]:
        """What the models make of a recording, by the names of a voice's fields."""

class NotFiniteError(Error):
    pass

class FlowVoice:
    """What a voice gives to the flow."""

    def __init__(self, prompt_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], prompt_mel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], speaker: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Model:
    """The networks of one checkpoint."""

    def __init__(self, t3: T3, flow: Flow, vocoder: Vocoder, *, lookahead: int, temperature: float, cache: int = 0) -> None:
        """cache: bytes for sentences that were spoken; 0: none are kept."""

    @property
    def t3_passes(self) -> int:
        """Passes of T3 for sessions so far."""

    @property
    def t3_steps(self) -> int:
        """Tokens and parts of prompts that they were for."""

    @property
    def cache(self) -> dict[str, int]:
        """
        What the cache of sentences holds, and how often it had what was asked for.
        """

class SentenceSound:
    """The sound of one sentence."""

    def __init__(self, model: Model, voice: FlowVoice, options: object, *, cuts: Sequence[int] | None = None, drop_last_token: bool = True) -> None:
        """cuts: token counts at which a chunk ends; None: as the options say."""

    def ready(self, tokens: int) -> bool:
        """Whether a chunk can be made of so many tokens, with more to come."""

    def begin(self, tokens: Sequence[int], last: bool) -> None:
        """Begins the next chunk of the sentence's tokens so far."""

    @property
    def busy(self) -> bool: ...

    def step(self) -> numpy.ndarray | None:
        """One step of the flow; after the last one, the chunk's samples."""

    def forget(self) -> None: ...

    @property
    def solved(self) -> int: ...

    @property
    def sent(self) -> int: ...

    @property
    def flow_seconds(self) -> float: ...

    @property
    def vocoder_seconds(self) -> float: ...

    @property
    def mel(self) -> numpy.ndarray: ...

def fade_in(samples: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> numpy.ndarray:
    """The samples of a sentence without what spills over from the prompt."""

class WordTimes:
    """The times of words, by the places of speech tokens."""

    def __init__(self, words: int, word_of: Sequence[int], speed: float = 1.0) -> None: ...

    def set_positions(self, positions: Sequence[int]) -> None: ...

    def take(self, until: float) -> list[tuple[int, float, float]]:
        """Number, start and end of the words that have ended by then."""

    def take_rest(self, end: float) -> list[tuple[int, float, float]]:
        """Those of the words left, when the sentence ends then."""

def monotonic_path(weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], to_end: bool) -> list[int]:
    """
    The text position of each query, never going back, that has most of the attention.
    """

class Manner:
    """A voice and the options to speak with."""

    def __init__(self, voice: KvCache, draft: Draft | None, flow_voice: FlowVoice, options: object, voice_digest: str = '') -> None:
        """voice_digest: of all that the voice is; empty: nothing is cached."""

class SpokenChunk:
    @property
    def segment(self) -> int: ...

    @property
    def offset(self) -> float: ...

    @property
    def text_tokens(self) -> int: ...

    @property
    def spoken(self) -> int:
        """Samples so far, its own included."""

    @property
    def samples(self) -> numpy.ndarray: ...

    @property
    def tokens(self) -> numpy.ndarray: ...

    @property
    def words(self) -> list[tuple[int, float, float]]:
        """Number, start and end of each, in seconds of the segment."""

    @property
    def seconds(self) -> dict[str, float]: ...

class EndedSegment:
    @property
    def segment(self) -> int: ...

    @property
    def silent(self) -> bool: ...

    @property
    def speculation(self) -> dict[str, int]: ...

class Session:
    """Says a text, segment by segment."""

    def __init__(self, model: Model, *, together: bool, analyser: bool, min_tokens: int, closing_tokens: Sequence[int], followed: Sequence[tuple[int, int]] | None) -> None: ...

    @property
    def wants_segment(self) -> bool: ...

    @property
    def done(self) -> bool: ...

    @property
    def speaking(self) -> int:
        """Segments, now."""

    def add(self, manner: Manner, text_tokens: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], words: int, word_of: Sequence[int], silence: int) -> None:
        """A further segment, and the samples of silence after it."""

    def add_silence(self, samples: int) -> None: ...

    def step(self) -> SpokenChunk | None:
        """
        A pass of T3, a step of the flow or a chunk's sound; gives a chunk when one is complete.
        """

    def take_ended(self) -> list[EndedSegment]: ...
