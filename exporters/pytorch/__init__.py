"""Export to PyTorch: the source of a module, and a project that trains it."""

from exporters.pytorch.initial_weights import export_initial_weights
from exporters.pytorch.losses import generate_losses
from exporters.pytorch.project import EditedFilesError, Training, export_project, outdated_files, project_files
from exporters.pytorch.source import class_name, generate_source, generate_template

__all__ = [
    "EditedFilesError",
    "Training",
    "class_name",
    "export_initial_weights",
    "export_project",
    "generate_losses",
    "generate_source",
    "generate_template",
    "outdated_files",
    "project_files",
]
