"""Runs a command where the only name server is this program, and prints every name that was looked up, one a line.

    unshare --map-root-user --net --mount python recording_resolver.py COMMAND...

In its own network namespace the command reaches nothing but the loopback device.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41
RESOLVER = Path("/etc/resolv.conf")
OWN = "asked-by-the-test.example"  # shows that lookups arrive here


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP_RUNNING))


def be_the_resolver() -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as stream:
        stream.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", stream.name, str(RESOLVER.resolve())], check=True)


def record(server: socket.socket, names: list[str]) -> None:
    while True:
        query, sender = server.recvfrom(4096)
        names.append(_name(query))
        server.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], sender)  # no such name


def _name(query: bytes) -> str:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels)


def main() -> int:
    raise_loopback()
    be_the_resolver()
    names: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        threading.Thread(target=record, args=(server, names), daemon=True).start()
        with contextlib.suppress(socket.gaierror):
            socket.getaddrinfo(OWN, 443)
        done = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False)
    print("\n".join(dict.fromkeys(names)))
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
