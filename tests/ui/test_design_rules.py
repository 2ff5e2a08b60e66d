"""Rules behind the Design panels, each alone: parameters of several layers, input sizes, weights, and facts about layers."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QTableWidget, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.design import size_rules_view, weights_report
from app.ui.design.layer_facts import PORTS, _shapes, _sums
from app.ui.design.raw_params import RawParams
from app.ui.design.shared_params import (
    activation_type,
    defaults,
    shared_parameters,
    text_of,
    text_to_write,
    with_templates,
    without_default,
)
from app.ui.design.size_rules_view import SizeRulesView
from app.ui.design.weights_report import WeightsCheck, WeightsReportView, summary
from app.ui.document.document import Document
from designer.files.weights import WeightKey, WeightReport, WeightStatus
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.live_cost import Total
from designer.operators.registry import default_registry
from designer.operators.size_contract import Cause, Failure, InputSizes, SizeContract, SizeRule

REGISTRY = default_registry()
CONV = REGISTRY.get("convolution")
assert CONV is not None


# --- parameters of several layers ------------------------------------------------------------------------------------

OLDER = SimpleNamespace(renamed={"old_kernel": "kernel"}, parameter=CONV.parameter, parameters=CONV.parameters)


def test_a_parameter_is_shared_if_name_kind_choices_and_bounds_are_the_same() -> None:
    def cls(*parameters):
        return SimpleNamespace(
            parameters=parameters, parameter=lambda name: next((p for p in parameters if p.name == name), None)
        )

    base = CONV.parameter("kernel")
    other = CONV.parameter("features")
    assert base is not None
    assert other is not None
    info = base.info
    same = replace(base, default=(7, 7))
    variants = {
        "name": replace(base, name="size"),
        "kind": replace(base, kind="ints"),
        "choices": replace(base, info=replace(info, choices=("a",))),
        "min": replace(base, info=replace(info, min=-5)),
        "max": replace(base, info=replace(info, max=99)),
    }
    first = cls(base, other)
    assert shared_parameters([first]) == [base, other]
    assert shared_parameters([first, cls(other, same)]) == [base, other], "in the order of the first"
    for what, changed in variants.items():
        assert shared_parameters([first, cls(changed, other)]) == [other], what
        assert shared_parameters([first, cls(base, other), cls(changed)]) == [], what
    assert shared_parameters([]) == shared_parameters([None]) == shared_parameters([first, None]) == []
    assert without_default([base, other], [first, cls(same), None]) == {"kernel"}
    assert without_default([base, other], [first, cls(replace(same, default=base.default))]) == set()


def test_texts_of_a_parameter_come_from_the_file_an_older_name_or_the_type() -> None:
    kernel = CONV.parameter("kernel")
    assert text_of(CONV, {"kernel": "5x5"}, kernel) == "5x5"
    assert text_of(CONV, {}, kernel) == kernel.format(CONV.parameter("kernel").default)
    others = [(cls, own) for cls in REGISTRY if (own := cls.parameter("kernel")) is not None]
    assert any(own.default != kernel.default for _, own in others)
    for cls, own in others:
        assert text_of(cls, {}, kernel) == own.format(own.default), "that of its own type"
    assert text_of(None, {}, kernel) == kernel.format(kernel.default)
    assert text_of(OLDER, {"old_kernel": "of the old tool"}, kernel) == "of the old tool"
    assert text_of(OLDER, {"old_kernel": "old", "kernel": "new"}, kernel) == "new"
    assert text_of(OLDER, {"old_kernel": "old"}, CONV.parameter("stride")) == text_of(
        CONV, {}, CONV.parameter("stride")
    )


def test_what_is_written_for_a_parameter() -> None:
    extension = next(p for p in CONV.parameters if p.info.extension)
    usual = extension.format(extension.default)
    assert text_to_write(CONV, extension.name, usual) is None
    assert text_to_write(CONV, extension.name, "no value") == "no value"
    assert (
        text_to_write(CONV, "kernel", kernel := CONV.parameter("kernel").format(CONV.parameter("kernel").default))
        == kernel
    )
    assert text_to_write(CONV, "unknown", "x") == "x"
    assert text_to_write(None, extension.name, usual) == usual


def test_the_defaults_of_layers_keep_what_is_not_theirs() -> None:
    extension = next(p for p in CONV.parameters if p.info.extension and p.kind == "int")
    kernel = CONV.parameter("kernel")
    usual = kernel.format(kernel.default)
    slope = REGISTRY.activations["leaky_relu"].parameters[0]
    known = {layer: REGISTRY.get(layer) for layer in ("convolution", "template")} | {"older": OLDER}
    registry = SimpleNamespace(get=known.get, activations=REGISTRY.activations)
    layers = [
        Layer("a", "convolution", params={"kernel": "9x9", "strange": "1", extension.name: "77"}, activation=ActivationSpec("leaky_relu", {slope.name: "0.7", "odd": "2"})),
        Layer("b", "convolution", params={"kernel": usual.replace("x", " x ")}),
        Layer("c", "template", params={"template": "part", "strange": "3"}),
        Layer("d", "of_a_plugin", params={"secret": "1"}, activation=ActivationSpec("unknown", {"x": "1"})),
        Layer("e", "older", params={"old_kernel": "nonsense", "stride": "2x2"}),
    ]  # fmt: skip
    params, activations = defaults(layers, registry)
    assert params["a"] == {"kernel": usual, "strange": "1"}, "an extension is written only if it differs"
    assert params["b"]["kernel"] in (usual, usual.replace("x", " x "))
    assert params["c"] == {"template": "part", "strange": "3"}
    assert "d" not in params
    stride = CONV.parameter("stride")
    assert params["e"] == {"old_kernel": usual, "stride": stride.format(stride.default)}
    assert activations == {"a": {slope.name: slope.format(slope.default), "odd": "2"}}
    assert [activation_type(layer) for layer in layers] == ["leaky_relu", "", "", "unknown", ""]


def test_the_templates_of_a_document_are_choices_of_an_instance() -> None:
    instance = REGISTRY.get("template")
    parameters = list(instance.parameters)
    made = with_templates(parameters, ["b", "a"])
    for before, after in zip(parameters, made, strict=True):
        if before.name == "template":
            assert (after.kind, after.info.choices) == ("choice", ("", "a", "b"))
        else:
            assert after == before
    assert with_templates(parameters, []) == parameters


def test_the_parameters_of_an_unknown_layer_are_those_of_the_shown_one(qtbot: QtBot) -> None:
    table = RawParams("raw")
    qtbot.addWidget(table)
    for params in ({"b": "2", "a": "1 & <i>"}, {"z": ""}, {}, {"x": "1", "y": "2", "w": "3"}):
        table.show_layer(Layer("l", "of_a_plugin", params=params))
        cells = [(table.item(r, 0).text(), table.item(r, 1).text()) for r in range(table.rowCount())]
        assert cells == sorted(params.items())
    assert table.editTriggers() == QTableWidget.EditTrigger.NoEditTriggers


# --- input sizes -----------------------------------------------------------------------------------------------------

FREE = SizeRule()
EIGHT = SizeRule(multiple_of=8, causes=(Cause("multiple_of", "down", 12, "it must be even"),))
LARGE = SizeRule(
    minimum=32,
    causes=(Cause("minimum", "conv", 31, "it is too small"), Cause("multiple_of", "down", 12, "it must be even")),
)
NONE = SizeRule(multiple_of=8, remainders=(), causes=(Cause("maximum", "pos", 65, "it is too large"),))


def contract(*inputs: InputSizes, **changes: object) -> SizeContract:
    values = {"inputs": inputs, "reference": {}, "coupled": (), "problem": None, "probe": None, **changes}
    return SizeContract(**values)  # type: ignore[arg-type]


class Rules(QObject):
    """Rules that the test knows."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.contract: SizeContract | None = None
        self.error, self.large = "", False
        self.asked: list[bool] = []
        self.fixed = 0

    def request(self, *, asked: bool = False) -> None:
        self.asked.append(asked)

    def fix(self) -> None:
        self.fixed += 1


