"""Words for the way over the network and for what comes back broken."""

from __future__ import annotations

from installer.domain import problems as p
from installer.text.voice import ProblemText, Voice

SHOWN_OF_A_HASH = 12


def unreachable(problem: p.Unreachable, t: Voice) -> ProblemText:
    """Return the words for a host that does not answer."""
    return ProblemText(
        t.gettext("Server not reachable"),
        t.gettext("{host} cannot be reached.", host=t.quote(problem.host)),
        t.gettext(
            "Check the internet connection, the proxy and the VPN, then try again. What is loaded already stays."
        ),
    )


def tls_not_trusted(problem: p.TlsNotTrusted, t: Voice) -> ProblemText:
    """Return the words for a certificate that is not trusted; Docker has its own store of them."""
    if problem.by_engine:
        remedy = t.gettext(
            "Give Docker the root certificate of your network: on Windows install it for the computer and restart "
            "Docker Desktop, on Linux put it into the system's certificates and restart Docker."
        )
    else:
        remedy = t.gettext(
            "Set the variable REQUESTS_CA_BUNDLE to the file with your network's root certificate, then try again. "
            "The network's administrator has this file."
        )
    return ProblemText(
        t.gettext("Certificate not trusted"),
        t.gettext(
            "The certificate of {host} is not trusted, as behind a proxy or a virus scanner that opens encrypted "
            "connections.",
            host=t.quote(problem.host),
        ),
        remedy,
    )


def stalled(problem: p.Stalled, t: Voice) -> ProblemText:
    """Return the words for a transfer that stands still."""
    return ProblemText(
        t.gettext("Download stands still"),
        t.gettext(
            "Nothing of {what} has arrived for {time}.", what=t.quote(problem.what), time=t.duration(problem.seconds)
        ),
        t.gettext("Check the connection and try again. What is loaded already stays."),
    )


def captive_portal(problem: p.CaptivePortal, t: Voice) -> ProblemText:
    """Return the words for a web page in place of a file."""
    return ProblemText(
        t.gettext("A web page came instead"),
        t.gettext("A web page came instead of the file. The address was {url}.", url=t.quote(problem.url)),
        t.gettext(
            "Open any page in the browser: perhaps this network wants you to sign in. In a company the proxy may block "
            "the address; ask its administrator."
        ),
    )


def server_error(problem: p.ServerError, t: Voice) -> ProblemText:
    """Return the words for an answer that is of no use."""
    return ProblemText(
        t.gettext("Server has a fault"),
        t.gettext(
            "{host} gave an answer that is of no use (HTTP {status}).",
            host=t.quote(problem.host),
            status=problem.status,
        ),
        t.gettext("Try again later. What is loaded already stays."),
    )


def rate_limited(problem: p.RateLimited, t: Voice) -> ProblemText:
    """Return the words for a host that asks to wait."""
    if problem.retry_after_s:
        remedy = t.gettext("Try again in {time}.", time=t.duration(problem.retry_after_s))
    else:
        remedy = t.gettext("Try again in some minutes. With a sign-in more requests are allowed.")
    return ProblemText(
        t.gettext("Too many requests"),
        t.gettext("{host} takes no more requests from this connection for a while.", host=t.quote(problem.host)),
        remedy,
    )


def wrong_content(problem: p.WrongContent, t: Voice) -> ProblemText:
    """Return the words for a file that is not what was announced."""
    sentence = t.gettext("The content of {file} is not what was announced.", file=t.quote(problem.file))
    if problem.expected and problem.got:
        sentence = t.gettext(
            "The content of {file} is not what was announced: expected {expected}, got {got}.",
            file=t.quote(problem.file),
            expected=short_hash(problem.expected),
            got=short_hash(problem.got),
        )
    return ProblemText(
        t.gettext("File arrived damaged"),
        sentence,
        t.gettext(
            "The damaged data was thrown away. Try again. If it happens again, a proxy or a mirror changes the file."
        ),
    )


def truncated(problem: p.Truncated, t: Voice) -> ProblemText:
    """Return the words for a file that ends early."""
    return ProblemText(
        t.gettext("Download breaks off"),
        t.gettext(
            "The download of {file} broke off several times: {got} of {expected} came.",
            file=t.quote(problem.file),
            got=t.gb(problem.got_bytes),
            expected=t.gb(problem.expected_bytes),
        ),
        t.gettext("Check the connection and try again. It goes on where it stopped."),
    )


def proxy_refused(problem: p.ProxyRefused, t: Voice) -> ProblemText:
    """Return the words for a proxy that is in the way."""
    proxy = t.quote(problem.proxy)
    if problem.status is not None:
        sentence = t.gettext(
            "The proxy {proxy} lets nothing through (HTTP {status}).", proxy=proxy, status=problem.status
        )
    else:
        sentence = t.gettext("The proxy {proxy} does not answer.", proxy=proxy)
    return ProblemText(
        t.gettext("Proxy in the way"),
        sentence,
        t.gettext(
            "Check the proxy in Docker's settings and in HTTPS_PROXY. If it wants a name and a password, the network's "
            "administrator knows them; without a proxy, remove the setting."
        ),
    )


def weights_damaged(problem: p.WeightsDamaged, t: Voice) -> ProblemText:
    """Return the words for a weight file that cannot be read."""
    return ProblemText(
        t.gettext("Weights cannot be read"),
        t.gettext(
            "A file of the weights cannot be read ({reason}): {file}.",
            reason=t.quote(problem.reason),
            file=t.quote(problem.file),
        ),
        t.gettext(
            "Slipway compares each file with its checksum and downloads a damaged one again: run the installation once "
            "more. In a folder of your own, delete this file first."
        ),
    )


def not_resolved_yet(problem: p.NotResolvedYet, t: Voice) -> ProblemText:
    """Return the words for a plan that needs the network once."""
    return ProblemText(
        t.gettext("Network needed once"),
        t.gettext(
            "For the profile {profile} Slipway does not know image and files yet, and the network cannot be reached.",
            profile=t.quote(problem.profile),
        ),
        t.gettext("Connect to the internet and try again. After that it also works without."),
    )


def short_hash(text: str) -> str:
    """Return enough of a hash to tell it from another, with the name of its kind in front."""
    kind, colon, value = text.rpartition(":")
    return f"{kind}{colon}{value[:SHOWN_OF_A_HASH]}…" if len(value) > SHOWN_OF_A_HASH else text
