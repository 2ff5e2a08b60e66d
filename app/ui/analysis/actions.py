"""Actions on inputs that play: folders, videos and cameras."""

from __future__ import annotations

from app.ui.engine.playback import Playback
from app.ui.widgets.action import Action, ActionGroup, Need

MOVING = Need(lambda s: s.moving, "no input is a folder, a video or a camera: choose one in Analysis")

ACTIONS = (
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