@pytest.fixture
def sizes(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch):
    rules = Rules()
    monkeypatch.setattr(size_rules_view, "size_rules_of", lambda _context: rules)
    return rules, shown(qtbot, SizeRulesView(None, "sizes"), 500, 300)  # type: ignore[arg-type]


def parts(view: SizeRulesView) -> tuple[str, str, bool, bool, bool]:
    """Both texts, and whether the buttons are offered: compute, fix, and the fix is enabled."""
    fix, compute = (view.findChild(QPushButton, f"sizes.{name}") for name in ("fix", "compute"))
    text = view.findChild(QLabel, "sizes.text")
    assert text.isVisible() is bool(text.text())
    return text.text(), view._causes.text(), compute.isVisible(), fix.isVisible(), fix.isEnabled()


def test_sizes_are_computed_when_they_are_seen_or_asked_for(sizes) -> None:
    rules, view = sizes
    assert set(rules.asked) == {False}
    assert parts(view)[:4] == ("Computing ...", "", False, False)
    rules.large = True
    rules.changed.emit()
    assert parts(view)[:4] == ("", "", True, False)
    rules.asked.clear()
    view.findChild(QPushButton, "sizes.compute").click()
    assert rules.asked == [True]
    rules.error = "It failed."
    rules.changed.emit()
    assert parts(view)[:2] == ("It failed.", "")
    view.hide()
    rules.asked.clear()
    rules.changed.emit()
    assert rules.asked == []
    rules.contract = contract(InputSizes("image", EIGHT, EIGHT))
    view.show()
    rules.changed.emit()
    assert parts(view)[2:] == (False, True, True)
    view.findChild(QPushButton, "sizes.fix").click()
    assert rules.fixed == 1


