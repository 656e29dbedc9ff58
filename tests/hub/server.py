"""Loopback Hub for unmodified clients: HTTP in front of a `Store`, with injectable faults."""

import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub import file_routes, routes  # noqa: F401 - they fill the table
from tests.hub.faults import Faults
from tests.hub.request import ROUTES, Answer, Request
from tests.hub.store import Refusal, Store, User


class Handler(BaseHTTPRequestHandler):
    """Handler of one connection; every route is a function in `routes`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # Send one packet; a second one waits 40 ms for the client's acknowledgement.

    def log_message(self, *arguments):
        pass

    def handle_one(self):
        hub: Hub = self.server.hub
        line = f"{self.command} {self.path}"
        fault = hub.faults.take(line)
        if fault and fault.cut == "before":
            self.rfile.read(min(10, int(self.headers.get("Content-Length") or 0)))
            return self.hang_up()
        body = self.body()
        hub.requests.append(line)
        hub.sent.append(f"{line}\n{self.headers.get('User-Agent')}\n".encode() + body)
        if fault and fault.stall:
            time.sleep(fault.stall)
        if fault and fault.first:
            fault.first()
        try:
            if fault and fault.status:
                raise Refusal(fault.status, "made to fail")
            answer = self.route(hub, body)
        except Refusal as refusal:
            headers = {"X-Error-Message": refusal.message, **(fault.headers if fault else {})}
            if refusal.code:
                headers["X-Error-Code"] = refusal.code
            answer = Answer(refusal.body or {"error": refusal.message}, refusal.status, headers)
        if fault and fault.cut == "after":
            return self.hang_up()
        return self.send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_one

    def route(self, hub: "Hub", body: bytes) -> Answer:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        user = hub.store.users.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        for methods, pattern, function in ROUTES:
            found = re.fullmatch(pattern, parts.path)
            if found and self.command in methods:
                named = {key: unquote(value) if value else "" for key, value in found.groupdict().items()}
                with hub.store.lock:
                    return function(Request(hub.store, hub.url, user, query, self.headers, body, self.command), **named)
        raise Refusal(404, f"no route {self.command} {parts.path}", "RepoNotFound")

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def send(self, answer: Answer) -> None:
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        kind = "application/octet-stream" if isinstance(answer.body, bytes) else "application/json"
        self.send_response(answer.status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(content)), **answer.headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # Clients whose connection was closed.


class Hub:
    """Running Hub: `with Hub(users) as hub`; clients get `hub.url` as HF_ENDPOINT.

    Attributes:
        store: Store with the repositories.
        faults: Faults to inject.
        requests: "METHOD path" of all requests so far.
        sent: All bytes of these requests except headers with the client's token.
    """

    def __init__(self, users: dict[str, User]):
        self.store, self.faults, self.requests = Store(users), Faults(), []
        self.sent: list[bytes] = []
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.hub = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "Hub":
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *problem):
        self.server.shutdown()
        self.server.server_close()

    def environment(self, home, token: str) -> dict[str, str]:
        """Return the environment variables that a client process needs before it imports anything."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_TOKEN": token,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
