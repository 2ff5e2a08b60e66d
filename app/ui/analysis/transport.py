"""Controls of an input that has frames: play, step, scrub, speed, and what is really achieved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QSlider, QToolButton, QVBoxLayout, QWidget

from app.ui.engine.playback import Playback, Track
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from designer.texts import tr

SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


class Transport(QWidget):
    """Shows one track of `playback`; hidden where the input has none."""

    def __init__(self, layer: str, playback: Playback, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.layer = layer
        self._playback = playback
        self._name = f"analysis.input.{layer}"
        self.setObjectName(f"{self._name}.transport")
        self.setAccessibleName(tr("Frames for {layer}", layer=layer))
        self._back = self._button("previous", "step-backward", tr("Step back"), partial(playback.step, layer, -1))
        self._play = self._button("play", "play", tr("Play"), self._toggle)
        self._next = self._button("next", "step-forward", tr("Step"), partial(playback.step, layer, 1))
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setObjectName(f"{self._name}.scrub")
        self._slider.setAccessibleName(tr("Frame for {layer}", layer=layer))
        self._slider.setMinimumWidth(48)
        self._slider.valueChanged.connect(partial(playback.seek, layer))
        self._place = self._label("place", tr("Place in the source of {layer}", layer=layer))
        self._figures = self._label("figures", tr("Measured while playing {layer}", layer=layer))
        self._speed = QComboBox()
        self._speed.setObjectName(f"{self._name}.speed")
        self._speed.setAccessibleName(tr("Speed for {layer}", layer=layer))
        self._speed.setToolTip(tr("Speed of playing"))
        for speed in SPEEDS:
            self._speed.addItem(f"{speed:g} x", speed)
        self._speed.activated.connect(lambda i: playback.set_way(layer, speed=SPEEDS[i]))
        self._loop = self._button("loop", "repeat", tr("Loop"), self._set_ways)
        self._loop.setCheckable(True)
        self._loop.setToolTip(tr("Begin again at the end"))
        self._loop.setAccessibleName(tr("Loop {layer}", layer=layer))
        self._every = QCheckBox(tr("Every frame"))
        self._every.setObjectName(f"{self._name}.every")
        self._every.clicked.connect(self._set_ways)
        self._every.setToolTip(
            tr("Show each frame, however long the network takes; otherwise what comes too late is dropped and counted")
        )
        self._every.setAccessibleName(tr("Every frame of {layer}", layer=layer))
        self._lay_out()
        playback.changed.connect(self._on_changed)
        self.show_track()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(0)
        for widget in (self._back, self._play, self._next):
            buttons.addWidget(widget)
        buttons.addSpacing(6)
        buttons.addWidget(self._slider, 1)
        buttons.addWidget(self._place, 1)
        ways = QHBoxLayout()
        ways.setSpacing(4)
        for other in (self._speed, self._loop, self._every):
            ways.addWidget(other)
        ways.addStretch(1)
        self._frames = self._label("frame", tr("Frame shown for {layer}", layer=self.layer))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 2)
        column.setSpacing(2)
        column.addLayout(buttons)
        column.addWidget(self._frames)
        column.addLayout(ways)
        column.addWidget(self._figures)

    def _button(self, name: str, icon: str, title: str, action: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setAccessibleName(f"{title}: {self.layer}")
        button.setObjectName(f"{self._name}.{name}")
        button.setAutoRaise(True)
        theme.set_icon(button, icon)
        button.clicked.connect(partial(_ignoring, action))
        return button

    def _label(self, name: str, title: str) -> ElidedLabel:
        label = ElidedLabel()
        label.setObjectName(f"{self._name}.{name}")
        label.setAccessibleName(title)
        label.setFont(theme.mono_font())
        label.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        return label

    def _toggle(self) -> None:
        track = self._playback.tracks.get(self.layer)
        if track is not None:
            self._playback.play(self.layer, not track.playing)

    def _set_ways(self) -> None:
        self._playback.set_way(self.layer, loop=self._loop.isChecked(), every=self._every.isChecked())

    def _on_changed(self, layer: str) -> None:
        if layer == self.layer:
            self.show_track()

    def show_track(self) -> None:
        """Show the track as it is now."""
        track = self._playback.tracks.get(self.layer)
        self.setVisible(track is not None and not track.error)
        if track is None:
            return
        camera, known = track.kind == "camera", track.frames > 0
        self._slider.setVisible(not camera)
        self._place.setVisible(camera)
        self._loop.setVisible(not camera)
        self._back.setVisible(not camera)
        self._speed.setVisible(not camera)
        self._every.setVisible(track.kind == "video")
        for widget in (self._back, self._next, self._play, self._slider):
            widget.setEnabled(known or camera)
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, max(track.frames - 1, 0))
            self._slider.setPageStep(max(1, track.frames // 10))
            self._slider.setValue(track.position)
        theme.set_icon(self._play, "pause" if track.playing else "play")
        self._name_buttons(track)
        with QSignalBlocker(self._speed):
            self._speed.setCurrentIndex(SPEEDS.index(track.speed) if track.speed in SPEEDS else -1)
        self._loop.setChecked(track.loop)
        self._every.setChecked(track.every)
        self._frames.setText(_place(track))
        self._place.setText(tr("on") if track.playing else tr("off"))
        figures = self._measured(track)
        self._figures.setText(figures)
        self._figures.setVisible(bool(figures))

    def _name_buttons(self, track: Track) -> None:
        file = track.kind == "folder"
        camera = track.kind == "camera"
        texts = (
            (self._back, tr("The image before (PgUp)") if file else tr("The frame before (PgUp)")),
            (self._play, tr("Pause (Ctrl+Space)") if track.playing else tr("Play (Ctrl+Space)")),
            (
                self._next,
                tr("Take one image")
                if camera
                else tr("The next image (PgDn)")
                if file
                else tr("The next frame (PgDn)"),
            ),
        )
        for button, text in texts:
            if button.toolTip() != text:
                button.setToolTip(text)
                button.setAccessibleName(f"{text}: {self.layer}")

    def _measured(self, track: Track) -> str:
        """What is achieved; empty while nothing has been played."""
        achieved = track.achieved
        if not achieved:
            return ""
        if track.kind == "camera":
            parts = [tr("{now:.1f} fps, camera {wanted:.1f}", now=achieved, wanted=track.fps)]
        else:
            parts = [tr("{now:.1f} of {wanted:.4g} fps", now=achieved, wanted=track.rate)]
        milliseconds = self._playback.milliseconds
        if milliseconds:
            parts.append(tr("network {milliseconds:.0f} ms", milliseconds=milliseconds))
        parts.append(tr("{count} dropped", count=track.dropped))
        return " · ".join(parts)


def _ignoring(action: Callable[[], None], checked: bool = False) -> None:
    action()


def _place(track: Track) -> str:
    if track.kind == "camera":
        return tr("image {number}", number=track.position) if track.position else tr("no image taken yet")
    if not track.frames:
        return tr("counting the frames …")
    number = f"{track.position + 1} / {track.frames}"
    if track.kind == "folder":
        return f"{number}  {track.names[track.position]}"
    seconds = track.time(track.position)
    return tr(
        "frame {number}  {minutes}:{seconds:05.2f}", number=number, minutes=int(seconds // 60), seconds=seconds % 60
    )
