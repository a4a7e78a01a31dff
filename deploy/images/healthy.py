#!/opt/fairlead/bin/python -SE
"""Asks the service of this container whether it is ready, and says why not; exit 0 or 1.

The same question as a service's own `--health-check`, which loads the whole service to ask it: two seconds of processor
time, every ten seconds, in every container.

    fairlead-healthy                                    # /readyz on FAIRLEAD_HEALTH_PORT, 8080 unless set
    fairlead-healthy http://127.0.0.1:8222/healthz      # of another program
"""

import http.client
import os
import sys
from urllib.parse import urlsplit

SECONDS = 4.0


def main() -> int:
    """Ask; the answer's body goes to standard output, where the engine keeps it."""
    port = os.environ.get("FAIRLEAD_HEALTH_PORT", "8080")
    url = urlsplit(sys.argv[1] if sys.argv[1:] else f"http://127.0.0.1:{port}/readyz")
    connection = http.client.HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=SECONDS)
    try:
        connection.request("GET", url.path)
        answer = connection.getresponse()
        sys.stdout.write(answer.read().decode(errors="replace") + "\n")
    except (OSError, http.client.HTTPException) as error:
        sys.stdout.write(f"{url.geturl()} does not answer: {error}\n")
        return 1
    finally:
        connection.close()
    return 0 if answer.status == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main())
