"""The members of the Chatterbox family: their files, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ._core import Error, TensorFile

LLAMA, GPT2 = "llama", "gpt2"
ENDINGS = (".safetensors", ".pt")  # of tensor files; the first wins
ENGLISH_TOKENIZER = ("tokenizer.json",)
V1_TOKENIZER = ("mtl_tokenizer.json",)
MULTILINGUAL_TOKENIZER = "grapheme_mtl_merged_expanded_v1.json"
GPT2_TOKENIZER = ("vocab.json", "merges.txt", "added_tokens.json")
MEANFLOW_FILE = "s3gen_meanflow.safetensors"
S3GEN_FILES = ("s3gen.safetensors", "s3gen.pt", MEANFLOW_FILE)
# How a multilingual model was taught to read: Unicode's decomposition, and upper case.
LOWER_CASE, FULL_CASE, AS_WRITTEN = "NFKD,lowercase", "NFKD,fullcase", "none"
TEXT_PREPROCESSING = (LOWER_CASE, FULL_CASE, AS_WRITTEN)


@dataclass(frozen=True)
class Member:
    """One model of the family, as it is published."""

    variant: str  # what `variant=` calls it
    name: str
    stem: str  # of its T3 file
    backbone: str = LLAMA
    text_vocabulary: int = 2454
    hidden: int = 1024  # tells Turbo from Nano
    tokenizer_files: tuple[str, ...] = (MULTILINGUAL_TOKENIZER,)
    s3gen: tuple[str, ...] = S3GEN_FILES  # names of its flow and vocoder, preferred first
    text_preprocessing: str = LOWER_CASE

    @property
    def t3(self) -> tuple[str, ...]:
        """The names of its T3 file, preferred first."""
        return tuple(self.stem + ending for ending in ENDINGS)

    @property
    def tokenizer(self) -> str:
        return self.tokenizer_files[0]

    @property
    def multilingual(self) -> bool:
        return self.backbone == LLAMA and self.tokenizer_files != ENGLISH_TOKENIZER

    @property
    def guidance(self) -> bool:
        """Whether it speaks with classifier-free guidance."""
        return self.backbone == LLAMA


V3 = Member("v3", "multilingual v3", "t3_mtl23ls_v3")
TURBO = Member(
    "turbo",
    "turbo",
    "t3_turbo_v1",
    GPT2,
    50276,
    tokenizer_files=GPT2_TOKENIZER,
    s3gen=(MEANFLOW_FILE, "s3gen.safetensors", "s3gen.pt"),
)
PACKS = ("zh-cmn", "es-mx-latam", "es-es", "pt-br", "pt-pt", "hi")

# In this order they are looked for in a folder that holds several. v2 is the reference's.
MEMBERS = (
    replace(V3, variant="v2", name="multilingual v2", stem="t3_mtl23ls_v2"),
    V3,
    Member(
        "v1",
        "multilingual v1",
        "t3_23lang",
        text_vocabulary=2352,
        tokenizer_files=V1_TOKENIZER,
        text_preprocessing=AS_WRITTEN,
    ),
    Member("english", "english", "t3_cfg", text_vocabulary=704, tokenizer_files=ENGLISH_TOKENIZER),
    TURBO,
    replace(TURBO, variant="nano", name="nano", stem="t3_nano_v1", hidden=768),
    *(
        replace(V3, variant=pack, name=f"language pack {pack}", stem=f"t3_{pack.replace('-', '_')}")
        for pack in PACKS
    ),
)
# Of members of equal shape the one whose settings a file of an unknown name gets.
_BY_SHAPE = (V3, *(member for member in MEMBERS if member.text_vocabulary != V3.text_vocabulary))
_VOCABULARIES = {member.text_vocabulary for member in MEMBERS}


@dataclass(frozen=True)
class Architecture:
    """What the tensors of a T3 say."""

    backbone: str
    text_vocabulary: int
    hidden: int

    @classmethod
    def of(cls, file: TensorFile, path: Path) -> Architecture:
        """An Error where it is no T3."""
        names = file.names()
        layers = {LLAMA: "tfmr.layers.0.", GPT2: "tfmr.h.0."}
        found = [b for b, prefix in layers.items() if any(n.startswith(prefix) for n in names)]
        if len(found) != 1 or "text_emb.weight" not in names or "speech_emb.weight" not in names:
            raise Error(
                f"{path} is not a T3 checkpoint: expected text_emb.weight, speech_emb.weight and "
                f"either {' or '.join(prefix + '*' for prefix in layers.values())}"
            )
        text, speech = file.shape("text_emb.weight"), file.shape("speech_emb.weight")
        return cls(found[0], text[0] if text else 0, speech[-1] if speech else 0)


def member_of(path: Path, shape: Architecture) -> Member:
    """The member that a T3 file is: its tensors tell, and among members of equal shape its name.
    Under any other name v3 stands for the multilingual ones."""
    named = next((member for member in MEMBERS if path.name in member.t3), None)
    if named is not None and _has_shape(named, shape):
        return named
    alike = [member for member in _BY_SHAPE if _has_shape(member, shape)]
    if not alike or shape.text_vocabulary not in _VOCABULARIES:
        known = ", ".join(f"{vocabulary} ({LLAMA})" for vocabulary in (704, 2352, 2454))
        raise Error(
            f"{path} has a {shape.backbone} backbone and {shape.text_vocabulary} text tokens, "
            f"which no known model has; known are {known} and {TURBO.text_vocabulary} ({GPT2})"
        )
    member = next((member for member in alike if member.hidden == shape.hidden), alike[0])
    return replace(member, variant=variant_of(path.name), stem=path.stem)


def _has_shape(member: Member, shape: Architecture) -> bool:
    """A vocabulary that no member has is that of a smaller model under a member's name."""
    same = shape.text_vocabulary == member.text_vocabulary
    return member.backbone == shape.backbone and (
        same or shape.text_vocabulary not in _VOCABULARIES
    )


def variant_of(t3_file: str) -> str:
    """What `variant=` calls the model of a T3 file."""
    named = next((member.variant for member in MEMBERS if t3_file in member.t3), None)
    return named or Path(t3_file).stem.removeprefix("t3_")


def t3_files(names: Iterable[str]) -> dict[str, str]:
    """The T3 files among the names of a folder or repository, by variant and in the order in which
    they are preferred: the members in the table's, then files of unknown names by name."""
    names = set(names)
    known = [name for member in MEMBERS for name in member.t3]
    others = sorted(
        (name for name in names if name.startswith("t3_") and name.endswith(ENDINGS)),
        key=lambda name: (Path(name).stem, ENDINGS.index(Path(name).suffix)),
    )
    found: dict[str, str] = {}
    for name in (*known, *others):
        if name in names:
            found.setdefault(variant_of(name), name)
    return found


def choose(files: dict[str, str], variant: str | None, place: str | Path) -> str:
    """The T3 file of a variant among those that `t3_files` gave, or the first; an Error where there
    is none. A variant may also be the name of the file. place: in messages"""
    if not files:
        expected = ", ".join(member.t3[0] for member in MEMBERS[:6])
        raise Error(f"{place} has no T3 checkpoint; expected one of {expected}")
    if variant is None:
        return next(iter(files.values()))
    asked = variant.lower().replace("_", "-")
    for known, name in files.items():
        if variant in (name, Path(name).stem) or asked == known.lower().replace("_", "-"):
            return name
    raise Error(f"{place} has no variant {variant!r}; it has {', '.join(files)}")
