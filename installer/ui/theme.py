"""The look: Fusion, one font, one grid and one style sheet made from the palette; it follows the system live."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from installer import resources
from installer.ui.palette import DARK, LIGHT, Palette

GRID = 8
FAMILY = "Inter"
BODY, CAPTION, LEAD, TITLE = 13, 12, 14, 22
"""Font sizes in pixels at the system's own text size of 13."""

LARGEST_ICONS = 1.25


class Theme(QObject):
    """The colours in force. `changed` is sent when the system goes from light to dark or back."""

    changed = Signal()

    def __init__(self, forced: Palette | None = None) -> None:
        super().__init__()
        self._forced = forced
        self.palette = forced or _of_the_system()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow)

    def _follow(self) -> None:
        wanted = self._forced or _of_the_system()
        if wanted is not self.palette:
            self.palette = wanted
            self.apply()
            self.changed.emit()

    def apply(self) -> None:
        """Give the whole application font, colours and style sheet."""
        application = cast("QApplication", QApplication.instance())
        application.setStyle("Fusion")
        application.setFont(_font())
        application.setPalette(_qt_palette(self.palette))
        application.setStyleSheet(style_sheet(self.palette))


_current: list[Theme] = []


def use(theme: Theme) -> None:
    """Make a theme the one in force."""
    _current[:] = [theme]
    theme.apply()


def forget() -> None:
    """Let go of the theme in force, as when its window closes."""
    _current.clear()


def current() -> Theme:
    """Return the theme in force; one that follows the system where none was named."""
    if not _current:
        _current.append(Theme())
    return _current[0]


def _of_the_system() -> Palette:
    dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
    return DARK if dark else LIGHT


def _font() -> QFont:
    if FAMILY not in QFontDatabase.families():
        for name in ("Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf"):
            QFontDatabase.addApplicationFont(str(resources.file("assets", "fonts", name)))
    font = QFont(FAMILY)
    font.setPixelSize(scaled(BODY))
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


_scale = [1.0]


def set_text_scale(factor: float) -> None:
    """Make all text larger by this factor, as a person does for the whole system."""
    _scale[0] = factor


def scaled(pixels: int) -> int:
    """Return a size in pixels at the text size in force."""
    return round(pixels * _scale[0])


def scaled_icon(pixels: int) -> int:
    """Return an icon's size in pixels at the text size in force; a larger one would only take room from the words."""
    return round(pixels * min(_scale[0], LARGEST_ICONS))


def _qt_palette(p: Palette) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    for where, colour in (
        (role.Window, p.window),
        (role.WindowText, p.text),
        (role.Base, p.surface),
        (role.AlternateBase, p.window),
        (role.Text, p.text),
        (role.Button, p.surface),
        (role.ButtonText, p.text),
        (role.Highlight, p.accent),
        (role.HighlightedText, p.on_accent),
        (role.ToolTipBase, p.surface),
        (role.ToolTipText, p.text),
        (role.PlaceholderText, p.muted),
        (role.Link, p.accent),
    ):
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(p.muted))
    return palette


