#!/opt/fairlead/bin/python -SE
"""Asks the service of this container whether it is ready, and says why not; exit 0 or 1.

The same question as a service's own `--health-check`, which loads the whole service to ask it: two seconds of processor
time, every ten seconds, in every container. For the same reason it speaks HTTP itself: `http.client` comes with the
modules of mail, which images of Python hold without bytecode, and compiling them takes a third of a second.

    fairlead-healthy            # /readyz on FAIRLEAD_HEALTH_PORT, 8080 unless set
    fairlead-healthy 8222 /healthz   # of another program
"""

import os
import socket
import sys

SECONDS = 4.0
MOST_BYTES = 65_536


def main() -> int:
    """Ask; the answer's body goes to standard output, where the engine keeps it."""
    port, path = sys.argv[1:] or (os.environ.get("FAIRLEAD_HEALTH_PORT", "8080"), "/readyz")
    try:
        answer = ask(int(port), path)
    except OSError as error:
        sys.stdout.write(f"port {port} does not answer: {error}\n")
        return 1
    head, _, body = answer.partition(b"\r\n\r\n")
    sys.stdout.write(body.decode(errors="replace") + "\n")
    return 0 if head.split()[1:2] == [b"200"] else 1


def ask(port: int, path: str) -> bytes:
    """The whole answer of a server on loopback, which closes the connection behind it: that is HTTP/1.0."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        while len(answer) < MOST_BYTES and (part := connection.recv(MOST_BYTES)):
            answer += part
    return answer


if __name__ == "__main__":
    sys.exit(main())
