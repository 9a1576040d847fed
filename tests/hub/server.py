"""A small server that speaks the file routes of a hub, on the loopback, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLDER = "fedcba9876543210fedcba9876543210fedcba98"
_REVISIONS = {"main": COMMIT, "v1": OLDER}
_ROUTE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)?")
_PORTAL = b"<html><body>Please log in</body></html>"


@dataclass
class Repo:
    """Files by revision; ``fault`` is how the server misbehaves."""

    files: dict[str, dict[str, bytes]]
    fault: str = ""
    token: str | None = None


@dataclass
class Hub:
    """The server: what it holds and what it was asked."""

    repos: dict[str, Repo] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path, Authorization."""
    sent_bytes: int = 0
    release: threading.Event = field(default_factory=threading.Event)
    """Set when silent answers may go on."""
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, token = self.server.hub, self.headers.get("Authorization")
        hub.requests.append((self.command, self.path, token))
        match = _ROUTE.fullmatch(self.path)
        repo = hub.repos.get(match["repo"]) if match else None
        if match is None or repo is None:
            self._error(404, "RepoNotFound")
        elif repo.fault:
            self._fault(repo, match)
        elif repo.token is not None and token != f"Bearer {repo.token}":
            self._error(401, "RepoNotFound")
        else:
            self._file(repo, match)

    def _fault(self, repo: Repo, match: re.Match[str]) -> None:
        match repo.fault, self.command:
            case "portal", _:
                self._send(200, _PORTAL, {})
            case "gated", _:
                self._error(403, "GatedRepo")
            case ("silent", _) | ("silent body", "GET"):
                self.server.hub.release.wait(30)
                self._error(503, "")
            case "silent body", _:
                self._file(repo, match)
            case status, _:
                self._error(int(status), "")

    def _file(self, repo: Repo, match: re.Match[str]) -> None:
        commit = _REVISIONS.get(match["revision"], match["revision"])
        files = repo.files.get(commit)
        content = files.get(match["file"]) if files is not None else None
        if files is None:
            self._error(404, "RevisionNotFound")
        elif content is None:
            self._error(404, "EntryNotFound", {"X-Repo-Commit": commit})
        else:
            etag = hashlib.sha256(content).hexdigest()
            self._part(content, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'})

    def _part(self, content: bytes, headers: dict[str, str]) -> None:
        span = _RANGE.fullmatch(self.headers.get("Range", ""))
        if span is None:
            self._send(200, content, headers)
            return
        start, stop = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{stop}/{len(content)}"
        self._send(206, content[start : stop + 1], headers)

    def _error(self, status: int, code: str, extra: dict[str, str] | None = None) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": code, **(extra or {})}
        self._send(status, json.dumps({"error": code}).encode(), headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
            self.server.hub.sent_bytes += len(content)

    def log_message(self, *_: object) -> None:
        pass


def serve(hub: Hub) -> ThreadingHTTPServer:
    """Start the server in a thread of its own."""
    server = _Server(hub)
    hub.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server
