"""Words for a container that does not come up."""

from __future__ import annotations

from installer.domain import problems as p
from installer.domain.units import gib as in_bytes
from installer.text.names import choice_name, moment, value_of
from installer.text.voice import ProblemText, Voice


def port_taken(problem: p.PortTaken, t: Voice) -> ProblemText:
    """Return the words for a port that another program holds, or Windows for itself."""
    sentence = t.gettext("Another program is listening on port {port}.", port=problem.port)
    if problem.owner:
        sentence = t.gettext("Port {port} is taken by {owner}.", port=problem.port, owner=problem.owner)
    remedy = t.gettext("Choose another port, or close the program that holds this one. Then try again.")
    return ProblemText(t.gettext("Port taken"), sentence, remedy)


def kv_cache_too_small(problem: p.KvCacheTooSmall, t: Voice) -> ProblemText:
    """Return the words for a context that is too long for what is left."""
    remedy = t.gettext("Choose a shorter context or a smaller profile, or close programs that use the card.")
    if problem.possible_tokens:
        remedy = t.gettext(
            "Choose a context of {possible} at most, or close programs that use the card.",
            possible=t.tokens(problem.possible_tokens),
        )
    return ProblemText(
        t.gettext("Context too long for this card"),
        _cache_needed(problem, t),
        remedy,
    )


def _cache_needed(problem: p.KvCacheTooSmall, t: Voice) -> str:
    if problem.needed_gib is None or problem.available_gib is None:
        return t.gettext(
            "A context of {context} needs more graphics memory than is left.", context=t.tokens(problem.context)
        )
    return t.gettext(
        "A context of {context} needs {needed} of graphics memory. {available} are left for it.",
        context=t.tokens(problem.context),
        needed=t.gib(in_bytes(problem.needed_gib)),
        available=t.gib(in_bytes(problem.available_gib)),
    )


def no_cache_blocks(problem: p.NoCacheBlocks, t: Voice) -> ProblemText:
    """Return the words for a card that the weights fill."""
    sentence = t.gettext("Weights and working memory fill vLLM's share of the card. Nothing is left for the context.")
    if problem.weights_gib is not None:
        weigh = t.gettext("The weights take {weights}.", weights=t.gib(in_bytes(problem.weights_gib)))
        sentence = f"{sentence} {weigh}"
    return ProblemText(
        t.gettext("No room for the context"),
        sentence,
        t.gettext(
            "Close programs that use the card, or choose a smaller profile or one whose weights are compressed more. "
            "Another share of the card changes nothing."
        ),
    )


def state_blocks_too_few(problem: p.StateBlocksTooFew, t: Voice) -> ProblemText:
    """Return the words for more requests at once than the card has room for."""
    return ProblemText(
        t.gettext("Too many requests at once"),
        t.gettext(
            "The profile asks for {asked} requests at once. There is room for {room}.",
            asked=t.number(problem.max_num_seqs),
            room=t.number(problem.blocks),
        ),
        t.gettext("Close programs that use the card, or choose another profile."),
    )


def free_below_utilisation(problem: p.FreeBelowUtilisation, t: Voice) -> ProblemText:
    """Return the words for vLLM's own start gate."""
    short = max(0, in_bytes(problem.wanted_gib) - in_bytes(problem.free_gib))
    return ProblemText(
        t.gettext("Not enough free graphics memory"),
        t.gettext(
            "vLLM was to take {share} of the card, {wanted} of {total}. {free} are free. {short} must be freed.",
            share=t.percent(problem.utilisation),
            wanted=t.gib(in_bytes(problem.wanted_gib)),
            total=t.gib(in_bytes(problem.total_gib)),
            free=t.gib(in_bytes(problem.free_gib)),
            short=t.mib(short),
        ),
        t.gettext("Close programs that use the card, such as games, browsers and other AI programs. Then try again."),
    )


def cuda_out_of_memory(problem: p.CudaOutOfMemory, t: Voice) -> ProblemText:
    """Return the words for a card that ran full."""
    when = moment(problem.phase, t)
    sentence = t.gettext("The graphics memory ran out {when}.", when=when)
    if problem.tried:
        sentence = t.gettext(
            "The graphics memory ran out {when}; another {tried} were asked for.",
            when=when,
            tried=t.figure(problem.tried),
        )
    return ProblemText(
        t.gettext("Graphics memory ran out"),
        sentence,
        t.gettext("Close programs that use the card, or choose a smaller profile or a shorter context."),
    )


def unknown_argument(problem: p.UnknownArgument, t: Voice) -> ProblemText:
    """Return the words for an image that does not know an argument."""
    return ProblemText(
        t.gettext("Image and settings do not match"),
        t.gettext(
            "The program in the image does not know what it was given: {arguments}.",
            arguments=t.quote(problem.arguments),
        ),
        t.gettext(
            "Choose the image that belongs to the profile. If it is that one, please report it with the technical "
            "details."
        ),
    )


def json_argument(problem: p.JsonArgument, t: Voice) -> ProblemText:
    """Return the words for an argument that should be JSON."""
    return ProblemText(
        t.gettext("Setting is no JSON"),
        t.gettext(
            "The server takes JSON for {flag}, and {value} is none.",
            flag=t.quote(problem.flag),
            value=t.quote(problem.value),
        ),
        t.gettext(
            "Slipway's own file has it right. In a file of your own, write the JSON as one item, without further "
            "quotation marks, braces or backslashes."
        ),
    )


