"""What a screen reader is told of the windows on a desktop: it asks over AT-SPI, as Orca does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from jeepney import DBusAddress, DBusErrorResponse, MessageType, Properties, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from .process import RigError, wait_for

T = TypeVar("T")

_ACCESSIBLE = "org.a11y.atspi.Accessible"
_COMPONENT = "org.a11y.atspi.Component"
_ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_BUS = DBusAddress("/org/a11y/bus", bus_name="org.a11y.Bus", interface="org.a11y.Bus")
_STATUS = DBusAddress("/org/a11y/bus", bus_name="org.a11y.Bus", interface="org.a11y.Status")
_CHECKED, _ENABLED, _FOCUSED, _SHOWING = 4, 8, 12, 25
"""Numbers of states (atspi-constants.h)."""
_OF_THE_SCREEN = 0


@dataclass(frozen=True)
class Element:
    """One thing on the screen: what it is, its name, and what can be done with it."""

    role: str
    name: str
    enabled: bool
    focused: bool
    checked: bool
    place: tuple[str, str]


class ScreenReader:
    """A listener on the accessibility bus of a desktop."""

    def __init__(self, session_bus: str) -> None:
        self._session = open_dbus_connection(session_bus)
        _reply(self._session, Properties(_STATUS).set("IsEnabled", "b", True))
        (address,) = _reply(self._session, new_method_call(_BUS, "GetAddress"))
        self._bus = open_dbus_connection(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bus.close()
        self._session.close()

    def shown(self) -> list[Element]:
        """Everything that is shown now; nothing while the window changes under the reader's hands."""
        try:
            return [element for program in self._children(_ROOT) for element in self._below(program)]
        except DBusErrorResponse:
            return []

    def until(self, role: str, name: str, holds: Callable[[Element], bool], seconds: float = 60) -> Element:
        """Wait for an element of which something holds. Raises RigError with what is on the screen instead."""
        seen: list[Element] = []

        def found() -> bool:
            seen[:] = [one for one in self.shown() if (one.role, one.name) == (role, name) and holds(one)]
            return bool(seen)

        try:
            wait_for(found, seconds, f"{role} {name!r}", every=0.2)
        except RigError as error:
            words = [element.name for element in self.shown() if element.name]
            raise RigError(f"{error}; on the screen: {words}") from None
        return seen[0]

    def middle_of(self, element: Element) -> tuple[int, int]:
        """Where on the screen an element is."""
        ((x, y, width, height),) = self._ask(element.place, "GetExtents", "u", (_OF_THE_SCREEN,), interface=_COMPONENT)
        return x + width // 2, y + height // 2

    def _below(self, place: tuple[str, str]) -> Iterator[Element]:
        for child in self._children(place):
            (words,) = self._ask(child, "GetState")
            states = words[0] | words[1] << 32
            if not states >> _SHOWING & 1:
                continue
            (role,) = self._ask(child, "GetRoleName")
            yield Element(
                role=role,
                name=self._name(child),
                enabled=bool(states >> _ENABLED & 1),
                focused=bool(states >> _FOCUSED & 1),
                checked=bool(states >> _CHECKED & 1),
                place=child,
            )
            yield from self._below(child)

    def _children(self, place: tuple[str, str]) -> list[tuple[str, str]]:
        (children,) = self._ask(place, "GetChildren")
        return list(children)

    def _name(self, place: tuple[str, str]) -> str:
        ((_, name),) = _reply(self._bus, Properties(_address(place, _ACCESSIBLE)).get("Name"))
        return str(name)

    def _ask(
        self,
        place: tuple[str, str],
        method: str,
        signature: str | None = None,
        body: tuple[Any, ...] = (),
        *,
        interface: str = _ACCESSIBLE,
    ) -> tuple[Any, ...]:
        return _reply(self._bus, new_method_call(_address(place, interface), method, signature, body))


def _address(place: tuple[str, str], interface: str) -> DBusAddress:
    return DBusAddress(place[1], bus_name=place[0], interface=interface)


def _reply(connection: DBusConnection, message: Any) -> tuple[Any, ...]:
    """Ask and wait. Raises DBusErrorResponse where what is asked about has gone meanwhile."""
    reply = connection.send_and_get_reply(message, timeout=60)
    if reply.header.message_type is MessageType.error:
        raise DBusErrorResponse(reply)
    return tuple(reply.body)
