"""Dock windows, one file each. The window reads this table and imports a panel when it is shown first."""

from __future__ import annotations

from dataclasses import dataclass

DESIGN, ANALYSIS, PROFILE, TRAIN = "Design", "Analysis", "Profile", "Train"
WORKSPACES = (DESIGN, ANALYSIS, PROFILE, TRAIN)


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """Where a panel stands: `area` is "left", "right" or "bottom"; it opens by itself in its `workspaces`."""

    id: str
    title: str
    class_name: str
    area: str
    workspaces: tuple[str, ...]

    @property
    def module(self) -> str:
        return f"app.ui.panels.{self.id}"


PANELS = (
    PanelSpec("palette", "Palette", "PalettePanel", "left", (DESIGN,)),
    PanelSpec("network_overview", "Network Overview", "NetworkOverviewPanel", "left", (ANALYSIS,)),
    PanelSpec("parameters", "Layer Editor", "ParametersPanel", "right", (DESIGN, TRAIN)),
    PanelSpec("network_settings", "Network Settings", "NetworkSettingsPanel", "right", (DESIGN, TRAIN)),
    PanelSpec("analysis", "Analysis", "AnalysisPanel", "right", (ANALYSIS,)),
    PanelSpec("channel_inspector", "Channel Inspector", "ChannelInspectorPanel", "bottom", (ANALYSIS,)),
    PanelSpec("type_checking", "Type Checking", "TypeCheckingPanel", "bottom", (DESIGN, TRAIN)),
    PanelSpec("code_view", "Code View", "CodeViewPanel", "bottom", (DESIGN, TRAIN)),
    PanelSpec("differences", "Differences", "DifferencesPanel", "bottom", ()),
    PanelSpec("run_logger", "Inference Run Logger", "RunLoggerPanel", "left", (PROFILE,)),
    PanelSpec("operator_table", "Operators", "OperatorTablePanel", "bottom", (PROFILE,)),
    PanelSpec("utilisation", "Utilisation", "UtilisationPanel", "right", (PROFILE,)),
)
