"""Actions that edit a layer together with its trained weights, and Save Weights As."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QInputDialog, QMessageBox, QWidget

from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.widgets.action import DOCUMENT, Action, ActionGroup, Need
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.file_output import report_result
from designer.files.file_names import file_name
from designer.files.weights import WEIGHTS
from designer.surgery.sparsity import candidates, expected_gain
from designer.texts import tr

ONE_LAYER = Need(lambda s: s.selected == 1, "select one layer")
MAX_FEATURES = 65_536


class WeightEdits(QObject):
    """Edits the selected layer with its weights."""

    def __init__(self, context: Context, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self._surgery = weight_surgery_of(context)

    @property
    def _layer(self) -> str:
        """The selected layer, called as the engine knows it."""
        return self._context.path_of(self._context.selection[0])

    def set_channels(self) -> None:
        """Ask for the number of output channels of the selected layer, and widen or narrow it."""
        layer = self._layer
        tensors = self._context.document.inference.states[self._context.selection[0]].outputs
        shape = tensors[0].shape if tensors else ()
        present = shape[1] if len(shape) > 1 and isinstance(shape[1], int) else 1
        features, agreed = QInputDialog.getInt(
            self._window,
            tr("Set Number of Channels"),
            tr(
                "Channels of {layer} (now {present}); more keep the function of the network:",
                layer=layer,
                present=present,
            ),
            present,
            1,
            MAX_FEATURES,
        )
        if agreed and features != present:
            self._surgery.operate("features", layer, features=features)

    def insert_identity(self) -> None:
        self._surgery.operate("identity", self._layer)

    def split(self) -> None:
        self._surgery.operate("split", self._layer)

    def fold(self) -> None:
        self._surgery.operate("fold", self._layer)

    def prune(self) -> None:
        """Say what 2:4 sparsity can gain for this network, and prune after the user agreed."""
        document = self._context.root
        found = candidates(document.graph, self._context.registry)
        box = QMessageBox(self._window)
        box.setObjectName("prune")
        box.setWindowTitle(tr("Prune to 2:4 Sparsity"))
        box.setText(expected_gain(found))
        box.setInformativeText(tr("Pruned weights are a new file. Undo restores the present ones."))
        agree = box.addButton(tr("&Prune"), QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        box.deleteLater()
        if box.clickedButton() is agree:
            self._surgery.operate("prune", "")

    def save_weights(self) -> None:
        """Ask for a file and write the weights of the document there."""
        document = self._context.root
        if not document.settings.weights:
            self._context.message.emit("error", tr("The network has no weights. Choose them in Network Settings."))
            return
        proposed = file_name(f"{document.path.stem if document.path is not None else document.graph.name}.safetensors")
        path = ask_save_path(self._window, tr("Save Weights As"), start_folder(document.file) / proposed, WEIGHTS)
        if path is not None:
            done = tr("Saved {name}", name=path.name)
            report_result(lambda: self._surgery.save(path), self._context.tell_result, done)


ACTIONS: tuple[ActionGroup[Any], ...] = (
    ActionGroup(
        WeightEdits,
        (
            Action(
                "weights.channels",
                "Set Number of &Channels...",
                "Widen or narrow the selected layer; the trained weights of all layers follow",
                WeightEdits.set_channels,
                ("Edit/weights",),
                needs=(ONE_LAYER,),
            ),
            Action(
                "weights.identity",
                "Insert &Identity Layer",
                "Insert a layer before the selected one that changes nothing until it is trained",
                WeightEdits.insert_identity,
                ("Edit/weights",),
                needs=(ONE_LAYER,),
            ),
            Action(
                "weights.split",
                "&Split Layer",
                "Split the selected convolution or fully connected layer into two with the same product",
                WeightEdits.split,
                ("Edit/weights",),
                needs=(ONE_LAYER,),
            ),
            Action(
                "weights.fold",
                "&Fold Batch Normalization",
                "Fold the selected batch normalization into the layer before it",
                WeightEdits.fold,
                ("Edit/weights",),
                needs=(ONE_LAYER,),
            ),
            Action(
                "weights.prune",
                "&Prune to 2:4 Sparsity...",
                "Say what sparse Tensor Cores can gain, and set two of every four weights to zero",
                WeightEdits.prune,
                ("Edit/weights",),
                needs=(DOCUMENT,),
            ),
            Action(
                "weights.save",
                "Save &Weights As...",
                "Write the weights of the network, as edited, to another file",
                WeightEdits.save_weights,
                ("File/save",),
                needs=(DOCUMENT,),
            ),
        ),
    ),
)
