"""The messages of the engine: their fields, defaults and limits are recorded; lines are written and read by hand."""

from __future__ import annotations

import inspect
import json
from typing import Any, get_args

import msgspec
import pytest
from recorded import check_recorded

from app.engine import protocol
from app.engine.protocol import (
    Asked,
    DoneEvent,
    FailedEvent,
    GradientReply,
    GradientRequest,
    Malformed,
    OpenReply,
    OpenRequest,
    PingReply,
    PingRequest,
    ProgressEvent,
    ReadyEvent,
    Request,
    RunReply,
    RunRequest,
    SetInputTensorRequest,
    SupersededEvent,
    WeightsReply,
    asked,
    done_line,
    handles,
    line_of,
    other_protocol,
    read_event,
    read_reply,
    read_request,
    too_long,
)
from designer.graph.diagnostics import Diagnostic
from designer.runtime.shared import Handle

SHARED = Handle("a.bin", (1, 2), "float32")


def test_fields_defaults_and_limits_are_those_that_were_agreed_on() -> None:
    """A change of what is recorded here raises `VERSION`, except for a new field that has a default."""
    found = [
        each
        for _, each in inspect.getmembers(protocol, inspect.isclass)
        if issubclass(each, msgspec.Struct)
        and each.__module__ == protocol.__name__
        and not each.__name__.startswith("_")
    ]
    schemas = msgspec.json.schema_components([each for each in found if each is not Request and each is not Handle])[1]
    lines = [f"version {protocol.VERSION}, lines of at most {protocol.MAX_LINE} bytes"]
    for each in sorted(found, key=lambda each: each.__name__):
        schema = schemas.get(each.__name__)
        if schema is None:
            continue
        reply = f" -> {each.reply_type().__name__}" if issubclass(each, Request) else ""
        lines += ["", f"{each.__name__}{reply}"]
        for name, field in schema["properties"].items():
            need = "" if name in schema.get("required", ()) else "optional "
            lines.append(f"  {need}{name}: {json.dumps(field, sort_keys=True)}".replace("#/$defs/", ""))
    check_recorded("engine/protocol.txt", "\n".join(lines) + "\n")
    assert {each for each in found if issubclass(each, Request)} - {Request} == set(get_args(protocol.AnyRequest))


def test_lines_are_json_with_the_name_of_the_method() -> None:
    line = line_of(asked(7, SetInputTensorRequest("image", SHARED, is_image=False)))
    handle = json.loads(line)["request"]["handle"]
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "id": 7, "request": {"method": "set_input_tensor", "layer": "image", "handle": handle, "is_image": False}
    }  # fmt: skip
    assert line_of(asked(3, RunRequest())) == b'{"id":3,"request":{"method":"run"}}\n'
    assert RunRequest(("a",)).method == "run"
    assert (GradientRequest.reply_type(), PingRequest.reply_type()) == (GradientReply, PingReply)
    assert done_line(9, PingReply(5)) == b'{"event":"done","id":9,"result":{"pid":5}}\n'
    assert line_of(SupersededEvent(4)) == b'{"event":"superseded","id":4}\n'


@pytest.mark.parametrize(
    "message",
    [
        ReadyEvent(5, 3), ProgressEvent(1, 2, 3, "conv"), SupersededEvent(8), FailedEvent(2, (Diagnostic("a", "b"),)),
        FailedEvent(None, (Diagnostic("a", "b", layer="c", remedy="d"),)), DoneEvent(6, msgspec.Raw(b'{"pid":5}')),
    ],
)  # fmt: skip
def test_events_are_read_as_they_were_written(message: Any) -> None:
    assert read_event(line_of(message)) == message
    assert read_event(line_of(message)[:-2]) == Malformed(None, "input data was truncated")


@pytest.mark.parametrize("name", ["a.png", "with \ud800 bytes.png"])
def test_requests_and_replies_are_read_as_they_were_written(name: str) -> None:
    request = OpenRequest("<x/>", name, seed=3, formats={name: "int8"})
    assert read_request(line_of(asked(4, request))) == Asked(4, request)
    reply = OpenReply(note=name)
    event = read_event(done_line(4, reply))
    assert isinstance(event, DoneEvent)
    assert read_reply(request, event) == reply


@pytest.mark.parametrize(
    ("line", "number", "problem"),
    [
        (b'{"id": 5, "request": {"method": "fly"}}', 5, "request.method: invalid value 'fly'"),
        (
            b'{"id": 5, "request": {"method": "open", "document": "", "threads": -1}}',
            5,
            "request.threads: expected int >= 0",
        ),
        (b'{"id": 5}', 5, "object missing required field request"),
        (b'{"id": -5, "request": {"method": "ping"}}', None, "id: expected int >= 0"),
        (b'{"id": "5", "request": {"method": "ping"}}', None, "id: expected int, got str"),
        (b"[1, 2]", None, "expected object, got array"),
        (b'{"id": 5, "a": ' + b"[" * 5000 + b"]" * 5000 + b"}", None, "it is nested too deeply"),
        (b"text", None, "JSON is malformed: invalid character (byte 4)"),
    ],
)
def test_a_request_that_cannot_be_read_is_named_with_its_problem(line: bytes, number: int | None, problem: str) -> None:
    assert read_request(line) == Malformed(number, problem)


def test_a_reply_that_cannot_be_read_is_named_with_its_number() -> None:
    found = read_reply(PingRequest(), DoneEvent(8, msgspec.Raw(b'{"pid":"x"}')))
    assert found == Malformed(8, "pid: expected int, got str")
    found = read_reply(PingRequest(), DoneEvent(9, msgspec.Raw(b'{"pid":1,"a":' + b"[" * 5000 + b"]" * 5000 + b"}")))
    assert found == Malformed(9, "it is nested too deeply")
    assert too_long() == Malformed(None, "a line of more than 256 MiB")


def test_every_handle_of_a_reply_is_found() -> None:
    other, third = Handle("b.bin", (3,), "float32"), Handle("c.bin", (4,), "float32")
    assert list(handles(RunReply({"out": SHARED}, {"a": other, "b": third}))) == [SHARED, other, third]
    assert list(handles(WeightsReply({"kernel": other}))) == [other]
    assert list(handles(GradientReply(third))) == [third]
    assert list(handles(PingReply(4))) == []


def test_versions_that_differ_are_named() -> None:
    found = other_protocol(window=4, engine=2)
    assert (found.code, found.message) == (
        "other-protocol", "the engine process speaks protocol version 2 and this program version 4"
    )  # fmt: skip
    assert found.remedy == "install the same version of Layerwright for both"
