"""Names: what a person calls the settings, steps, phases and other things that the code knows by an id."""

from __future__ import annotations

from installer.domain.facts import Missing
from installer.domain.memory import Limit, Verdict
from installer.domain.problems import Treatment
from installer.text import numbers
from installer.text.voice import Voice


def choice_name(field: str, t: Voice) -> str:
    """Return the label of a choice or a server setting; an unknown one keeps its id."""
    names = {
        "stack": t.gettext("Stack"),
        "profile": t.gettext("Profile"),
        "gpu_uuid": t.gettext("Graphics card"),
        "context": t.gettext("Context"),
        "references": t.gettext("Reference images"),
        "vram_budget_gib": t.gettext("Graphics memory limit"),
        "folder": t.gettext("Folder for the models"),
        "port": t.gettext("Port"),
        "docker_image_pin_digest": t.gettext("Pinned image"),
        "accept_licenses": t.gettext("Accepted licences"),
        "autostart": t.gettext("Start at sign-in"),
        "language": t.gettext("Language"),
        "api_key": t.gettext("API key"),
        "hf_token": t.gettext("Hugging Face token"),
        "utilisation": t.gettext("Share of the graphics memory"),
        "max_num_seqs": t.gettext("Requests at once"),
        "max_num_batched_tokens": t.gettext("Tokens per step"),
        "licence": t.gettext("Licence"),
        "endpoint": t.gettext("Address of the server"),
    }
    return names.get(field, field)


def choice_help(field: str, t: Voice) -> str:
    """Return one line about a choice, for `--help` and the window's hints."""
    lines = {
        "stack": t.gettext("chat: answers and reads images; images: makes images"),
        "profile": t.gettext("model with its settings; without it the best one that fits"),
        "gpu_uuid": t.gettext("UUID of the card; without it the one that suits the profile best"),
        "context": t.gettext("longest conversation in tokens; without it the profile's own"),
        "references": t.gettext("how many reference images a request may bring"),
        "vram_budget_gib": t.gettext("how much graphics memory the image server may take, in GiB"),
        "folder": t.gettext("where the models are kept"),
        "port": t.gettext("port at 127.0.0.1; without it the first free one from 8000 on"),
        "docker_image_pin_digest": t.gettext("“current” pins today's image, a digest that one, empty follows the tag"),
        "accept_licenses": t.gettext("licence that you agree to; may be given several times"),
        "autostart": t.gettext("start the server when you sign in"),
        "language": t.gettext("language of the sentences"),
    }
    return lines.get(field, field)


def value_of(field: str, value: str, t: Voice) -> str:
    """Return a setting's value with its unit; one that is no plain figure stays as it is."""
    if field == "context" and value.isdigit():
        return t.tokens(int(value))
    if field == "max_num_batched_tokens" and value.isdigit():
        return t.tokens(int(value))
    if field == "utilisation":
        return t.percent(float(value))
    if field == "vram_budget_gib":
        return f"{value}{numbers.NBSP}GiB"
    return value


def verdict(value: Verdict, t: Voice) -> str:
    """Return the promise in one word or two."""
    match value:
        case Verdict.FITS:
            return t.gettext("Fits")
        case Verdict.TIGHT:
            return t.gettext("Tight")
        case Verdict.NO:
            return t.gettext("Does not fit")
        case Verdict.BLOCKED:
            return t.gettext("Not possible")


def treatment(value: Treatment, t: Voice) -> str:
    """Say what Slipway does about a Problem by itself."""
    match value:
        case Treatment.BLOCK:
            return t.gettext("Slipway stops here until this is mended.")
        case Treatment.FAIL_FAST:
            return t.gettext("Slipway ends the start or the proof at once.")
        case Treatment.RETRY:
            return t.gettext("Slipway tries again by itself.")
        case Treatment.ADAPT:
            return t.gettext("Slipway goes around this by itself.")
        case Treatment.WARN:
            return t.gettext("Slipway mentions this and goes on.")


def limit(value: Limit, t: Voice) -> str:
    """Return the term that is short, as a phrase that can follow a colon."""
    match value:
        case Limit.NONE:
            return t.gettext("nothing")
        case Limit.FREE_MEMORY:
            return t.gettext("free memory")
        case Limit.WEIGHTS:
            return t.gettext("room for the weights")
        case Limit.KV_CACHE:
            return t.gettext("room for the context (KV cache)")
        case Limit.OVERHEAD:
            return t.gettext("room for the working memory")
        case Limit.SEQUENCES:
            return t.gettext("room for several requests at once")
        case Limit.GRAPHS:
            return t.gettext("room for CUDA graphs beside the share")


def missing(value: Missing, t: Voice) -> str:
    """Say why a figure is not there."""
    match value:
        case Missing.NOT_SUPPORTED:
            return t.gettext("not told by this driver or card")
        case Missing.NO_PERMISSION:
            return t.gettext("not readable with these rights")
        case Missing.NOTHING_THERE:
            return t.gettext("nothing was read")


