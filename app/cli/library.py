"""`layerwright operators`, `engines` and `samples`: what the program includes."""

from __future__ import annotations

from rich.table import Table

from app.cli.console import out, print_json, show
from app.cli.options import JsonOption


def operators(as_json: JsonOption = False) -> None:
    """List the operators with their parameters."""
    from designer.operators.registry import default_registry
    from designer.plugins import plugin_folder

    registry = default_registry()
    if as_json:
        from app.checks.operator_reference import operator_dict

        show(tuple(registry.diagnostics))
        activations = sorted(registry.activations.values(), key=lambda cls: cls.type)
        print_json([operator_dict(cls) for cls in (*registry, *activations)])
        return
    table = Table()
    for heading in ("type", "category", "parameters"):
        table.add_column(heading)
    for cls in registry:
        table.add_row(cls.type, cls.category.value, ", ".join(p.name for p in cls.parameters))
    out.print(table)
    out.print("attached activations: " + ", ".join(sorted(registry.activations)))
    out.print(f"plugin folder: {plugin_folder()}", highlight=False)
    show(tuple(registry.diagnostics))


def engines() -> None:
    """List the engines that can run a network, and why any of them is unavailable."""
    from designer.runtime.engine_registry import default_engines

    registry = default_engines()
    table = Table()
    table.add_column("engine", no_wrap=True)
    for heading in ("title", "computes in", "state"):
        table.add_column(heading)
    for engine in registry:
        problem = registry.problem(engine)
        state = "ready" if problem is None else f"{problem.message}: {problem.remedy}"
        devices = ", ".join(f"{' '.join(device.precisions)} on {device.kind}" for device in engine.devices)
        table.add_row(engine.name, engine.title, devices, state)
    out.print(table)
    show(tuple(registry.diagnostics))


def samples() -> None:
    """List the included samples, and the starting points, which have no weights."""
    import samples as package

    for path in (*package.documents(), *map(package.starting_point, package.STARTING_POINTS)):
        out.print(str(path), highlight=False)
