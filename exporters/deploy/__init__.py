"""Export of a folder that runs a network without this program."""

from exporters.deploy.deployment import Deployment, export_deployment

__all__ = ["Deployment", "export_deployment"]
