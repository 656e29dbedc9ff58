"""Choose a port for a server process."""

import secrets
import socket


def free_port() -> int:
    """Return a port that nobody listens at, and that no kernel hands out by itself before the process takes it.

    Linux and macOS give port 0 and outgoing connections numbers from 32,768 and 49,152 on.
    """
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)):
                return port
