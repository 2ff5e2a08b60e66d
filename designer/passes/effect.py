"""Comparison of a network before and after graph passes, on the user's input: all of them, or one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.passes.passes import PASSES, Optimized, PassResult, traffic
from designer.passes.rewriting import Subject
from designer.runtime.api import Progress, RunOptions
from designer.runtime.edit_effect import EditEffect, edit_effect
from designer.runtime.network import input_layers
from designer.runtime.session import Session
from designer.texts import tr_data


def pass_effect(
    graph: Graph,
    optimized: Optimized,
    registry: Registry,
    weights: Weights,
    options: RunOptions,
    files: Mapping[str, Path] | None = None,
) -> EditEffect:
    """How much the outputs differ after passes. Inputs without a file get noise."""
    sessions = [
        Session(graph, registry, weights, options),
        Session(optimized.graph, registry, optimized.weights, options),
    ]
    for session in sessions:
        _feed(session, files or {})
    return edit_effect(*sessions)


@dataclass(frozen=True)
class PassEffect:
    """What one pass does after those before it that are on. `effect` compares the outputs with those of the network; None: no rewriting."""

    result: PassResult
    on: bool
    effect: EditEffect | None


def pass_effects(session: Session, names: Collection[str], progress: Progress | None = None) -> Iterator[PassEffect]:
    """What every pass does to the network of `session`, on its inputs. Passes that are not in `names` are tried and not kept."""
    subject = Subject.of(inline(session.graph, session.registry), session.registry, session.weights)
    before = traffic(subject)
    for number, each in enumerate(PASSES.values()):
        if progress is not None:
            progress(number, len(PASSES), tr_data(each.title))
        made, count = each.run(subject)
        after = traffic(made)
        effect = None
        if count:
            other = Session(made.graph, session.registry, made.weights, session.options)
            for layer in session.fed_layers():
                fed = session.fed(layer)
                other.set_input(layer, fed.array, is_image=fed.is_image)
            effect = edit_effect(session, other)
        yield PassEffect(PassResult(each.name, count, before, after), each.name in names, effect)
        if each.name in names:
            subject, before = made, after


def _feed(session: Session, files: Mapping[str, Path]) -> None:
    for layer in files:
        session.set_input_file(layer, files[layer])
    for layer in input_layers(session.graph, session.inference):
        state = session.inference.states[layer]
        if layer not in files and state.outputs is not None:
            values = np.random.default_rng(0).random(state.outputs[0].concrete(), np.float32)
            session.set_input(layer, values, is_image=False)
