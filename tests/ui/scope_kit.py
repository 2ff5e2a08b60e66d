"""What the insides of templates have in common with the file that they belong to."""

from __future__ import annotations

from app.ui.document.template_view import TemplateView
from app.ui.engine.context import Context
from designer.operators.inside import InsideInference, feeds_of
from designer.operators.training_branch import training_branch


def check_views(context: Context) -> None:
    """Every open template is as if it had just been derived from the file."""
    view = context.document
    while isinstance(view, TemplateView):
        inside = context.root.graph.inside(view.template)
        assert view.graph == inside
        feeds = feeds_of(view.outer.inference, view.instance, inside.templates[view.template].inputs)
        fresh = InsideInference(inside, context.registry, feeds)
        assert view.inference.states == fresh.states
        assert view.inference.diagnostics() == fresh.diagnostics()
        within = view.instance in view.outer.training
        assert view.training == (frozenset(inside.layers) if within else training_branch(inside, context.registry))
        view = view.outer
