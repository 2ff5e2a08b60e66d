"""Actions on inputs that play: folders, videos and cameras."""

from __future__ import annotations

from typing import Any

from app.ui.analysis.image_input import ImageInput
from app.ui.engine.playback import Playback
from app.ui.widgets.action import Action, ActionGroup, Need

MOVING = Need(lambda s: s.moving, "no input is a folder, a video or a camera: choose one in Analysis")

INPUT = Need(lambda s: s.input_selected, "select one input layer")

ACTIONS: tuple[ActionGroup[Any], ...] = (
    ActionGroup(
        ImageInput,
        (
            Action(
                "analysis.open_input",
                "Open &Image Input...",
                "Choose the image, tensor or video that the selected input layer reads",
                ImageInput.open,
                ("Canvas/input", "Analysis/input"),
                (),
                (INPUT,),
                "folder-open-outline",
            ),
        ),
    ),
    ActionGroup(
        Playback,
        (
            Action(
                "analysis.play",
                "&Play or Pause",
                "Play the folders, videos and cameras",
                Playback.play_all,
                ("Analysis/playback",),
                ("Ctrl+Space",),
                (MOVING,),
                "play",
            ),
            Action(
                "analysis.next",
                "&Next Picture",
                "The next picture or frame of the inputs",
                lambda playback: playback.step_all(1),
                ("Analysis/playback",),
                ("Alt+PgDown",),
                (MOVING,),
                "step-forward",
            ),
            Action(
                "analysis.previous",
                "Pre&vious Picture",
                "The picture or frame before",
                lambda playback: playback.step_all(-1),
                ("Analysis/playback",),
                ("Alt+PgUp",),
                (MOVING,),
                "step-backward",
            ),
        ),
    ),
)