def test_what_is_said_about_sizes(sizes) -> None:
    rules, view = sizes
    down, conv = "12 fails at 'down': it must be even", "31 fails at 'conv': it is too small"
    pos = "65 fails at 'pos': it is too large"
    tip = "Add layers that pad the inputs by reflection and crop the outputs"
    for found, text, causes, offered, enabled in (
        (contract(), "No input is an image.", "", False, True),
        (contract(InputSizes("a", FREE, FREE)), f"a: {FREE}", "", False, True),
        (contract(InputSizes("a", EIGHT, EIGHT)), f"a: {EIGHT}", down, True, True),
        (contract(InputSizes("a", EIGHT, FREE)), f"a: width {FREE}; height {EIGHT}", down, True, True),
        (contract(InputSizes("a", FREE, LARGE)), f"a: width {LARGE}; height {FREE}", f"{conv}\n{down}", True, True),
        (contract(InputSizes("a", EIGHT, LARGE, ("b", "c"))), f"a: width {LARGE}; height {EIGHT}; the same size as b, c", f"{down}\n{conv}", True, True),
        (contract(InputSizes("a", EIGHT, EIGHT), InputSizes("b", FREE, LARGE)), f"a: {EIGHT}\nb: width {LARGE}; height {FREE}", f"{down}\n{conv}\n{down}", True, True),
        (contract(InputSizes("a", NONE, NONE)), f"a: {NONE}", pos, True, False),
        (contract(InputSizes("a", FREE, FREE), exceptions=((4, 6), (8, 10))), f"a: {FREE}", "Except 6 x 4, 10 x 8", True, None),
        (contract(InputSizes("a", FREE, FREE), coupled=(("mix", "sizes must match"), ("x", "y"))), f"a: {FREE}", "sizes must match (mix)", True, False),
        (contract(problem=Failure("conv", "it never fits")), "No size works.", "conv: it never fits", False, False),
    ):  # fmt: skip
        rules.contract = found
        rules.changed.emit()
        said, why, compute, fix, can = parts(view)
        assert (said, why, compute, fix) == (text, causes, False, offered)
        button = view.findChild(QPushButton, "sizes.fix")
        if enabled is not None:
            assert can is enabled
            assert (button.toolTip() == tip) is enabled
        assert view._causes._role == ("warning" if found.problem is not None else "info")


def test_at_most_three_causes_of_an_input_are_named(sizes) -> None:
    rules, view = sizes
    many = SizeRule(multiple_of=8, causes=tuple(Cause("multiple_of", f"layer_{n}", n, "odd") for n in range(5)))
    twice = SizeRule(multiple_of=4, causes=many.causes[:2])
    rules.contract = contract(InputSizes("a", twice, many))
    rules.changed.emit()
    assert view._causes.text().split("\n") == [f"{n} fails at 'layer_{n}': odd" for n in range(3)]


# --- weights ---------------------------------------------------------------------------------------------------------

S = WeightStatus


