"""The window's way in: one application, one theme, one conductor, one shell."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from PySide6.QtCore import QLibraryInfo, QTimer, QTranslator
from PySide6.QtWidgets import QApplication

from installer.text import Text, choose_language
from installer.ui import text_size, theme
from installer.ui.conductor import Conductor
from installer.ui.options import Options
from installer.ui.shell import Shell
from installer.ui.workroom import problem_of


def run(options: Options) -> int:
    """Open the window and return when it is closed."""
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)
    application.setApplicationName("Slipway")
    application.setDesktopFileName("slipway")
    theme.set_text_scale(text_size.of_the_system())
    theme.use(theme.Theme())
    shell = open_window(options)
    shell.show()
    return int(application.exec())


def open_window(options: Options) -> Shell:
    """Return the window, which reads the machine once it has been painted."""
    text = Text(choose_language(options.language, os.environ))
    conductor = Conductor(options, text)
    shell = Shell(conductor)
    _speak_in_dialogs(conductor)
    conductor.text_changed.connect(lambda: _speak_in_dialogs(conductor))
    _show_faults_of_ours(conductor)
    QTimer.singleShot(0, conductor.open)
    return shell


def _speak_in_dialogs(conductor: Conductor) -> None:
    """Let Qt's own dialogs speak the language in force."""
    application = QApplication.instance()
    assert application is not None
    known = application.findChild(QTranslator, "qtbase")
    if known is not None:
        application.removeTranslator(known)
        known.deleteLater()
    translator = QTranslator(application)
    translator.setObjectName("qtbase")
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if translator.load(f"qtbase_{conductor.text.language}", folder):
        application.installTranslator(translator)


def _show_faults_of_ours(conductor: Conductor) -> None:
    """Show what a slot raised as a problem; Qt would print it and go on as if nothing had happened."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        traceback.print_exception(kind, error, trace)
        conductor.show_problem(problem_of(error))

    sys.excepthook = show
