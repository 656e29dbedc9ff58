"""Choose a port for a server process."""

import secrets
import socket


def free_port() -> int:
    """Return a free port that the kernel does not assign by itself before the process binds it.

    Linux and macOS assign ports from 32,768 and 49,152 to port 0 and outgoing connections.
    """
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)):
                return port
