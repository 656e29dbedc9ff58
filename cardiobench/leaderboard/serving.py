"""Serve the app to anonymous visitors: without uploads, and with limits on what a request sends."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cardiobench.leaderboard import style

UPLOADS = ("upload", "process_recording", "stream")
"""Last or only parts of the paths that receive files. Gradio offers them whether or not a component takes files."""
MOST_BYTES = 100_000
"""Maximum size of a request; the values of all controls have less than a hundredth of it."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class SmallRequests:
    """ASGI middleware that refuses uploads and long requests before anything of them is kept.

    Args:
        app: The app that answers all other requests.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
        elif not set(scope["path"].split("/")).isdisjoint(UPLOADS):
            await _refuse(send, 403, "this app takes no files")
        elif _stated_size(scope) > MOST_BYTES:
            await _refuse(send, 413, f"a request may have {MOST_BYTES} bytes")
        else:
            await self.app(scope, _limited(receive), send)


def _stated_size(scope: Message) -> int:
    stated = dict(scope["headers"]).get(b"content-length", b"0")
    return int(stated) if stated.isdigit() else MOST_BYTES + 1


def _limited(receive: Receive) -> Receive:
    """Return a function that ends a request whose parts become too long, as one of unstated length can."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return message if size <= MOST_BYTES else {"type": "http.disconnect"}

    return limited


async def _refuse(send: Send, status: int, reason: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": reason.encode()})


def options() -> dict[str, Any]:
    """Return the arguments of `launch`: the look of the app, and the limits."""
    from starlette.middleware import Middleware

    return {**style.options(), "max_file_size": MOST_BYTES, "app_kwargs": {"middleware": [Middleware(SmallRequests)]}}
