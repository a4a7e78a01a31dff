"""A process with the outside of a service, in a few milliseconds: for the tests of ServiceProcess alone."""

import http.server
import json
import os
import signal
import sys
import threading


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"ready":true,"reasons":{}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class's own name
        pass


def say(**line: object) -> None:
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if os.environ.get("FAIRLEAD_MODE") == "die":
        sys.exit("cannot start")
    server = http.server.HTTPServer(("127.0.0.1", int(os.environ["FAIRLEAD_HEALTH_PORT"])), Health)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    say(event="health listening", port=server.server_port)
    say(
        event="told",
        color=os.environ.get("FAIRLEAD_COLOR"),
        flags=sys.argv[1:],
        strange=os.environ.get("FAIRLEAD_STRANGE"),
    )
    server.serve_forever()
