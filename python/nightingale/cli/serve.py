"""`serve`: the model over HTTP."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..option import whole
from ..options import MOST_SECONDS, ServerOptions
from .options import Arguments, add_options, add_shared, at_least, remark

if TYPE_CHECKING:
    from ..server import Settings

PORT = 8765
SHUTDOWN_TIMEOUT = 10
BACKLOG = 64  # connections that the system keeps until they are taken


def add_commands(commands: Any) -> None:
    serve = commands.add_parser("serve", help="speak over HTTP, with OpenAI's interface and a page")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at (%(default)s)")
    serve.add_argument("--port", type=int, default=PORT, help="0: any free one (%(default)s)")
    serve.add_argument(
        "--wyoming",
        metavar="HOST:PORT",
        help="where to speak the Wyoming protocol, for Home Assistant; it has no keys",
    )
    serve.add_argument("--no-http", action="store_true", help="speak the Wyoming protocol only")
    serve.add_argument(
        "--workers", type=int, default=1, help="processes, each with the model (default: 1)"
    )
    serve.add_argument(
        "--no-access-log", action="store_true", help="do not log answers on standard error"
    )
    safety = serve.add_argument_group("safety")
    safety.add_argument(
        "--key-file", type=Path, metavar="FILE", help="with the key that clients must show"
    )
    safety.add_argument(
        "--allow-unauthenticated",
        action="store_true",
        help="listen beyond this machine without a key",
    )
    safety.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        default=[],
        help="another name that clients may call this machine by; may be given several times",
    )
    safety.add_argument(
        "--allow-origin",
        action="append",
        metavar="ORIGIN",
        default=[],
        help="another site whose pages may use the server, such as https://example.com, or * for "
        "all; may be given several times",
    )
    safety.add_argument(
        "--trust-proxy",
        action="append",
        metavar="ADDRESS",
        default=[],
        help="a proxy, or a network of them, whose X-Forwarded-For names the client; may be given "
        "several times",
    )
    limits = serve.add_argument_group("limits")
    add_options(limits, ServerOptions)
    limits.add_argument(
        "--shutdown-timeout",
        type=int,
        default=SHUTDOWN_TIMEOUT,
        help="seconds that running requests get at the end (default: %(default)s)",
    )
    add_shared(serve, json=None)
    serve.set_defaults(run=_serve)


def _serve(args: Arguments) -> int:
    try:
        from ..server import serving
    except ModuleNotFoundError as error:
        raise ValueError(
            f"serving needs {error.name}: pip install 'nightingale-tts[server]'"
        ) from None
    at_least(1, "--workers", args.workers)
    whole("--shutdown-timeout", args.shutdown_timeout, 0, MOST_SECONDS)
    wyoming = _wyoming_address(args)
    settings = _settings(args)
    with ExitStack() as open_sockets:
        http = (
            None if args.no_http else open_sockets.enter_context(_listening(args.host, args.port))
        )
        other = None if wyoming is None else open_sockets.enter_context(_listening(*wyoming))
        return serving.serve(settings, http, args.workers, args.shutdown_timeout, remark, other)


def _wyoming_address(args: Arguments) -> tuple[str, int] | None:
    """Where Wyoming is spoken, or a ValueError for what cannot be."""
    if args.wyoming is None:
        if args.no_http:
            raise ValueError("--no-http needs --wyoming HOST:PORT, or there is nothing to serve")
        return None
    try:
        import wyoming  # noqa: F401
    except ModuleNotFoundError:
        raise ValueError(
            "--wyoming needs wyoming: pip install 'nightingale-tts[wyoming]'"
        ) from None
    host, _, port = args.wyoming.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal():
        raise ValueError(f"--wyoming takes HOST:PORT, such as 127.0.0.1:10200, not {args.wyoming}")
    if args.workers > 1:
        raise ValueError("--wyoming takes one worker")
    if not _is_loopback(host) and not args.allow_unauthenticated:
        raise ValueError(
            f"{host} can be reached from other machines and Wyoming has no keys: give "
            "--allow-unauthenticated if that is meant"
        )
    return host, int(port)


def _settings(args: Arguments) -> Settings:
    from ..server import Settings
    from ..server.context import LOOPBACK_NAMES

    key = _read_key(args.key_file) if args.key_file is not None else None
    local = _is_loopback(args.host)
    if not local and key is None and not args.allow_unauthenticated:
        raise ValueError(
            f"{args.host} can be reached from other machines: give --key-file, "
            "or --allow-unauthenticated if that is meant"
        )
    own = f"[{args.host}]" if ":" in args.host else args.host
    return Settings(
        model=args.model,
        load=args.load_options(),
        key=key,
        hosts=(*LOOPBACK_NAMES, *map(str.lower, (own, *args.allow_host))),
        any_address=not local,
        trusted_proxies=tuple(args.trust_proxy),
        allowed_origins=tuple(args.allow_origin),
        access_log=not args.no_access_log,
        **args.given(ServerOptions),
    )


def _read_key(file: Path) -> str:
    key = file.read_text().strip()
    if not key:
        raise ValueError(f"{file} has no key in it")
    return key


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot listen at {host}, port {port}: {reason}") from error
