"""Widgets of one test are gone before the next: pytest-qt only asks for their deletion."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def _delete_widgets():
    yield
    try:
        from PySide6.QtCore import QCoreApplication, QEvent
    except ImportError:
        return
    gc.collect(1)
    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
