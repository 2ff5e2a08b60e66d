"""A person who does anything at random to the real window, by mouse and keys, and a check of everything after each gesture.

All that is random comes from one seed, so a run can be repeated; `Player.log` says what was done.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QInputDialog, QLineEdit, QWidget
from soak_checks import check_canvas, check_graph

from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.node import LayerItem
from app.ui.canvas.template_name import TemplateNameDialog
from app.ui.document.document import Document
from app.ui.shell.window import MainWindow
from designer.files.document import parse_document, write_document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import INSTANCE

LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton
NONE, SHIFT, CONTROL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)
WORDS = ("conv", "relu", "add", "concat", "pool", "batch", "identity", "output", "input", "upsample", "mix", "nothing")
MOST = 40  # layers; with more the player deletes


def network(dice: random.Random) -> Graph:
    """Five to forty layers in a few rows, with skips, a gap, a dangling link and a frame."""
    layers = [Layer("in", "input", (0, 0), params={"dims": "32x32x3"})]
    for number in range(1, dice.randrange(5, MOST)):
        kind = dice.choice(("convolution", "identity", "element_wise", "concatenation", "batch_normalization"))
        before = [Source(dice.choice(layers[-4:]).name)]
        if kind in ("element_wise", "concatenation"):
            before.append(Source(dice.choice(layers).name))
        params = {"features": "4"} if kind == "convolution" else {}
        activation = ActivationSpec("relu") if kind == "convolution" and dice.random() < 0.5 else None
        place = (256 * (number % 8), 128 * (number // 8))
        layers.append(Layer(f"l{number}", kind, place, tuple(before), params, activation))
    layers.append(Layer("out", "output", (256 * 8, 0), (Source(layers[-1].name),)))
    layers.append(Layer("loose", "convolution", (0, 640), (Source("gone"),), {"features": "8"}))
    return Graph(layers, name="soak", frames=[Frame("f", "part", rect=(224, -64, 544, 320))])


class Player:
    """Plays on one window; `play` returns what it did."""

    def __init__(self, window: MainWindow, dice: random.Random) -> None:
        self.window, self.dice = window, dice
        self.canvas = window.canvas
        self.viewer = window.canvas.viewer
        self.context = window.context
        self.log: list[str] = []
        gestures: list[tuple[int, Callable[[], str]]] = [
            (10, self.click),
            (3, self.add_to_selection),
            (4, self.band),
            (10, self.move),
            (8, self.connect),
            (4, self.drop_link_in_the_empty),
            (3, self.take_link_off),
            (3, self.insert_on_link),
            (4, self.add),
            (3, self.rename),
            (4, self.parameter),
            (3, self.wheel),
            (3, self.pan),
            (2, self.drag_frame),
            (2, self.escape),
            (3, self.make_template),
            (3, self.enter_template),
            (2, self.reroute),
            (40, self.key),
        ]
        self._weights = [weight for weight, _ in gestures]
        self._gestures = [gesture for _, gesture in gestures]
        self._keys = (
            *("Del", "Ctrl+Del", "Ctrl+Z", "Ctrl+Z", "Ctrl+Z", "Ctrl+Shift+Z", "Ctrl+Y", "Ctrl+C", "Ctrl+X", "Ctrl+V"),
            *("Ctrl+Shift+V", "Ctrl+D", "Ctrl+Shift+D", "Ctrl+A", "M", "C", "L", "Shift+L", "F", "Home", "[", "]"),
            *("Left", "Right", "Up", "Down", "Shift+Right", "Shift+Up", "Alt+Left", "Alt+Down", "Ctrl+1", "1", "2"),
            *("F8", "Shift+F8", "F3", "Ctrl+G", "Return", "Backspace", "Ctrl+Shift+G", "Ctrl+0", "Ctrl+-"),
        )

    @property
    def document(self) -> Document:
        return self.context.document

    def show(self, graph: Graph) -> Document:
        """Open a network in the window."""
        document = Document(graph, self.context.registry, parent=self.context)
        self.context.set_document(document)
        self.viewer.frame_all(least=0.5)
        return document

    def play(self) -> None:
        """One gesture, and the window at rest after it."""
        gesture = self.key_of("Del") if len(self.document.graph) > MOST else None
        chosen = gesture or self.dice.choices(self._gestures, self._weights)[0]
        self.log.append(f"{getattr(chosen, '__name__', 'key')}...")
        self.log[-1] = chosen()
        self.rest()

    def rest(self) -> None:
        """Answer and close what opened, and let the window come to rest."""
        QApplication.processEvents()
        for widget in QApplication.topLevelWidgets():
            if widget.isVisible() and widget.isWindow() and not isinstance(widget, MainWindow):
                if isinstance(widget, QInputDialog) and self.dice.random() < 0.7:
                    self._type(widget.findChild(QLineEdit), self.dice.choice(("a", "block", "same name", "x/y", "")))
                elif isinstance(widget, TemplateNameDialog) and self.dice.random() < 0.9:
                    self._type(widget.line, f"part{self.dice.randrange(99)}")
                elif isinstance(widget, QDialog):
                    widget.reject()
                else:
                    widget.close()
        QApplication.processEvents()

    # --- gestures --------------------------------------------------------------------------------------------

    def _name(self) -> str | None:
        names = sorted(self.document.graph.layers)
        return self.dice.choice(names) if names else None

    def _seen(self, name: str) -> LayerItem:
        """The item of a layer that is in view, readable."""
        item = self.canvas.projection[name]
        self.viewer.reveal(item)
        QApplication.processEvents()
        return item

    def _at(self, place: QPointF) -> QPoint:
        return self.viewer.mapFromScene(place)

    def _title(self, item: LayerItem) -> QPoint:
        return self._at(item.pos() + QPointF(50, 10))

    def _drag(self, start: QPoint, end: QPoint, button: Qt.MouseButton = LEFT, keys: Qt.KeyboardModifier = NONE) -> str:
        view = self.viewer.viewport()
        QTest.mousePress(view, button, keys, start)
        for step in (0.4, 1.0):
            QTest.mouseMove(view, start + (end - start) * step)
        QTest.mouseRelease(view, button, keys, end)
        return f"{start.toTuple()} to {end.toTuple()}"

    def _point(self) -> QPoint:
        size = self.viewer.viewport().size()
        return QPoint(self.dice.randrange(40, size.width() - 40), self.dice.randrange(40, size.height() - 40))

    def _type(self, edit: QWidget | None, text: str) -> None:
        if isinstance(edit, QLineEdit):
            edit.selectAll()
            QTest.keyClick(edit, Qt.Key.Key_Delete)
            edit.insert(text[:-1])  # one key of a word is enough: searches look again at each
            QTest.keyClicks(edit, text[-1:])
            QTest.keyClick(edit, Qt.Key.Key_Return)

    def key_of(self, text: str) -> Callable[[], str]:
        def press() -> str:
            self.window.activateWindow()
            self.viewer.setFocus()
            QApplication.processEvents()
            if not self.context.selection and text == "Del":
                QTest.keySequence(self.viewer, "Ctrl+A")
                QApplication.processEvents()
                self.context.select(self.context.selection[: len(self.context.selection) // 2])
                QApplication.processEvents()
            QTest.keySequence(self.viewer, text)
            return f"key {text}"

        return press

    def key(self) -> str:
        return self.key_of(self.dice.choice(self._keys))()

    def click(self) -> str:
        name = self._name()
        if name is None:
            return "nothing to click"
        QTest.mouseClick(self.viewer.viewport(), LEFT, NONE, self._title(self._seen(name)))
        return f"click {name}"

    def add_to_selection(self) -> str:
        name = self._name()
        if name is None:
            return "nothing to add"
        keys = self.dice.choice((SHIFT, CONTROL))
        QTest.mouseClick(self.viewer.viewport(), LEFT, keys, self._title(self._seen(name)))
        return f"click {name} with {keys.name}"

    def band(self) -> str:
        return "band " + self._drag(self._point(), self._point(), keys=self.dice.choice((NONE, SHIFT)))

    def move(self) -> str:
        name = self._name()
        if name is None:
            return "nothing to move"
        start = self._title(self._seen(name))
        run = QPoint(self.dice.randrange(-200, 200), self.dice.randrange(-120, 120))
        return f"move {name} " + self._drag(start, start + run)

    def connect(self) -> str:
        source, target = self._name(), self._name()
        if source is None or target is None:
            return "nothing to connect"
        end, start = self._seen(target), self._seen(source)
        if not start.outputs or not end.inputs:
            return f"{source} and {target} have no ports"
        dot = self.dice.choice(end.inputs)
        self._drag(self._at(self.dice.choice(start.outputs).center()), self._at(dot.center()))
        return f"link {source} to {target} {dot.index}"

    def drop_link_in_the_empty(self) -> str:
        name = self._name()
        item = self._seen(name) if name is not None else None
        dots = (*item.inputs, *item.outputs) if item is not None else ()
        if not dots:
            return "no port"
        dot = self.dice.choice(dots)
        done = self._drag(self._at(dot.center()), self._point())
        return f"pull {name} {dot.look.name} " + done + self._search()

    def take_link_off(self) -> str:
        links = [(c, i) for _, _, c, i in self.document.graph.links() if self.canvas.projection.link(c, i) is not None]
        if not links:
            return "no link"
        name, index = self.dice.choice(links)
        start = self._at(self._seen(name).inputs[index].center())
        return f"take link {name} {index} off " + self._drag(start, start + QPoint(-30, 90))

    def insert_on_link(self) -> str:
        links = [(c, i) for _, _, c, i in self.document.graph.links()]
        if not links:
            return "no link"
        name, index = self.dice.choice(links)
        link = self.canvas.projection.link(name, index)
        if link is None:
            return "no such port"
        self.viewer.centerOn(link.path().pointAtPercent(0.5))
        QApplication.processEvents()
        QTest.mouseDClick(self.viewer.viewport(), LEFT, NONE, self._at(link.path().pointAtPercent(0.5)))
        return f"insert on {name} {index}" + self._search()

    def add(self) -> str:
        point = self._point()
        QTest.mouseMove(self.viewer.viewport(), point)
        self.viewer.setFocus()
        QTest.keyClick(self.viewer, self.dice.choice((Qt.Key.Key_Space, Qt.Key.Key_Tab)))
        return "add" + self._search()

    def _search(self) -> str:
        """Answer the search for operators, if it is open."""
        QApplication.processEvents()
        edit = self.window.findChild(QLineEdit, "quick_add.text")
        if edit is None or not edit.isVisible():
            return ""
        text = self.dice.choice(WORDS)
        self._type(edit, text)
        return f", search {text}"

    def rename(self) -> str:
        name = self._name()
        if name is None:
            return "nothing to rename"
        self.context.select((name,))
        self.key_of("F2")()
        QApplication.processEvents()
        editor = self.window.findChild(InlineEditor, "canvas.rename")
        new = self.dice.choice((f"r{self.dice.randrange(99)}", "in", "not good!"))
        if editor is not None:
            QTest.keyClicks(editor.field, new)
            QTest.keyClick(editor.field, Qt.Key.Key_Return)
            editor.discard()  # an invalid name stays open
        return f"rename {name} to {new}"

    def parameter(self) -> str:
        """Type into a field of the Layer Editor."""
        name = self._name()
        if name is None:
            return "no parameter"
        self.context.select((name,))
        QApplication.processEvents()
        panel = self.window.findChild(QWidget, "parameters")
        edits = (
            [e for e in panel.findChildren(QLineEdit) if e.isVisible() and e.isEnabled()] if panel is not None else []
        )
        if not edits:
            return f"{name} has no parameters"
        edit = self.dice.choice(sorted(edits, key=lambda e: (e.objectName(), e.y())))
        text = self.dice.choice(("1", "2", "3x3", "6*2", "16x16x3", "-5", "banana", ""))
        self._type(edit, text)
        return f"{edit.objectName()} of {name} = {text!r}"

    def wheel(self) -> str:
        point = self._point()
        steps = self.dice.choice((-480, -120, 120, 480))
        place = QPointF(point)
        event = QWheelEvent(
            place,
            QPointF(self.viewer.viewport().mapToGlobal(point)),
            QPoint(),
            QPoint(0, steps),
            Qt.MouseButton.NoButton,
            NONE,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(self.viewer.viewport(), event)
        return f"wheel {steps} at {point.toTuple()}"

    def pan(self) -> str:
        return "pan " + self._drag(self._point(), self._point(), MIDDLE)

    def drag_frame(self) -> str:
        frames = sorted(self.document.graph.frames)
        item = self.canvas.projection.frame(self.dice.choice(frames)) if frames else None
        if item is None:
            return "no frame"
        self.viewer.centerOn(item.rect.topLeft())
        QApplication.processEvents()
        start = self._at(item.rect.topLeft() + self.dice.choice((QPointF(80, 10), QPointF(1, 1))))
        return f"drag frame {item.frame.id} " + self._drag(start, start + QPoint(self.dice.randrange(-99, 99), 40))

    def escape(self) -> str:
        """Begin to drag something and think better of it."""
        view, start, end = self.viewer.viewport(), self._point(), self._point()
        name = self._name()
        if name is not None and self.dice.random() < 0.7:
            item = self._seen(name)
            dots = (*item.inputs, *item.outputs)
            start = self._at(dots[0].center()) if dots and self.dice.random() < 0.5 else self._title(item)
        QTest.mousePress(view, LEFT, NONE, start)
        QTest.mouseMove(view, (start + end) / 2)
        QTest.mouseMove(view, end)
        QTest.keyClick(self.viewer, Qt.Key.Key_Escape)
        QTest.mouseRelease(view, LEFT, NONE, end)
        return f"escape from {start.toTuple()} to {end.toTuple()}"

    def make_template(self) -> str:
        name = self._name()
        if name is None:
            return "nothing to make a template of"
        graph = self.document.graph
        part = sorted({name, *graph.consumers(name)})[:3]
        self.context.select(tuple(part))
        self.key_of("Ctrl+G")()
        return f"template of {', '.join(part)}"

    def enter_template(self) -> str:
        names = sorted(layer.name for layer in self.document.graph if layer.type == INSTANCE)
        if not names or self.dice.random() < 0.3:
            self.key_of("Backspace")()
            return "leave"
        name = self.dice.choice(names)
        self.context.select((name,))
        self.key_of("Return")()
        return f"enter {name}"

    def reroute(self) -> str:
        """A point on a link, or one less."""
        links = [(c, i) for _, _, c, i in self.document.graph.links()]
        link = self.canvas.projection.link(*self.dice.choice(links)) if links else None
        if link is None:
            return "no link"
        self.viewer.centerOn(link.path().pointAtPercent(0.5))
        QApplication.processEvents()
        point = self._at(link.path().pointAtPercent(self.dice.choice((0.3, 0.5, 0.6))))
        QTest.mouseDClick(self.viewer.viewport(), LEFT, Qt.KeyboardModifier.AltModifier, point)
        return f"point on {link.key}"

    # --- checks ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """The graph is whole, and the canvas and the selection are the graph's."""
        check_graph(self.document.graph)
        check_canvas(self.window)

    def check_deeply(self) -> None:
        """Inference is what it would be from scratch, and the file gives the same graph back."""
        root = self.context.root
        fresh = Inference(root.graph.copy(), root.registry)
        assert root.inference.states == fresh.states
        reading = parse_document(write_document(root.graph))
        assert reading.graph == root.graph
