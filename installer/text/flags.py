"""Why each argument of the server has the value that it has: the sentences behind the ids of plan and registry."""

from __future__ import annotations

from installer.text.voice import Voice


def flag_reasons(t: Voice) -> dict[str, str]:
    """Return every known reason by its id."""
    return {
        "stable_name": t.gettext("Programs address the model by this name; it stays the same when the weights change."),
        "inside_the_container": t.gettext(
            "Applies inside the container only; from outside the server is reached at 127.0.0.1."
        ),
        "context_of_the_profile": t.gettext(
            "The longest conversation for which this card has room; longer requests are refused."
        ),
        "share_that_is_free": t.gettext(
            "The share of the graphics memory that is free now, with a reserve for other programs."
        ),
        "sequences_cost_memory": t.gettext(
            "How many requests are answered at once; each of them takes graphics memory."
        ),
        "batch_costs_memory": t.gettext(
            "How many tokens are computed in one step; larger steps take more graphics memory."
        ),
        "kv_fp8_halves_cache": t.gettext(
            "Keeps the context in 8 bits, so that twice as much of it fits into the graphics memory."
        ),
        "graphs_do_not_fit": t.gettext(
            "Leaves out CUDA graphs: it answers more slowly, and their graphics memory is free for the model."
        ),
        "fewer_graphs": t.gettext(
            "Captures fewer CUDA graphs, because more of them did not fit into the graphics memory."
        ),
        "weights_in_host_memory": t.gettext(
            "Keeps a part of the weights in main memory; that saves graphics memory and costs speed."
        ),
        "reasoning_parser_separates_thinking": t.gettext(
            "The model thinks before it answers; this keeps its thinking apart from the answer."
        ),
        "tools_need_auto_choice": t.gettext(
            "Lets programs offer tools to the model, which then decides whether to use them."
        ),
        "tool_parser_of_the_model": t.gettext(
            "Each model family writes tool calls in its own form; this reads the form of this model."
        ),
        "media_limit_bounds_memory": t.gettext(
            "Limits images, videos and audio per request, so that one request cannot use up the graphics memory."
        ),
        "small_media_cache_spares_host_memory": t.gettext(
            "Keeps the cache for images and videos small, because it takes main memory."
        ),
        "text_only_leaves_out_the_vision_tower": t.gettext(
            "Loads only the language part; the memory that this saves is needed for the context. Images "
            "and videos are not read."
        ),
        "fp8_cache_on_ampere_needs_flashinfer": t.gettext(
            "Older cards (RTX 30 series) can hold the context in 8 bits only with this attention backend."
        ),
        "moe_backend_of_the_recipe": t.gettext(
            "vLLM's own recipe for this model uses these kernels on this class of cards."
        ),
        "half_because_turing_has_no_bfloat16": t.gettext(
            "Cards of the RTX 20 series cannot calculate in bfloat16; with half precision the model runs there as well."
        ),
        "fixed_cache_spares_host_memory": t.gettext(
            "Without a graphics card, the context is kept in main memory; a fixed size leaves the rest to "
            "your other programs."
        ),
        "files_as_the_publisher_writes_them": t.gettext(
            "The publisher writes the files of this model in a form of its own; this reads them."
        ),
        "weights_in_8_bits": t.gettext("Keeps the weights in 8 bits, so that they take half as much graphics memory."),
        "every_video_frame_is_read": t.gettext(
            "As in the first measurement, every frame of a video is read instead of a selection."
        ),
        "media_from_this_computer_only": t.gettext(
            "The server fetches images and videos from this computer only and from nowhere on the internet."
        ),
        "requests_choose_frames": t.gettext(
            "Lets a request say how many frames of its video are read; this release refuses that otherwise."
        ),
        "as_in_the_spike": t.gettext(
            "Set as in the first measurement on an RTX 5090. It lets the checkpoint bring code of its own."
        ),
    }
