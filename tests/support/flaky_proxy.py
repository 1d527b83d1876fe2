"""A proxy before PostgreSQL that cuts a connection at a chosen write, before or after the server has received it.

A write is a statement that changes rows, or a COMMIT.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Self

CHUNK_BYTES = 65536
# A simple query, or one that is parsed first: its letter, its length, the name of the parsed one, the statement.
WRITE = re.compile(rb"(?:Q.{4}|P.{4}[^\0]*\0)\s*(?:INSERT INTO|UPDATE|DELETE FROM|WITH|COMMIT)\b", re.DOTALL)

BEGIN = re.compile(rb"(?:Q.{4}|P.{4}[^\0]*\0)\s*BEGIN\b", re.DOTALL)
COMMIT = re.compile(rb"(?:Q.{4}|P.{4}[^\0]*\0)\s*COMMIT\b", re.DOTALL)

APPEND = re.compile(rb"INSERT INTO \"?responses_app_eventsegment\b")
# A statement that gets a name, and a later use of it: its letter, its length, the portal, the name.
NAMED = re.compile(rb"P.{4}([^\0]+)\0", re.DOTALL)
USED = re.compile(rb"B.{4}[^\0]*\0([^\0]+)\0", re.DOTALL)


class Traffic:
    """What a client sends on one connection; a prepared statement is sent once, and then used by its name."""

    def __init__(self) -> None:
        self._writes: set[bytes] = set()
        self._appends: set[bytes] = set()
        self._is_in_transaction = False
        self._has_appended = False

    def is_write(self, data: bytes) -> bool:
        self._note_name(data)
        return WRITE.match(data) is not None or _used_name(data) in self._writes

    def is_commit_of_events(self, data: bytes) -> bool:
        """A COMMIT after an append, or an append that is a transaction by itself."""
        self._note_name(data)
        if BEGIN.match(data) is not None:
            self._is_in_transaction = True
        is_append = _used_name(data) in self._appends
        if COMMIT.match(data) is not None:
            is_append, self._has_appended, self._is_in_transaction = self._has_appended, False, False
            return is_append
        self._has_appended = self._is_in_transaction and (self._has_appended or is_append)
        return is_append and not self._is_in_transaction

    def _note_name(self, data: bytes) -> None:
        named = NAMED.match(data)
        if named is not None and WRITE.match(data) is not None:
            self._writes.add(named[1])
            if APPEND.search(data) is not None:
                self._appends.add(named[1])


def _used_name(data: bytes) -> bytes | None:
    used = USED.match(data)
    return None if used is None else used[1]


class WriteCutter:
    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._countdown = 0
        self._is_delivered = False
        self.cuts = 0

    def __enter__(self) -> Self:
        _in_background(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def cut(self, nth: int, *, is_delivered: bool) -> None:
        """The nth write from now on loses its connection: after the server carried it out, or before."""
        with self._lock:
            self._countdown, self._is_delivered = nth, is_delivered

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream_port))
                session = _Session(self, client, server)
                _in_background(session.pass_on)
                _in_background(session.pass_back)

    def is_due(self) -> bool:
        """Whether this write is the one to be cut."""
        with self._lock:
            self._countdown -= 1
            if self._countdown == 0:
                self.cuts += 1
            return self._countdown == 0

    @property
    def is_delivered(self) -> bool:
        return self._is_delivered


class _Session:
    def __init__(self, cutter: WriteCutter, client: socket.socket, server: socket.socket) -> None:
        self.cutter, self.client, self.server = cutter, client, server
        self.drops_next_answer = False
        self._traffic = Traffic()

    def pass_on(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(CHUNK_BYTES):
                if self._traffic.is_write(data) and self.cutter.is_due():
                    if not self.cutter.is_delivered:
                        break
                    self.drops_next_answer = True
                self.server.sendall(data)
        if not self.drops_next_answer:
            self._close()

    def pass_back(self) -> None:
        with suppress(OSError):
            while data := self.server.recv(CHUNK_BYTES):
                if self.drops_next_answer:
                    break
                self.client.sendall(data)
        self._close()

    def _close(self) -> None:
        _shut(self.client)
        _shut(self.server)


class Link:
    """A proxy before PostgreSQL that can be cut and joined again, as a network between the two can."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._is_cut = False
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        _in_background(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Every connection breaks, and a new one is refused."""
        with self._lock:
            self._is_cut = True
            for end in self._sockets:
                _shut(end)
            self._sockets.clear()

    def join(self) -> None:
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        with self._lock:
            if self._is_cut:
                _shut(client)
                return
            server = socket.create_connection(("127.0.0.1", self._upstream_port))
            self._sockets += [client, server]
        _in_background(lambda: _pass(client, server))
        _in_background(lambda: _pass(server, client))


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _in_background(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


class Stall:
    """A proxy that holds everything back while connections stay open, and delivers it later.

    A connection that its client gave up meanwhile still delivers what was sent on it.
    """

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._flows = threading.Event()
        self._flows.set()
        self._holds_at_commit = False
        self._delivers_commit = False
        self.is_holding_commit = False
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        _in_background(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._flows.set()
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            end.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        self._flows.clear()
        try:
            yield
        finally:
            self.release()

    def hold_at_commit(self, *, is_delivered: bool) -> None:
        """From the next COMMIT of events on: with it, or behind it, so that only its answer is held back."""
        self._delivers_commit, self._holds_at_commit = is_delivered, True

    def release(self) -> None:
        self._holds_at_commit = False
        self._flows.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream_port))
                self._ends += [client, server]
                _in_background(partial(self._pass_on, client, server))
                _in_background(partial(self._pass_back, server, client))

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        traffic = Traffic()
        with suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                is_delivered = False
                if traffic.is_commit_of_events(data) and self._holds_at_commit:
                    self._flows.clear()
                    self.is_holding_commit = True
                    is_delivered = self._delivers_commit
                if not is_delivered:
                    self._flows.wait()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK_BYTES):
                self._flows.wait()
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
