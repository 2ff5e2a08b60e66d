"""What is not a step: kept properties that undo passes by, settings in edits, and what only the canvas shows."""

from __future__ import annotations

from designer.graph import commands
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import Layer
from designer.graph.template import Template, would_recur


def test_what_is_put_aside_is_no_step_but_has_to_be_saved() -> None:
    history = History(Graph([Layer("a", "identity")]))
    reported: list[ChangeSet] = []
    history.subscribe(reported.append)
    history.commit(commands.move_layers(history.graph, {"a": (16, 0)}))
    history.put(Edit("Keep", properties={"view.1": (None, "0,0,1")}))
    assert history.undo_title == "Move"
    assert reported[-1].properties == {"view.1"}
    history.undo()
    assert history.graph.properties["view.1"] == "0,0,1"
    assert not history.is_clean
    history.mark_clean()
    assert history.is_clean
    assert not history.put(Edit("Nothing"))
    assert history.is_clean


def test_settings_in_edits_are_turned_chained_and_told() -> None:
    first = Edit("a", settings={"threads": (0, 2)})
    second = Edit("b", settings={"threads": (2, 0), "seed": (None, 5)})
    assert first
    assert first.reversed().settings == {"threads": (2, 0)}
    assert first.then(second).settings == {"seed": (None, 5)}
    assert ChangeSet.of(second).settings == {"threads": 0, "seed": 5}
    assert ChangeSet.of(second)


def test_collapsing_is_told_as_redrawing_alone() -> None:
    graph = Graph([Layer("a", "identity")])
    change = graph.apply(commands.collapse_layers(graph, ["a"], True))
    assert change.redrawn == {"a"}
    assert not change.computed
    assert graph["a"].collapsed


def test_who_is_made_of_what() -> None:
    inner = Template("inner", (Layer("x", "template_input"),))
    outer = Template("outer", (Layer("i", "template", params={"template": "inner"}),))
    alone = Template("alone")
    layers = [
        Layer("a", "template", params={"template": "outer"}),
        Layer("b", "template", params={"template": "alone"}),
    ]
    graph = Graph(layers, templates=(inner, outer, alone))
    assert graph.instances_using(["inner"]) == {"a"}
    assert graph.instances_using(["alone", "gone"]) == {"b"}
    assert graph.instance_counts() == {"inner": 1, "outer": 1, "alone": 1}
    assert would_recur(graph.templates, ["inner"], "outer") == "inner"
    assert would_recur(graph.templates, ["outer"], "inner") == ""
