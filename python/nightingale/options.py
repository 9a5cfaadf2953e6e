"""Every option, declared once: type, default, range, help, and the interfaces that offer it.

The command line, the server's requests, manifests, Ray, the batch digest, the page and `validate`
read these declarations when they run. tools/generate_options.py writes the typed overrides, the C++
structs and the tables of the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .option import Control, Options, option, options_of, whole

if TYPE_CHECKING:
    from .text.lexicon import LexiconSource
    from .voice import Voice

# What None stands for in options that depend on the model or the voice.
MODELS_OWN, VOICES_OWN = "the model's own", "the voice's own"
BITS = (8, 4)
DTYPES = ("float32", "float16", "bfloat16")
DEVICES = ("auto", "cpu", "gpu")
PRESETS = ("chatterbox-0.1.7", "upstream")
LARGEST_SEED = 2**64 - 1
MOST_THREADS = 1024
# Interfaces of options that are not offered over HTTP.
LOCAL = ("cli", "manifest")
CHUNKS: dict[str, Any] = {"stage": "chunks", "interfaces": ("cli",)}
SPEEDS = (0.25, 4.0)  # slowest and fastest
MARKUPS = ("ssml", "markdown", "html")  # options of which one can be set
TEXT: dict[str, Any] = {"stage": "text", "core": False}  # how a text is written
MOST_SECONDS = 10**6  # 11 days; timers of the system overflow at some time beyond
SECONDS: dict[str, Any] = {
    "range": (0, MOST_SECONDS),
    "above": True,
    "expected": f"above 0 s and at most {MOST_SECONDS} s",
}


@dataclass(frozen=True, kw_only=True)
class LoadOptions(Options):
    """How a model is loaded; what is not set stays as the files have it."""

    INTERFACES = ("cli", "ray")

    variant: str | None = option(
        None,
        "which model of a folder or repository that holds several, such as turbo or v3",
        unset="the first that is there",
        changes_audio=False,
        core=False,
    )
    preset: str | None = option(
        None,
        "how multilingual models sample: chatterbox-0.1.7 has the alignment analyser and a "
        "repetition penalty of 2.0, upstream no analyser and 1.2",
        choices=PRESETS,
        unset="chatterbox-0.1.7 for v1 and v2, upstream for later models",
    )
    bits: int | None = option(
        None,
        "bits of T3's quantized weights; on the CPU S3Gen's are quantized to 8 bits as well",
        choices=BITS,
        unset="as in the files",
    )
    dtype: str | None = option(
        None,
        "type of the weights",
        choices=DTYPES,
        unset="as in the files; float16 for T3 with bits",
    )
    kv_bits: int | None = option(
        None,
        "bits of T3's quantized KV cache",
        choices=BITS,
        unset="8 with quantized weights, else the type of the weights",
    )
    kv_budget: float | None = option(
        None,
        "share of the speech that the KV cache keeps, on a CPU",
        range=(0, 1),
        above=True,
        unset="all of it",
    )
    draft: str | Path | None = option(
        None,
        "what proposes tokens for T3 to check several at a time, on a CPU, without changing any: "
        "ngram, layers, or the path of a smaller T3",
        expected="ngram, layers or a path",
        unset="no draft",
        changes_audio=False,
        core=False,
    )
    device: str = option(
        "auto",
        "where the model runs; auto takes a GPU where MLX has one",
        choices=DEVICES,
    )
    threads: int | None = option(
        None,
        "threads of the CPU backend, for the whole process",
        range=(1, MOST_THREADS),
        expected=f"a whole number from 1 to {MOST_THREADS}",
        unset="all cores",
        changes_audio=False,
    )
    cache: int | None = option(
        None,
        "bytes of memory for sentences that were spoken: they are played again where text, voice, "
        "seed and options are the same",
        range=(1, None),
        unset="nothing is kept",
        changes_audio=False,
        core=False,
    )
    offline: bool = option(
        False, "use only what was downloaded before", changes_audio=False, core=False
    )
    progress: bool | None = option(
        None,
        "whether downloads show progress bars",
        unset="where standard error is a terminal",
        interfaces=(),
        changes_audio=False,
        core=False,
    )


@dataclass(frozen=True, kw_only=True)
class SpeechOptions(Options):
    """How a text is spoken; what is not set is the model's own value, or the voice's."""

    INTERFACES = ("cli", "http", "manifest")

    voice: Voice | str | Path | None = option(
        None,
        "a voice of the model or of the voice folder, or the path of a voice file",
        unset=MODELS_OWN,
        by_name="a voice of the model or of the voice folder by its id or name, in any case; "
        "OpenAI's names are spread over the model's voices",
        model_checks=True,
        core=False,
    )
    language: str = option(
        "en",
        "code of the language, such as fr or fr-CA; auto: that of the text",
        max_length=20,
        model_checks=True,
    )
    lexicon: LexiconSource | Path | None = option(
        None,
        "a file with respellings of words; of several, later ones win over earlier ones",
        unset="no respellings",
        interfaces=LOCAL,
        several=True,
        model_checks=True,
        core=False,
    )
    ssml: bool = option(
        False, "the text is SSML, as is any that begins with a speak element", **TEXT
    )
    markdown: bool = option(
        False, "the text is Markdown, read without its marks; needs markdown-it-py", **TEXT
    )
    html: bool = option(False, "the text is HTML, read as a page shows it", **TEXT)
    seed: int = option(
        0,
        "another seed gives another reading; the same seed and options give the same audio",
        range=(0, LARGEST_SEED),
        control=Control("Seed"),
    )
    speed: float = option(
        1.0,
        "speaking rate; the pitch stays",
        range=SPEEDS,
        stage="sound",
        control=Control("Speed", step=0.05),
    )
    temperature: float = option(
        0.8,
        "randomness of the speech tokens; 0 always takes the most likely token",
        range=(0, None),
        http_range=(0, 5),
        control=Control("Temperature", 0.05, 2, 0.05),
    )
    cfg_weight: float | None = option(
        None,
        "weight of classifier-free guidance: how closely the text is followed; 0 turns it off",
        range=(0, None),
        unset=MODELS_OWN,
        fallback=0.5,
        http_range=(0, 10),
        control=Control("Guidance", 0, 1, 0.05),
    )
    exaggeration: float | None = option(
        None,
        "strength of the emotion; 0.5 is neutral, more is livelier",
        range=(0, None),
        unset=VOICES_OWN,
        fallback=0.5,
        http_range=(0, 10),
        control=Control("Exaggeration", 0, 2, 0.05),
    )
    repetition_penalty: float | None = option(
        None,
        "penalty for speech tokens that were used before; 1 is none",
        range=(0, None),
        above=True,
        unset=MODELS_OWN,
        fallback=1.2,
        interfaces=LOCAL,
    )
    min_p: float | None = option(
        None,
        "minimum probability relative to the most likely token (min-p)",
        range=(0, 1),
        unset=MODELS_OWN,
        fallback=0.05,
        interfaces=LOCAL,
    )
    top_p: float | None = option(
        None,
        "cumulative probability of the tokens that are sampled from (top-p)",
        range=(0, 1),
        unset=MODELS_OWN,
        fallback=1.0,
        interfaces=LOCAL,
    )
    top_k: int | None = option(
        None,
        "number of the most likely tokens that are sampled from (top-k); 0 is all",
        range=(0, 2**31 - 1),
        unset=MODELS_OWN,
        fallback=0,
        interfaces=LOCAL,
    )
    max_tokens: int = option(
        1000,
        "speech tokens per sentence at most, 25 per second",
        range=(1, 2**31 - 1),
        interfaces=LOCAL,
    )
    steps: int | None = option(
        None,
        "steps of the flow; fewer are faster",
        range=(1, 1000),
        unset=MODELS_OWN,
        fallback=10,
        stage="sound",
        interfaces=LOCAL,
    )
    first_chunk: int | None = option(
        10,
        "speech tokens in the first chunk of a sentence, more than overlap; fewer are heard sooner",
        range=(1, 1000),
        unset="sentences are not divided",
        **CHUNKS,
    )
    chunk: int = option(
        25,
        "speech tokens in the second chunk; each later one is half as long again, up to 100",
        range=(1, 1000),
        **CHUNKS,
    )
    overlap: int = option(
        4, "speech tokens that are solved again where two chunks meet", range=(1, 100), **CHUNKS
    )
    context: int | None = option(
        None,
        "earlier speech tokens that the solution of a chunk sees",
        range=(1, 10**6),
        unset="the whole sentence",
        **CHUNKS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_chunk is not None:
            whole("first_chunk", self.first_chunk, self.overlap + 1, 1000)
        asked = [name for name in MARKUPS if getattr(self, name)]
        if len(asked) > 1:
            raise ValueError(f"a text is written in one way, not in {' and '.join(asked)}")

    @property
    def markup(self) -> str | None:
        """How the text is written; None: its beginning tells."""
        return next((name for name in MARKUPS if getattr(self, name)), None)

    def resolved(self, own: Mapping[str, Any]) -> SpeechOptions:
        """With a value for each option that depends on the model or the voice. own: their values by
        name; those they have no value for get the fallback."""
        unset = {
            option.name: own.get(option.name, option.fallback)
            for option in options_of(SpeechOptions)
            if option.fallback is not None and getattr(self, option.name) is None
        }
        return replace(self, **unset)

    def of_model(self) -> dict[str, Any]:
        """The options whose default is the model's own, by name."""
        depending = (o.name for o in options_of(SpeechOptions) if o.unset == MODELS_OWN)
        return {name: getattr(self, name) for name in depending if name != "voice"}