def term(name: str, t: Voice) -> str:
    """Return a part of the card's memory, as the memory bar names it."""
    names = {
        "weights": t.gettext("Weights"),
        "kv": t.gettext("Context (KV cache)"),
        "base": t.gettext("Basic need of vLLM"),
        "activations": t.gettext("Computing space"),
        "sampler": t.gettext("Choosing the next token"),
        "encoder": t.gettext("Images and video"),
        "graphs": t.gettext("CUDA graphs"),
        "measured": t.gettext("Measured on this computer"),
        "overhead": t.gettext("Working memory"),
        "hidden": t.gettext("Kept by the system"),
        "free": t.gettext("Free"),
    }
    return names.get(name, name)


def phase(name: str, t: Voice) -> str:
    """Say how far the server's start is."""
    names = {
        "starting": t.gettext("The server is starting"),
        "weights": t.gettext("The weights are being loaded onto the card"),
        "compile": t.gettext("The model is being compiled for this card (this can take minutes the first time)"),
        "kv_cache": t.gettext("Room for the context is being measured"),
        "graphs": t.gettext("CUDA graphs are being captured"),
        "serving": t.gettext("The server takes requests"),
    }
    return names.get(name, name)


def moment(phase_name: str, t: Voice) -> str:
    """Return the same phases, and those of a running server, as a moment: "while loading the weights"."""
    names = {
        "starting": t.gettext("while starting"),
        "weights": t.gettext("while loading the weights"),
        "compile": t.gettext("while compiling the model"),
        "profiling": t.gettext("while compiling the model"),
        "kv_cache": t.gettext("while measuring the room for the context"),
        "graphs": t.gettext("while capturing CUDA graphs"),
        "sampler": t.gettext("while warming up the choice of tokens"),
        "serving": t.gettext("after the start"),
        "request": t.gettext("while answering a request"),
    }
    return names.get(phase_name, phase_name)


def operation(name: str, t: Voice) -> str:
    """Return what Docker was asked for."""
    names = {
        "connect": t.gettext("Connecting"),
        "info": t.gettext("Reading the engine"),
        "inspect": t.gettext("Looking for the image"),
        "pull": t.gettext("Downloading the image"),
        "remove": t.gettext("Removing the image"),
        "logs": t.gettext("Reading the log"),
        "probe": t.gettext("Measuring in a container"),
        "start": t.gettext("Starting the container"),
    }
    return names.get(name) or t.quote(name)


def check(name: str, t: Voice) -> str:
    """Return the name of one check of the proof."""
    names = {
        "health": t.gettext("Server is ready"),
        "models": t.gettext("Model and context are right"),
        "completion": t.gettext("A question is answered"),
        "stream": t.gettext("The answer comes piece by piece"),
        "umlauts": t.gettext("Umlauts and emoji come back unharmed"),
        "reasoning": t.gettext("Thoughts stand beside the answer"),
        "tools": t.gettext("A tool is called"),
        "picture": t.gettext("A picture is recognised"),
        "video": t.gettext("A video is recognised"),
        "long_prompt": t.gettext("A long text is answered"),
        "over_limit": t.gettext("A text that is too long is refused cleanly"),
        "memory": t.gettext("Graphics memory: predicted and used"),
        "kernel": t.gettext("Kernel for NVFP4"),
        "alive": t.gettext("Server still runs at the end"),
    }
    return names.get(name, name)


def not_applicable(reason: str, t: Voice) -> str:
    """Say why a check of the proof says nothing about this server."""
    reasons = {
        "no_reasoning_parser": t.gettext("this profile does not part thoughts and answer"),
        "no_thoughts": t.gettext("the model answered without thinking aloud"),
        "no_tools": t.gettext("this profile calls no tools"),
        "tools_refused": t.gettext("the server takes no tools"),
        "tools_unused": t.gettext("the model did not use the tool"),
        "no_pictures": t.gettext("this profile reads no pictures"),
        "pictures_refused": t.gettext("the server takes no pictures"),
        "picture_unseen": t.gettext("the answer does not show that the model saw the picture"),
        "video_unseen": t.gettext("the answer does not show that the model saw the video"),
        "no_videos": t.gettext("this profile reads no videos"),
        "videos_refused": t.gettext("the server takes no videos"),
        "context_without_video": t.gettext("the context has no room for a video"),
        "context_unknown": t.gettext("the server does not tell its context"),
        "memory_unknown": t.gettext("neither the log nor the driver tells it"),
        "no_log": t.gettext("the server's log is not here"),
        "no_fp4": t.gettext("the log names no kernel for NVFP4"),
        "silent": t.gettext("the server did not answer before"),
        "not_answering": t.gettext("a question is not answered"),
        "only_thoughts": t.gettext("the answer stands among the thoughts"),
        "no_chat": t.gettext("the model has no chat template"),
    }
    return reasons.get(reason, reason)


def state(name: str, t: Voice) -> str:
    """Return how an installed stack does."""
    names = {
        "serving": t.gettext("running and answering"),
        "starting": t.gettext("starting"),
        "stopped": t.gettext("stopped"),
        "failed": t.gettext("failed"),
        "missing": t.gettext("no container"),
    }
    return names.get(name, name)
