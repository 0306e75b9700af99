"""Words for the system around Slipway: encodings, variables, the window, and what watches over programs."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice


def foreign_encoding(problem: p.ForeignEncoding, t: Voice) -> ProblemText:
    """Return the words for a text that is not UTF-8."""
    return ProblemText(
        t.gettext("Another encoding"),
        t.gettext(
            "{source} is not plain UTF-8, but {encoding}.",
            source=t.quote(problem.source),
            encoding=t.quote(problem.encoding),
        ),
        t.gettext(
            "Slipway reads it anyway and writes its own files in UTF-8. For Docker Compose, save a file of yours as "
            "UTF-8 without a byte order mark."
        ),
    )


def variable_flaw(problem: p.VariableFlaw, t: Voice) -> ProblemText:
    """Return the words for a variable that misleads other programs."""
    name = t.quote(problem.variable)
    flaws = {
        "empty": (
            t.gettext("The variable {name} is set, but empty. Many programs then send an empty token.", name=name),
            t.gettext("Slipway leaves it out. For other programs, remove the variable."),
        ),
        "blanks": (
            t.gettext("The value of {name} begins or ends with a space or a line break.", name=name),
            t.gettext("Slipway takes them off. For other programs, set the variable anew without them."),
        ),
        "loopback_through_proxy": (
            t.gettext("With {name}, programs ask the proxy even for this computer itself (127.0.0.1).", name=name),
            t.gettext("Slipway goes around it. For other programs, add localhost,127.0.0.1 to NO_PROXY."),
        ),
        "undecodable": (
            t.gettext("The folder in {name} has characters that this program's code page does not have.", name=name),
            t.gettext("Slipway asks Windows itself for its folders. If a folder is not found, choose another one."),
        ),
    }
    sentence, remedy = flaws.get(
        problem.flaw,
        (
            t.gettext("The variable {name} misleads other programs.", name=name),
            t.gettext("Slipway goes around it. For other programs, check its value."),
        ),
    )
    return ProblemText(t.gettext("Odd variable in the environment"), sentence, remedy)


def qt_library_missing(problem: p.QtLibraryMissing, t: Voice) -> ProblemText:
    """Return the words for a library that the window needs."""
    return ProblemText(
        t.gettext("Library for the window missing"),
        t.gettext(
            "The window needs the library {library}, which this system does not have.",
            library=t.quote(problem.library),
        ),
        t.gettext(
            "Install it with the command shown. Without a window everything works, too: slipway install on the "
            "command line."
        ),
    )


def qt_plugin_missing(problem: p.QtPluginMissing, t: Voice) -> ProblemText:
    """Return the words for a window toolkit that cannot draw here."""
    return ProblemText(
        t.gettext("No window possible here"),
        t.gettext("The window toolkit cannot draw on this screen (part {plugin}).", plugin=t.quote(problem.plugin)),
        t.gettext(
            "Install Slipway anew. On a computer without a screen use the command line: slipway install. On Linux, "
            "QT_QPA_PLATFORM=wayland or xcb chooses another way to draw."
        ),
    )


def thread_still_running(t: Voice) -> ProblemText:
    """Return the words for a window that was closed over its work."""
    return ProblemText(
        t.gettext("Closed while working"),
        t.gettext("A window was closed while its work was still going on, and the program ended with it."),
        t.gettext(
            "Nothing is lost: what is loaded already stays. Slipway's own window asks, stops its work and waits for it."
        ),
    )


def wrong_thread(t: Voice) -> ProblemText:
    """Return the words for a window that was changed from outside."""
    return ProblemText(
        t.gettext("Window changed from outside"),
        t.gettext("Part of a program changed its window from a place that may not do so."),
        t.gettext(
            "Start the program again. Slipway's own window takes changes in one place only; if it was Slipway's, "
            "please report it."
        ),
    )


def quarantined(problem: p.Quarantined, t: Voice) -> ProblemText:
    """Return the words for a program that a virus scanner took away."""
    sentence = t.gettext("A virus scanner took a program away as {threat}.", threat=t.quote(problem.threat))
    if problem.file:
        sentence = t.gettext(
            "A virus scanner took {file} away as {threat}.", file=t.quote(problem.file), threat=t.quote(problem.threat)
        )
    return ProblemText(
        t.gettext("Virus scanner stepped in"),
        sentence,
        t.gettext(
            "Programs packed from Python are often taken for malware by a guess. Compare the checksum with the one "
            "beside the download. If it is the same, allow the file in the scanner, or install with pip."
        ),
    )


def nvml_module_doubled(problem: p.NvmlModuleDoubled, t: Voice) -> ProblemText:
    """Return the words for the package that only leads to another."""
    return ProblemText(
        t.gettext("Outdated Python package"),
        t.gettext("The package {module} only leads to nvidia-ml-py now.", module=t.quote(problem.module)),
        t.gettext("For Slipway nothing has to be done. In an environment of your own: pip uninstall pynvml."),
    )


def cause_unknown(t: Voice) -> ProblemText:
    """Return the words for what nobody knows yet."""
    return ProblemText(
        t.gettext("Cause unknown"),
        t.gettext("Slipway does not know a cause for this."),
        t.gettext(
            "The technical details show the lines that say most. Please report it, with the archive that slipway "
            "bundle packs and with what you did before."
        ),
    )