def conversion_names(chunks: bool = False) -> tuple[str, ...]:
    """The options of voice conversion: those that change the sound of given speech tokens. chunks:
    also those that divide a stream."""
    stages = ("sound", "chunks") if chunks else ("sound",)
    declared = options_of(SpeechOptions)
    return tuple(o.name for o in declared if o.stage in stages or o.name in ("voice", "seed"))


@dataclass(frozen=True, kw_only=True)
class ServerOptions(Options):
    """What a server allows, in seconds, bytes and counts."""

    INTERFACES = ("cli", "ray")

    voices: Path | None = option(None, "voice folder", unset="the user's")
    lexicon: LexiconSource | Path | None = option(
        None,
        "a file with respellings of words, for all requests; of several, later ones win over "
        "earlier ones",
        unset="no respellings",
        several=True,
        model_checks=True,
    )
    alias: str | list[str] | None = option(
        None,
        "another name for a voice in requests, written NAME=VOICE, in place of OpenAI's names too",
        unset="OpenAI's names only",
        several=True,
        metavar="NAME=VOICE",
    )
    strict_model: bool = option(
        False, "answer 404 to requests that name another model than nightingale or OpenAI's"
    )
    max_queue: int = option(32, "requests that may wait; more get status 429", range=(1, None))
    max_concurrent: int = option(
        8, "requests that are spoken at once; fewer where memory is short", range=(1, None)
    )
    max_characters: int = option(10_000, "characters of a text", range=(1, None))
    max_upload: int = option(20_000_000, "bytes of a recording", range=(1, None))
    max_recording: float = option(600.0, "seconds of a recording to convert", **SECONDS)
    max_concurrent_uploads: int = option(
        4,
        "recordings that are received and held at once, half of them from one address; more wait",
        range=(1, None),
    )
    max_voices: int = option(1000, "voices in the voice folder", range=(1, None))
    max_connections: int = option(512, "open connections", range=(1, None), interfaces=("cli",))
    max_connections_per_address: int = option(
        128,
        "open connections of one address, unless it is a trusted proxy's",
        range=(1, None),
        interfaces=("cli",),
    )
    head_timeout: float = option(
        20.0, "seconds in which the head of a request must come", **SECONDS, interfaces=("cli",)
    )
    min_body_rate: int = option(
        10_000,
        "bytes per second that the body of a request must bring in each span of head_timeout",
        range=(0, None),
        interfaces=("cli",),
    )
    first_audio_timeout: float = option(
        60.0, "seconds that a request waits for its first audio", **SECONDS
    )
    stall_timeout: float = option(
        60.0, "seconds for which a client may send or read no bytes", **SECONDS, interfaces=("cli",)
    )
    websocket_timeout: float = option(
        300.0, "seconds for which a WebSocket may be silent", **SECONDS
    )
    unload_after: float | None = option(
        None, "seconds without requests after which the model is unloaded", **SECONDS, unset="never"
    )