@pytest.mark.parametrize(
    ("counts", "text", "role"),
    [
        ((3, 0, 0, 0), "3 of 3 tensors bound.", "positive"),
        ((0, 0, 0, 0), "0 of 0 tensors bound.", "positive"),
        ((2, 1, 0, 0), "2 of 3 tensors bound, 1 missing.", "error"),
        ((2, 0, 1, 0), "2 of 3 tensors bound, 1 wrong shape.", "error"),
        ((2, 0, 0, 4), "2 of 2 tensors bound, 4 unexpected.", "warning"),
        ((1, 2, 3, 4), "1 of 6 tensors bound, 2 missing, 3 wrong shape, 4 unexpected.", "error"),
    ],
)
def test_the_summary_of_weights(counts, text, role) -> None:
    kinds = (S.BOUND, S.MISSING, S.WRONG_SHAPE, S.UNEXPECTED)
    reports = [
        WeightReport(WeightKey("l", f"t{n}"), kind)
        for kind, count in zip(kinds, counts, strict=True)
        for n in range(count)
    ]
    assert summary(reports) == summary(reports[::-1]) == (text, role)


def test_every_tensor_is_a_row_with_the_worst_first(qtbot: QtBot) -> None:
    view = shown(qtbot, WeightsReportView("w"), 600, 400)
    table, details = view.findChild(QTableWidget, "w.tensors"), view.findChild(QToolButton, "w.details")
    reports = (
        WeightReport(WeightKey("b", "kernel"), S.BOUND, (4, 3), (4, 3), "file <1>"),
        WeightReport(WeightKey("a", "kernel"), S.BOUND, (2,), (2,)),
        WeightReport(WeightKey("", "extra"), S.UNEXPECTED, None, (7,)),
        WeightReport(WeightKey("c", "bias"), S.MISSING, (5,)),
        WeightReport(WeightKey("c", "kernel"), S.WRONG_SHAPE, (5, 1), (1, 5), "other.pt"),
    )

    def rows() -> list[list[str]]:
        return [[table.item(r, c).text() for c in range(4)] for r in range(table.rowCount())]

    view._found(reports)
    assert (details.isVisible(), table.isVisible()) == (True, False)
    details.click()
    assert table.isVisible()
    text = weights_report.shape_text
    assert rows() == [
        ["c.kernel", "wrong shape", text((5, 1)), text((1, 5))],
        ["c.bias", "missing", text((5,)), "-"],
        ["extra", "unexpected", "-", text((7,))],
        ["a.kernel", "bound", text((2,)), text((2,))],
        ["b.kernel", "bound", text((4, 3)), text((4, 3))],
    ]
    assert [table.item(r, 0).toolTip() for r in range(5)] == [
        "other.pt",
        "c.bias",
        "extra",
        "a.kernel",
        "<p>file &lt;1&gt;</p>",
    ]
    assert view._summary.text() == "2 of 4 tensors bound, 1 missing, 1 wrong shape, 1 unexpected."
    view._found(reports[:2])
    assert len(rows()) == 2
    view._refused((Diagnostic("x", "it cannot be read", remedy="choose another"), Diagnostic("y", "second")))
    assert (view._summary.text(), rows(), details.isVisible(), table.isVisible()) == (
        "It cannot be read. Choose another.",
        [],
        False,
        False,
    )
    assert view._summary._role == "error"
    view._found(reports[:1])
    assert table.isVisible(), "the details stay open"


