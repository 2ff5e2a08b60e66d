"""Which method does what an action asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from app.ui.canvas.link_paths import STYLES
from app.ui.canvas.node_figures import FIGURES
from app.ui.canvas.walking import Way
from app.ui.shell.actions import VIEWS
from app.ui.shell.analysis_windows import open_side, report
from app.ui.shell.export.video import open_export
from app.ui.shell.panels import ANALYSIS, DESIGN, PROFILE, TRAIN
from app.ui.shell.windows import quit_all

if TYPE_CHECKING:
    from app.ui.shell.window import MainWindow

ZOOM_STEP = 1.25


def handlers(window: MainWindow) -> dict[str, Callable[[], object]]:
    """What each action of the table does in a window."""
    canvas, files, docks = window.canvas, window.files, window.docks
    return {
        "file.new": files.new,
        "file.open": files.ask_open,
        "file.save": files.save,
        "file.save_as": files.save_as,
        "file.compare": lambda: docks.show("differences"),
        "export.picture": lambda: open_picture(window, ".png"),
        "file.print": lambda: open_picture(window, ".pdf"),
        "file.new_window": window.new_window,
        "file.close": files.close,
        "file.reopen": files.reopen,
        "tab.next": lambda: window.tabs.step(1),
        "tab.previous": lambda: window.tabs.step(-1),
        "file.quit": quit_all,
        "export.pytorch": window.export_pytorch,
        "export.onnx": window.export_onnx,
        "edit.undo": window.undo,
        "edit.redo": window.redo,
        "edit.cut": canvas.cut_selection,
        "edit.copy": canvas.copy_selection,
        "edit.paste": canvas.paste,
        "edit.paste_linked": lambda: canvas.paste(keep_links=True),
        "edit.duplicate": canvas.duplicate_selection,
        "edit.duplicate_linked": lambda: canvas.duplicate_selection(keep_links=True),
        "edit.delete": canvas.delete_selection,
        "edit.delete_heal": lambda: canvas.delete_selection(heal=True),
        "edit.rename": canvas.rename_selection,
        "select.all": canvas.select_all,
        "edit.add": canvas.quick_add,
        "edit.bypass": canvas.bypass_selection,
        "edit.frame": canvas.add_frame,
        "edit.collapse": window.structure.collapse,
        "template.make": window.structure.ask_template,
        "template.dissolve": window.structure.dissolve,
        "template.enter": window.structure.enter,
        "template.leave": window.structure.leave,
        "template.rename": window.structure.ask_name,
        "template.port_up": lambda: window.structure.move_port(-1),
        "template.port_down": lambda: window.structure.move_port(1),
        "select.upstream": window.walker.upstream,
        "select.downstream": window.walker.downstream,
        "select.find": window.finder.open,
        "select.next": window.finder.next,
        "select.previous": lambda: window.finder.next(-1),
        "select.problem": window.finder.next_problem,
        "select.problem_back": lambda: window.finder.next_problem(-1),
        **_numbered(window),
        "edit.lay_out": canvas.arrange,
        "edit.lay_out_all": lambda: canvas.arrange(everything=True),
        "view.frame_all": canvas.frame_all,
        "view.frame_selection": canvas.frame_selection,
        "view.zoom_in": lambda: canvas.viewer.zoom_by(ZOOM_STEP),
        "view.zoom_out": lambda: canvas.viewer.zoom_by(1 / ZOOM_STEP),
        "view.zoom_100": lambda: canvas.viewer.zoom_by(1 / canvas.viewer.zoom),
        "view.minimap": window.toggle_minimap,
        **{f"view.links_{name}": partial(_show_links, window, name) for name in STYLES},
        **{f"view.figure_{name}": partial(_show_figure, window, name) for name in FIGURES},
        "edit.add_reroute": canvas.linking.points.add,
        "edit.remove_reroute": canvas.linking.points.remove,
        "edit.straighten": canvas.linking.points.straighten,
        "view.theme_system": lambda: window.set_theme("system"),
        "view.theme_dark": lambda: window.set_theme("dark"),
        "view.theme_light": lambda: window.set_theme("light"),
        "view.reset_layout": docks.arrange,
        "view.save_layout": partial(_save_layout, window),
        "run.inference": window.run_inference,
        "run.analysis": window.run_analysis,
        "run.stop": window.stop,
        "analysis.side_by_side": lambda: open_side(window),
        "analysis.report": lambda: report(window),
        "analysis.play": window.playback.play_all,
        "analysis.next": lambda: window.playback.step_all(1),
        "analysis.previous": lambda: window.playback.step_all(-1),
        "analysis.export_video": lambda: open_export(window),
        "workspace.design": lambda: docks.set_workspace(DESIGN),
        "workspace.analysis": lambda: docks.set_workspace(ANALYSIS),
        "workspace.profile": lambda: docks.set_workspace(PROFILE),
        "workspace.train": lambda: docks.set_workspace(TRAIN),
        "help.commands": lambda: window.commands.open_over(window),
        "help.shortcuts": window.show_shortcuts,
        "help.about": window.show_about,
    }


def _save_layout(window: MainWindow) -> None:
    window.menus.layouts.ask_name()  # the menus are made after the actions


def _show_links(window: MainWindow, name: str) -> None:
    window.looks.show_links(name)


def _show_figure(window: MainWindow, name: str) -> None:
    window.looks.show_figure(name)


def _numbered(window: MainWindow) -> dict[str, Callable[[], object]]:
    """The arrow keys and the saved views."""
    walker, views = window.walker, window.views
    found: dict[str, Callable[[], object]] = {}
    for way in Way:
        name = way.name.lower()
        found[f"select.{name}"] = partial(walker.step, way)
        found[f"select.extend_{name}"] = partial(walker.step, way, extend=True)
        found[f"edit.nudge_{name}"] = partial(walker.nudge, way)
    for number in VIEWS:
        found[f"view.recall_{number}"] = partial(views.recall, number)
        found[f"view.store_{number}"] = partial(views.store, number)
    return found


def open_picture(window: MainWindow, ending: str) -> None:
    """Ask for a picture of what is shown."""
    from app.ui.shell.export.picture import PictureDialog

    PictureDialog(window.context, window.canvas, ending, window).open()