def style_sheet(p: Palette) -> str:
    """Return the style sheet for a palette. Widgets name their part by the dynamic property `part`."""
    check = resources.file("assets", "icons", f"check-on-{'dark' if p is DARK else 'light'}.svg").as_posix()
    return f"""
    * {{ font-family: "{FAMILY}"; }}
    QWidget {{ color: {p.text}; }}
    QMainWindow, QDialog, QWidget[part="page"], QScrollArea, QScrollArea > QWidget > QWidget[part="content"]
      {{ background: {p.window}; }}
    QWidget[part="side"] {{ background: {p.surface}; border-right: 1px solid {p.line}; }}
    QWidget[part="footer"] {{ background: {p.surface}; border-top: 1px solid {p.line}; }}
    QLabel {{ background: transparent; }}
    QLabel[part="title"] {{ font-size: {scaled(TITLE)}px; font-weight: 600; }}
    QLabel[part="lead"] {{ font-size: {scaled(LEAD)}px; color: {p.muted}; }}
    QLabel[part="heading"] {{ font-size: {scaled(LEAD)}px; font-weight: 600; }}
    QLabel[part="caption"], QLabel[part="caption"]:disabled {{ font-size: {scaled(CAPTION)}px; color: {p.muted}; }}
    QLabel[part="strong"] {{ font-weight: 600; }}
    QLabel[part="code"], QPlainTextEdit, QLabel[part="command"]
      {{ font-family: "DejaVu Sans Mono", "Cascadia Mono", Consolas, monospace; font-size: {scaled(CAPTION)}px; }}
    QPlainTextEdit[part="prose"] {{ font-family: "{FAMILY}"; font-size: {scaled(BODY)}px; }}
    QFrame[part="card"] {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 8px; }}
    QFrame[part="choice"] {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 8px; }}
    QFrame[part="choice"][chosen="true"] {{ background: {p.selected}; border: 1px solid {p.accent}; }}
    QFrame[part="choice"][focused="true"] {{ border: 2px solid {p.accent}; }}
    QFrame[part="problem"] {{ background: {p.surface}; border: 1px solid {p.bad}; border-radius: 8px; }}
    QFrame[part="advice"] {{ background: {p.surface}; border: 1px solid {p.warn}; border-radius: 8px; }}
    QFrame[part="rule"] {{ background: {p.line}; border: none; max-height: 1px; min-height: 1px; }}
    QPushButton {{ background: {p.surface}; border: 1px solid {p.control}; border-radius: 6px; padding: 7px 16px; }}
    QPushButton:hover {{ background: {p.selected}; }}
    QPushButton:focus, QLineEdit:focus, QComboBox:focus, QPlainTextEdit:focus
      {{ border: 2px solid {p.accent}; padding: 6px 15px; }}
    QLineEdit:focus {{ padding: 5px 7px; }}
    QComboBox:focus {{ padding: 5px 27px 5px 7px; }}
    QPlainTextEdit:focus {{ padding: 7px; }}
    QPushButton:disabled {{ color: {p.muted}; border-color: {p.line}; background: {p.window}; }}
    QPushButton[part="primary"]
      {{ background: {p.accent}; color: {p.on_accent}; border: 1px solid {p.accent}; font-weight: 600; }}
    QPushButton[part="primary"]:focus {{ border: 2px solid {p.text}; padding: 6px 15px; }}
    QPushButton[part="primary"]:disabled
      {{ background: {p.window}; color: {p.muted}; border: 1px solid {p.line}; }}
    QPushButton[part="quiet"] {{ background: transparent; border: 1px solid transparent; padding: 5px 8px;
      color: {p.accent}; text-align: left; }}
    QPushButton[part="quiet"]:hover {{ background: {p.selected}; }}
    QPushButton[part="quiet"]:focus {{ border: 2px solid {p.accent}; padding: 4px 7px; }}
    QPushButton[part="quiet"]:disabled {{ color: {p.muted}; }}
    QPushButton[part="filter"] {{ padding: 6px 14px; border-radius: 15px; }}
    QPushButton[part="filter"]:checked
      {{ background: {p.accent}; color: {p.on_accent}; border: 1px solid {p.accent}; }}
    QPushButton[part="filter"]:focus {{ border: 2px solid {p.accent}; padding: 5px 13px; }}
    QPushButton[part="filter"]:checked:focus {{ border: 2px solid {p.text}; }}
    QPushButton[part="step"] {{ background: transparent; border: 1px solid transparent; border-radius: 6px;
      text-align: left; padding: 7px 10px; color: {p.text}; }}
    QPushButton[part="step"]:disabled {{ color: {p.muted}; background: transparent; }}
    QPushButton[part="step"][now="true"] {{ background: {p.selected}; font-weight: 600; color: {p.text}; }}
    QPushButton[part="step"]:hover:enabled {{ background: {p.selected}; }}
    QPushButton[part="step"]:focus {{ border: 2px solid {p.accent}; padding: 6px 9px; }}
    QLineEdit {{ background: {p.surface}; border: 1px solid {p.control}; border-radius: 6px;
      padding: 6px 8px; selection-background-color: {p.accent}; selection-color: {p.on_accent}; }}
    QComboBox {{ background: transparent; border: 1px solid transparent; padding: 6px 28px 6px 8px; }}
    QComboBox:hover {{ background: {p.selected}; }}
    QComboBox::drop-down {{ border: none; width: 0; }}
    QComboBox::down-arrow {{ image: none; }}
    QComboBox QAbstractItemView {{ background: {p.surface}; border: 1px solid {p.control};
      selection-background-color: {p.accent}; selection-color: {p.on_accent}; }}
    QPlainTextEdit {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 6px; padding: 8px; }}
    QCheckBox, QRadioButton {{ spacing: 8px; background: transparent; padding: 3px; border: 2px solid transparent;
      border-radius: 6px; }}
    QCheckBox:focus, QRadioButton:focus {{ border: 2px solid {p.accent}; }}
    QRadioButton::indicator {{ width: 16px; height: 16px; border-radius: 9px; border: 1px solid {p.control};
      background: {p.surface}; }}
    QRadioButton::indicator:checked
      {{ width: 8px; height: 8px; border: 5px solid {p.accent}; background: {p.surface}; }}
    QRadioButton::indicator:disabled {{ border: 1px solid {p.line}; background: {p.window}; }}
    QCheckBox::indicator {{ width: 16px; height: 16px; border-radius: 4px; border: 1px solid {p.control};
      background: {p.surface}; }}
    QCheckBox::indicator:checked {{ border: 1px solid {p.accent}; background: {p.accent}; image: url("{check}"); }}
    QCheckBox::indicator:disabled {{ border: 1px solid {p.line}; background: {p.window}; }}
    QCheckBox:disabled, QRadioButton:disabled {{ color: {p.muted}; }}
    QProgressBar {{ background: {p.line}; border: none; border-radius: 4px; max-height: 8px; min-height: 8px; }}
    QProgressBar::chunk {{ background: {p.accent}; border-radius: 4px; }}
    QSlider::groove:horizontal {{ height: 4px; background: {p.line}; border-radius: 2px; }}
    QSlider::sub-page:horizontal {{ background: {p.accent}; border-radius: 2px; }}
    QSlider::handle:horizontal {{ width: 18px; margin: -8px 0; border-radius: 9px; background: {p.surface};
      border: 2px solid {p.accent}; }}
    QSlider:focus {{ border: 2px solid {p.accent}; border-radius: 6px; }}
    QScrollArea {{ border: none; }}
    QAbstractScrollArea::corner {{ background: transparent; border: none; }}
    QScrollArea:focus {{ border: 2px solid {p.accent}; border-radius: 6px; }}
    QScrollBar:vertical {{ background: transparent; width: 12px; margin: 2px; }}
    QScrollBar::handle:vertical {{ background: {p.control}; border-radius: 4px; min-height: 32px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 2px; }}
    QScrollBar::handle:horizontal {{ background: {p.control}; border-radius: 4px; min-width: 32px; }}
    QToolTip {{ background: {p.surface}; color: {p.text}; border: 1px solid {p.control}; padding: 4px; }}
    """
