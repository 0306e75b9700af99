"""A TCP proxy on 127.0.0.1 that makes a local server as slow, stuck or broken as a real network."""

from __future__ import annotations

import atexit
import contextlib
import socket
import struct
import threading
import time
from typing import Self

_CHUNK = 65536
_HARD_CLOSE = struct.pack("ii", 1, 0)


class Throttle:
    """Forwards 127.0.0.1:``port`` to 127.0.0.1:``target`` and limits what flows back to the client.

    ``rate`` (bytes per second over all connections, None for no limit) may be set while data flows.
    """

    def __init__(self, target: int, rate: float | None = None) -> None:
        self.rate = rate
        self.connections = 0
        self.bytes_down = 0
        self.bytes_up = 0
        self._target = target
        self._flowing = threading.Event()
        self._flowing.set()
        self._closing = False
        self._cut_at: int | None = None
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._next_slot = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """Client connections that are open now."""
        with self._lock:
            return len(self._open) // 2

    def start(self) -> Self:
        """Begin to accept connections."""
        atexit.register(self.stop)
        threading.Thread(target=self._accept, name="throttle", daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port and every connection."""
        atexit.unregister(self.stop)
        self._closing = True
        self._flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def stall(self) -> None:
        """Let connections open, but no byte through in either direction, until ``resume``."""
        self._flowing.clear()

    def resume(self) -> None:
        """End a stall."""
        self._flowing.set()

    def drop(self) -> None:
        """Reset every open connection; new ones are served."""
        with self._lock:
            victims = list(self._open)
        for victim in victims:
            _reset(victim)

    def drop_after(self, count: int) -> None:
        """Reset all connections once ``count`` more bytes went to clients; then work on as before."""
        with self._lock:
            self._cut_at = self.bytes_down + count

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            with self._lock:
                self.connections += 1
                self._open.update((client, server))
            for source, sink, down in ((server, client, True), (client, server, False)):
                threading.Thread(target=self._pump, args=(source, sink, down), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, down: bool) -> None:
        try:
            while data := source.recv(self._portion() if down else _CHUNK):
                self._flowing.wait()
                if down:
                    self._wait_turn(len(data))
                cut = self._count(len(data), down)
                sink.sendall(data)
                if cut:
                    self.drop()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        finally:
            self._close_pair(source, sink, down)

    def _portion(self) -> int:
        rate = self.rate
        return _CHUNK if rate is None else max(512, min(_CHUNK, int(rate / 20)))

    def _wait_turn(self, size: int) -> None:
        """Book time on the one line that all connections share."""
        rate = self.rate
        if rate is None:
            return
        with self._lock:
            start = max(self._next_slot, time.monotonic())
            self._next_slot = start + size / rate
        time.sleep(max(0.0, self._next_slot - time.monotonic()))

    def _count(self, size: int, down: bool) -> bool:
        """Count what is about to be sent, so that a client that has it all finds it counted; say whether to cut now."""
        with self._lock:
            self.bytes_down += size if down else 0
            self.bytes_up += 0 if down else size
            cut = self._cut_at is not None and self.bytes_down >= self._cut_at
            if cut:
                self._cut_at = None
        return cut

    def _close_pair(self, source: socket.socket, sink: socket.socket, down: bool) -> None:
        """The download side owns the pair: a client that only ended its request still waits for the answer."""
        if not down:
            return
        with self._lock:
            self._open.difference_update((source, sink))
        for end in (source, sink):
            end.close()


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HARD_CLOSE)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