def test_weights_are_checked_again_only_when_their_place_or_the_network_changes(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = shown(qtbot, WeightsReportView("w"), 600, 400)
    checked: list[tuple[Document, str]] = []
    forgotten: list[None] = []
    monkeypatch.setattr(view._check, "check", lambda document, path: checked.append((document, str(path))))
    monkeypatch.setattr(view._check, "forget", lambda: forgotten.append(None))
    documents = [Document(Graph([Layer("in", "input")]), REGISTRY, parent=view) for _ in "ab"]
    for document, place in zip(documents, ("/w", "/v"), strict=True):
        document.change_settings(weights=place)
    first, second = documents
    view.follow(first)
    assert checked == [(first, "/w")], "at once"
    first.change_settings(threads=3)
    first.change_settings(input_files={"in": "/photo.png"})
    assert (len(checked), len(forgotten)) == (1, 1), "other settings do not matter"
    first.change_settings(weights="/x")
    assert checked[1:] == [(first, "/x")]
    first.do(lambda g: commands.set_params(g, {"in": {"dims": "8x8x3"}}))
    assert len(checked) == 2, "one may go on typing"
    qtbot.waitUntil(lambda: len(checked) == 3)
    assert checked[2] == (first, "/x")
    first.do(lambda g: commands.move_layers(g, {"in": (64, 64)}))
    first.do(lambda g: commands.set_property(g, "comment", "text"))
    assert not view._later.isActive()
    view.follow(second)
    assert checked[3:] == [(second, "/v")]
    first.change_settings(weights="/y")
    assert len(checked) == 4
    second.change_settings(weights="")
    assert len(checked) == 4
    assert view._summary.text().startswith("No weights selected.")
    view.follow(None)
    assert len(forgotten) == 6


def test_only_the_answer_of_the_latest_check_is_reported(qtbot: QtBot, monkeypatch) -> None:
    owner, begun, found, failed = QObject(), [], [], []
    check = WeightsCheck(owner)
    monkeypatch.setattr(check._background, "start", begun.append)
    read = "app.ui.design.weights_report.load_weights"
    monkeypatch.setattr(read, lambda path, needed: SimpleNamespace(reports=path.name))
    check.found.connect(found.append)
    check.failed.connect(failed.append)
    document = Document(Graph(), REGISTRY)
    check.check(document, Path("one"))
    check.check(document, Path("two"))
    check.check(document, Path("three"))
    assert len(begun) == 1
    check._background.done.emit(("one",))
    assert (found, len(begun)) == ([], 2), "another one is wanted"
    check._background.failed.emit(("three failed",))
    assert (found, failed) == ([], [("three failed",)])
    check.check(document, Path("four"))
    check.forget()
    check._background.done.emit(("four",))
    assert found == []
    check.check(document, Path("five"))
    check.forget()
    check.check(document, Path("six"))
    check._background.done.emit(("five",))
    check._background.done.emit(("six",))
    assert found == [("six",)]
    check.check(document, Path("seven"))
    check._background.done.emit(("seven",))
    assert found == [("six",), ("seven",)]
    check.check(document, Path("eight"))
    check.check(document, Path("nine"))
    check._background.failed.emit(("eight failed",))
    assert failed == [("three failed",)], "another one is wanted"
    check.forget()
    check._background.failed.emit(("nine failed",))
    assert (found, failed) == ([("six",), ("seven",)], [("three failed",)])
    assert [work() for work in begun] == ["one", "three", "four", "five", "six", "seven", "eight", "nine"]


# --- facts -----------------------------------------------------------------------------------------------------------


def test_shapes_of_ports_are_those_of_what_is_connected() -> None:
    count = PORTS + 3
    graph = Graph(
        [
            *(Layer(f"i{n}", "input", params={"dims": f"{n + 1}x8x3"}) for n in range(count)),
            Layer("many", "concat", inputs=tuple(Source(f"i{n}") for n in range(count)), params={"axis": "3"}),
            Layer("gap", "element_wise", inputs=(None, Source("i2")), params={"operation": "add"}),
            Layer("cut", "split", inputs=(Source("i3"),), params={"sizes": "1,2"}),
            Layer("odd", "of_a_plugin", inputs=(Source("i1"), Source("i2"))),
        ]
    )
    inference = Inference(graph, REGISTRY)

    def facts(name: str) -> dict[str, str]:
        return dict(_shapes(inference.read(name).operator, graph[name], inference.states[name]))

    many = facts("many")
    shapes = [text for label, text in many.items() if label.startswith("Input ")]
    assert shapes == [f"N x 3 x 8 x {n + 1}\nfrom i{n}" for n in range(PORTS)]
    assert many["Inputs"] == "3 more"
    assert len({label for label in many if label.startswith("Input ")}) == PORTS
    gap = facts("gap")
    assert [text for label, text in gap.items() if label.startswith("Input")] == [
        f"{inference.states['gap'].inputs[0] if inference.states['gap'].inputs else 'unknown'}\nfrom i2"
    ]
    cut = facts("cut")
    outputs = [text for label, text in cut.items() if label.startswith("Output ")]
    assert outputs == [str(t) for t in inference.states["cut"].outputs]
    assert len(outputs) == 2
    assert cut["Input"] == "N x 3 x 8 x 4\nfrom i3"
    odd = facts("odd")
    assert [text.partition("\n")[2] for text in odd.values()] == ["from i1", "from i2"]


@pytest.mark.parametrize("unknown", [0, 2])
def test_sums_of_layers(unknown: int) -> None:
    total = Total(flops=1_500_000, learned=1_217, weights=4_936, outputs=2_097_152, layers=3, unknown=unknown)
    if unknown:
        assert _sums(total) == [("Parameters", "unknown"), ("FLOPs, batch size 1", "unknown")]
    else:
        assert _sums(total) == [
            ("Parameters", "1,217"), ("FLOPs, batch size 1", "~1.50 MFLOP"), ("Memory, FP32", "~4.82 KiB weights, ~2.00 MiB outputs"),
        ]  # fmt: skip
