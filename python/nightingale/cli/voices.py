"""`bake`, `voices` and `languages`: making, listing, playing, mixing and removing voices."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..checkpoint import embedded_model
from ..native_voices import native_language, sex_of, title_of
from ..voice import Voice
from ..voice_folder import VoiceFolder, find_voice
from .options import Arguments, add_shared, remark


def add_commands(commands: Any) -> None:
    bake = commands.add_parser("bake", help="make a voice of a recording")
    bake.add_argument(
        "recording", metavar="RECORDING", help="10 s or more of one speaker: WAV, FLAC, OGG, MP3"
    )
    place = bake.add_mutually_exclusive_group(required=True)
    place.add_argument("-o", "--output", metavar="FILE", help="a .safetensors file")
    place.add_argument("--name", help="keep it under this name in the voice folder")
    bake.add_argument("--overwrite", action="store_true", help="replace the voice of that name")
    bake.add_argument("--exaggeration", type=float, help="kept in the voice (default: 0.5)")
    _add_folder(bake)
    add_shared(bake)
    bake.set_defaults(run=_bake)

    voices = commands.add_parser("voices", help="list, play, mix or remove voices")
    _add_folder(voices)
    voices.add_argument(
        "--play", action="store_true", help="let each say a sentence in its language"
    )
    add_shared(voices)
    voices.set_defaults(run=_list)
    actions = voices.add_subparsers(metavar="ACTION")
    remove = actions.add_parser("remove", help="delete a voice of the voice folder")
    remove.add_argument("name", metavar="NAME")
    # Suppressed, or it would undo what was given before the action.
    _add_folder(remove, default=argparse.SUPPRESS)
    remove.set_defaults(run=_remove)
    mix = actions.add_parser("mix", help="keep a voice between two others")
    mix.add_argument("one", metavar="VOICE", help="a voice of the model or the folder, or a file")
    mix.add_argument("other", metavar="OTHER", help="the same")
    mix.add_argument("share", metavar="SHARE", type=float, help="of the other, 0 to 1")
    mix.add_argument("--name", required=True, help="of the new voice in the voice folder")
    mix.add_argument("--overwrite", action="store_true", help="replace the voice of that name")
    mix.add_argument(
        "--model", default=argparse.SUPPRESS, help="whose voices can be named (default: embedded)"
    )
    _add_folder(mix, default=argparse.SUPPRESS)
    mix.set_defaults(run=_mix)

    languages = commands.add_parser("languages", help="list the languages of a model")
    add_shared(languages)
    languages.set_defaults(run=_languages)


def _add_folder(parser: argparse.ArgumentParser, **settings: Any) -> None:
    parser.add_argument(
        "--folder", type=Path, help="instead of the user's voice folder", **settings
    )


def _bake(args: Arguments) -> None:
    folder = VoiceFolder(args.folder)
    if args.output is not None:
        if Path(args.output).suffix != ".safetensors":
            raise ValueError(f"{Path(args.output).name!r} must end in .safetensors")
    elif folder.path(args.name).exists() and not args.overwrite:
        raise ValueError(f"there is a voice {args.name!r} already; --overwrite replaces it")
    if not Path(args.recording).exists():
        raise ValueError(f"there is no recording {args.recording}")

    settings = {} if args.exaggeration is None else {"exaggeration": args.exaggeration}
    voice = args.load_model().bake_voice(args.recording, **settings)
    if args.output is not None:
        voice.save(args.output)
        file = Path(args.output)
    else:
        file = folder.save(args.name, voice, overwrite=args.overwrite)
    if args.json:
        described = {
            "file": str(file),
            "name": args.name,
            "bytes": file.stat().st_size,
            "exaggeration": voice.emotion_adv,
            "prompt_tokens": 0 if voice.prompt_token is None else len(voice.prompt_token),
        }
        print(json.dumps(described))
    else:
        remark(f"{file}: a voice of {args.recording}")


def _list(args: Arguments) -> None:
    folder = VoiceFolder(args.folder)
    own = list(_of_model(args))
    kept = folder.names()
    if args.json:
        facts = {
            name: {
                "title": title_of(name),
                "language": native_language(name),
                "sex": sex_of(name),
            }
            for name in (*own, *kept)
        }
        described = {"model": own, "folder": str(folder.folder), "voices": kept, "facts": facts}
        print(json.dumps(described))
    else:
        for name in own:
            print(_line(name, "of the model"))
        for name in kept:
            print(_line(name, str(folder.path(name))))
    if not own and not kept:
        remark(f"{folder.folder} has no voices; `nightingale bake` makes one")
    elif args.play:
        _play(args, own, folder)


def _of_model(args: Arguments) -> dict[str, Path]:
    """Voices of the model that is named, else of the embedded one, where there is one."""
    if args.model is None and embedded_model() is None:
        return {}
    files = args.find_checkpoint()
    return ({} if files.voice is None else {"default": files.voice}) | files.voices


def _line(name: str, place: str) -> str:
    title = title_of(name)
    return f"{name}\t{'any language' if title == name else title}\t{place}"


def _play(args: Arguments, own: list[str], folder: VoiceFolder) -> None:
    """Plays each voice; those without a native language speak the model's first, or English."""
    from ..validate.languages import SENTENCES

    tts = args.load_model()
    for name in (*own, *folder.names()):
        language = native_language(name)
        if language not in tts.languages:
            language = "en" if "en" in tts.languages else next(iter(tts.languages))
        remark(f"{name}: {SENTENCES[language]}")
        voice = find_voice(name, tts.voices, folder)
        tts.generate(SENTENCES[language], voice=voice, language=language).play()


def _languages(args: Arguments) -> None:
    languages = args.find_checkpoint().languages
    if args.json:
        print(json.dumps(languages))
        return
    for code, name in languages.items():
        print(f"{code}\t{name}")


def _mix(args: Arguments) -> None:
    folder, own = VoiceFolder(args.folder), _of_model(args)
    if folder.path(args.name).exists() and not args.overwrite:
        raise ValueError(f"there is a voice {args.name!r} already; --overwrite replaces it")
    one, other = (
        found if isinstance(found, Voice) else Voice.load(own[found])
        for found in (find_voice(name, own, folder) for name in (args.one, args.other))
    )
    file = folder.save(args.name, one.mixed(other, args.share), overwrite=args.overwrite)
    if args.json:
        print(json.dumps({"file": str(file), "name": args.name, "share": args.share}))
    else:
        remark(f"{file}: {args.one} with {args.share:g} of {args.other}")


def _remove(args: Arguments) -> None:
    VoiceFolder(args.folder).remove(args.name)