def shared_memory_too_small(problem: p.SharedMemoryTooSmall, t: Voice) -> ProblemText:
    """Return the words for a container with too little shared memory."""
    sentence = t.gettext("The container's shared memory (/dev/shm) was too small.")
    if problem.shm_bytes is not None:
        sentence = t.gettext(
            "The container's shared memory (/dev/shm) of {size} was too small.", size=t.mib(problem.shm_bytes)
        )
    return ProblemText(
        t.gettext("Too little shared memory"),
        sentence,
        t.gettext("Slipway's own file asks for 8 GB (shm_size). In a file of your own, add the line shm_size: 8gb."),
    )


def free_memory_moved(problem: p.FreeMemoryMoved, t: Voice) -> ProblemText:
    """Return the words for memory that was given back while vLLM measured."""
    return ProblemText(
        t.gettext("Graphics memory changed meanwhile"),
        t.gettext(
            "While vLLM measured the card, another program gave memory back: {before} were free, then {after}.",
            before=t.gib(in_bytes(problem.initial_gib)),
            after=t.gib(in_bytes(problem.current_gib)),
        ),
        t.gettext(
            "Slipway tries once more. Do not open or close games, browsers or other AI programs during the start."
        ),
    )


def architecture_unknown(problem: p.ArchitectureUnknown, t: Voice) -> ProblemText:
    """Return the words for an image that is older than the model."""
    release = f"vLLM {problem.release}".strip()
    return ProblemText(
        t.gettext("Image too old for this model"),
        t.gettext(
            "{release} in the image does not know models of the kind {architecture}.",
            release=release,
            architecture=t.quote(problem.architecture),
        ),
        t.gettext("Choose the image that belongs to the profile, or a newer one."),
    )


def offload_refused(t: Voice) -> ProblemText:
    """Return the words for weights that cannot lie in main memory."""
    return ProblemText(
        t.gettext("No weights in main memory"),
        t.gettext("This image cannot keep part of the weights in main memory with these settings."),
        t.gettext("Choose a profile whose weights fit on the card (without --cpu-offload-gb)."),
    )


def ready_timed_out(problem: p.ReadyTimedOut, t: Voice) -> ProblemText:
    """Return the words for a vLLM that lost patience with itself."""
    return ProblemText(
        t.gettext("Server lost patience"),
        t.gettext("vLLM gave up on its own start after {time}.", time=t.duration(problem.seconds)),
        t.gettext(
            "Slipway tries once more and gives it an hour. A first start on a slow disk can take that long; the next "
            "ones are quicker."
        ),
    )


def container_exited(problem: p.ContainerExited, t: Voice) -> ProblemText:
    """Return the words for a container that ended for a reason that nobody knows yet."""
    return ProblemText(
        t.gettext("Container has ended"),
        t.gettext(
            "The container ended by itself with the exit code {code}. Slipway does not know this cause.",
            code=problem.exit_code_of_container,
        ),
        t.gettext(
            "The technical details show the lines of its log that say most. Try again or choose another profile, and "
            "please report it, with the archive that slipway bundle packs."
        ),
    )


def container_killed(problem: p.ContainerKilled, t: Voice) -> ProblemText:
    """Return the words for a container that was ended from outside."""
    if problem.out_of_memory:
        sentence = t.gettext("The system ended the container because main memory ran out.")
    else:
        sentence = t.gettext("The container was ended from outside, most often because main memory ran out.")
    if problem.host_memory_bytes:
        has = t.gettext("Docker has {memory}.", memory=t.gib(problem.host_memory_bytes))
        sentence = f"{sentence} {has}"
    return ProblemText(
        t.gettext("Container was ended"),
        sentence,
        t.gettext(
            "Close other programs and try again, or choose a profile with smaller weights. Under WSL2, raise memory= "
            "under [wsl2] in the file .wslconfig in your Windows user folder and run wsl --shutdown."
        ),
    )


def never_healthy(problem: p.NeverHealthy, t: Voice) -> ProblemText:
    """Return the words for a start in which nothing moves any more."""
    return ProblemText(
        t.gettext("Start does not go on"),
        t.gettext(
            "The container is running, but nothing has moved {when} for {time}.",
            when=moment(problem.phase, t),
            time=t.duration(problem.seconds),
        ),
        t.gettext(
            "Try again. If it stops at the same place, choose another profile; the technical details show its log."
        ),
    )


def relax_refused(problem: p.RelaxRefused, t: Voice) -> ProblemText:
    """Return the words for a value that only works when it is lowered."""
    return ProblemText(
        t.gettext("Only possible with a smaller value"),
        t.gettext(
            "{setting}: with {chosen} the server does not start. {possible} would be possible.",
            setting=choice_name(problem.field, t),
            chosen=value_of(problem.field, problem.chosen, t),
            possible=value_of(problem.field, problem.possible, t),
        ),
        t.gettext("Agree to the smaller value or choose one yourself. --yes alone does not agree."),
    )


def container_not_ours(problem: p.ContainerNotOurs, t: Voice) -> ProblemText:
    """Return the words for a name that a stranger's container bears."""
    return ProblemText(
        t.gettext("Name taken in Docker"),
        t.gettext(
            "The container {name} exists and was not made by Slipway. Slipway does not touch it.",
            name=t.quote(problem.name),
        ),
        t.gettext("If you no longer need it, rename it with docker rename or remove it with docker rm."),
    )
