"""The table of panels. The module of a panel is imported when the panel is first shown."""

from __future__ import annotations

from dataclasses import dataclass

DESIGN, ANALYSIS, PROFILE, TRAIN = "Design", "Analysis", "Profile", "Train"
WORKSPACES = (DESIGN, ANALYSIS, PROFILE, TRAIN)


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A panel in `module` of `app.ui`, docked at `area` ("left", "right", "bottom") and open by default in its `workspaces`."""

    id: str
    title: str
    module: str
    class_name: str
    area: str
    workspaces: tuple[str, ...]


PANELS = (
    PanelSpec("palette", "Layer Palette", "design.palette", "PalettePanel", "left", (DESIGN,)),
    PanelSpec(
        "network_overview", "Network Overview", "analysis.network_overview", "NetworkOverviewPanel", "left", (ANALYSIS,)
    ),
    PanelSpec("parameters", "Layer Editor", "design.layer_editor", "ParametersPanel", "right", (DESIGN,)),
    PanelSpec(
        "network_settings",
        "Network Settings",
        "design.network_settings",
        "NetworkSettingsPanel",
        "right",
        (DESIGN,),
    ),
    PanelSpec("analysis", "Analysis", "analysis.analysis_panel", "AnalysisPanel", "right", (ANALYSIS,)),
    PanelSpec(
        "channel_inspector",
        "Channel Inspector",
        "inspector.channel_inspector",
        "ChannelInspectorPanel",
        "bottom",
        (ANALYSIS,),
    ),
    PanelSpec(
        "number_formats",
        "Number Formats",
        "precision.number_formats_panel",
        "NumberFormatsPanel",
        "left",
        (),
    ),
    PanelSpec("blame", "Blame", "precision.blame_panel", "BlamePanel", "left", ()),
    PanelSpec("type_checking", "Type Checking", "design.type_checking", "TypeCheckingPanel", "bottom", (DESIGN,)),
    PanelSpec("code_view", "Code View", "design.code_view", "CodeViewPanel", "bottom", (DESIGN,)),
    PanelSpec("import_report", "Import Report", "design.import_report", "ImportReportPanel", "bottom", ()),
    PanelSpec("differences", "Differences", "design.differences", "DifferencesPanel", "bottom", ()),
    PanelSpec("variants", "Variants", "precision.variants_panel", "VariantsPanel", "bottom", ()),
    PanelSpec("graph_passes", "Graph Passes", "precision.passes_panel", "PassesPanel", "bottom", ()),
    PanelSpec("run_logger", "Inference Run Logger", "profile.run_logger", "RunLoggerPanel", "left", (PROFILE,)),
    PanelSpec("operator_table", "Operators", "profile.operator_table", "OperatorTablePanel", "bottom", (PROFILE,)),
    PanelSpec("charts", "Charts", "profile.charts", "ChartsPanel", "bottom", (PROFILE,)),
    PanelSpec(
        "run_differences", "Run Differences", "profile.run_differences", "RunDifferencesPanel", "bottom", (PROFILE,)
    ),
    PanelSpec("utilisation", "Utilization", "profile.utilization", "UtilizationPanel", "right", (PROFILE,)),
    PanelSpec("advice", "Advice", "profile.advice_panel", "AdvicePanel", "right", (PROFILE,)),
    PanelSpec("training", "Training", "train.training_panel", "TrainingPanel", "left", (TRAIN,)),
    PanelSpec("training_runs", "Training Runs", "train.runs_panel", "TrainingRunsPanel", "bottom", (TRAIN,)),
    PanelSpec("validation", "Validation Images", "train.validation_panel", "ValidationPanel", "right", (TRAIN,)),
    PanelSpec("network_health", "Network Health", "train.health_panel", "HealthPanel", "right", (TRAIN,)),
    PanelSpec("what_if", "What If", "profile.what_if_panel", "WhatIfPanel", "right", (PROFILE,)),
)
