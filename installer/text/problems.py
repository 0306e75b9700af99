"""Every kind of Problem has its words: one exhaustive match, so that a kind without words does not type-check."""

from __future__ import annotations

from typing import assert_never

from installer.domain import problems as p
from installer.text import (
    ask,
    cards,
    docker,
    driver,
    graphics_card,
    hub,
    media,
    network,
    own,
    proof,
    proxy,
    registry,
    start,
    system,
    usage,
)
from installer.text.voice import ProblemText, Voice


def words_for(problem: p.AnyProblem, t: Voice) -> ProblemText:  # noqa: C901 - a table in the form of a match
    """Return title, sentence and remedy of any Problem."""
    match problem:
        case p.BadArguments():
            return usage.bad_arguments(problem, t)
        case p.MalformedFile():
            return usage.malformed_file(problem, t)
        case p.FileUnreadable():
            return usage.file_unreadable(problem, t)
        case p.UnknownName():
            return usage.unknown_name(problem, t)
        case p.BadChoice():
            return usage.bad_choice(problem, t)
        case p.WindowNotAvailable():
            return usage.window_not_available(t)
        case p.LicenceNotAccepted():
            return usage.licence_not_accepted(problem, t)
        case p.EditedByHand():
            return usage.edited_by_hand(problem, t)
        case p.ConsentNeeded():
            return usage.consent_needed(problem, t)
        case p.PinNotProved():
            return usage.pin_not_proved(problem, t)
        case p.NotInstalled():
            return usage.not_installed(problem, t)
        case p.AlreadyRunning():
            return usage.already_running(problem, t)
        case p.CardHeldByStack():
            return usage.card_held_by_stack(problem, t)
        case p.NoTokenStore():
            return usage.no_token_store(problem, t)
        case p.PicturesNotRead():
            return ask.pictures_not_read(problem, t)
        case p.PictureUnreadable():
            return ask.picture_unreadable(problem, t)
        case p.BeyondContext():
            return ask.beyond_context(problem, t)
        case p.NotServedYet():
            return registry.not_served_yet(problem, t)
        case p.EvidenceNotReproduced():
            return registry.evidence_not_reproduced(problem, t)
        case p.LicenceTagMissing():
            return registry.licence_tag_missing(problem, t)
        case p.SignatureInvalid():
            return registry.signature_invalid(problem, t)
        case p.RegistryExpired():
            return registry.registry_expired(problem, t)
        case p.RegistryRecalled():
            return registry.registry_recalled(problem, t)
        case p.SigningNotInstalled():
            return registry.signing_not_installed(t)
        case p.NoNvidiaDriver():
            return driver.no_nvidia_driver(problem, t)
        case p.DriverNotLoaded():
            return driver.driver_not_loaded(t)
        case p.DriverLibraryMismatch():
            return driver.driver_library_mismatch(t)
        case p.NvidiaNoPermission():
            return driver.nvidia_no_permission(t)
        case p.GpuReadTimedOut():
            return driver.gpu_read_timed_out(problem, t)
        case p.GpuLost():
            return driver.gpu_lost(t)
        case p.GpuReadFailed():
            return driver.gpu_read_failed(t)
        case p.NoGpu():
            return driver.no_gpu(t)
        case p.DriverTooOld():
            return driver.driver_too_old(problem, t)
        case p.CapabilityTooLow():
            return graphics_card.capability_too_low(problem, t)
        case p.GpuMemoryUnknown():
            return graphics_card.gpu_memory_unknown(problem, t)
        case p.MigNotServed():
            return graphics_card.mig_not_served(problem, t)
        case p.DoesNotFit():
            return graphics_card.does_not_fit(problem, t)
        case p.NotEnoughFreeMemory():
            return graphics_card.not_enough_free_memory(problem, t)
        case p.NotEnoughHostMemory():
            return graphics_card.not_enough_host_memory(problem, t)
        case p.MemoryHiddenByWsl2():
            return graphics_card.memory_hidden_by_wsl2(problem, t)
        case p.GpuNotInContainer():
            return graphics_card.gpu_not_in_container(problem, t)
        case p.ProfileBlocked():
            return graphics_card.profile_blocked(problem, t)
        case p.CacheNotLaidOut():
            return graphics_card.cache_not_laid_out(problem, t)
        case p.NothingFits():
            return graphics_card.nothing_fits(problem, t)
        case p.EngineNotInstalled():
            return docker.engine_not_installed(problem, t)
        case p.EngineDown():
            return docker.engine_down(problem, t)
        case p.EngineNoPermission():
            return docker.engine_no_permission(problem, t)
        case p.EngineTimedOut():
            return docker.engine_timed_out(problem, t)
        case p.EngineIsPodman():
            return docker.engine_is_podman(problem, t)
        case p.EngineNotLinux():
            return docker.engine_not_linux(problem, t)
        case p.EngineFailed():
            return docker.engine_failed(problem, t)
        case p.EngineLost():
            return docker.engine_lost(problem, t)
        case p.NvidiaToolkitMissing():
            return docker.nvidia_toolkit_missing(problem, t)
        case p.ComposeMissing():
            return docker.compose_missing(t)
        case p.ComposeTooOld():
            return docker.compose_too_old(problem, t)
        case p.NoSuchPlatform():
            return docker.no_such_platform(problem, t)
        case p.Unreachable():
            return network.unreachable(problem, t)
        case p.TlsNotTrusted():
            return network.tls_not_trusted(problem, t)
        case p.Stalled():
            return network.stalled(problem, t)
        case p.CaptivePortal():
            return network.captive_portal(problem, t)
        case p.ServerError():
            return network.server_error(problem, t)
        case p.RateLimited():
            return network.rate_limited(problem, t)
        case p.ImageUnknown():
            return hub.image_unknown(problem, t)
        case p.DigestGone():
            return hub.digest_gone(problem, t)
        case p.RegistryDenied():
            return hub.registry_denied(problem, t)
        case p.TokenNeeded():
            return hub.token_needed(problem, t)
        case p.AccessNotGranted():
            return hub.access_not_granted(problem, t)
        case p.RepoUnknown():
            return hub.repo_unknown(problem, t)
        case p.BadToken():
            return hub.bad_token(problem, t)
        case p.WrongContent():
            return network.wrong_content(problem, t)
        case p.Truncated():
            return network.truncated(problem, t)
        case p.NotResolvedYet():
            return network.not_resolved_yet(problem, t)
        case p.EngineWithoutProxy():
            return proxy.engine_without_proxy(problem, t)
        case p.ProxyInEngineOnly():
            return proxy.proxy_in_engine_only(problem, t)
        case p.LoopbackThroughProxy():
            return proxy.loopback_through_proxy(problem, t)
        case p.DiskFull():
            return own.disk_full(problem, t)
        case p.NotWritable():
            return own.not_writable(problem, t)
        case p.PortTaken():
            return start.port_taken(problem, t)
        case p.KvCacheTooSmall():
            return start.kv_cache_too_small(problem, t)
        case p.NoCacheBlocks():
            return start.no_cache_blocks(problem, t)
        case p.StateBlocksTooFew():
            return start.state_blocks_too_few(problem, t)
        case p.FreeBelowUtilisation():
            return start.free_below_utilisation(problem, t)
        case p.CudaOutOfMemory():
            return start.cuda_out_of_memory(problem, t)
        case p.UnknownArgument():
            return start.unknown_argument(problem, t)
        case p.ContainerExited():
            return start.container_exited(problem, t)
        case p.ContainerKilled():
            return start.container_killed(problem, t)
        case p.NeverHealthy():
            return start.never_healthy(problem, t)
        case p.RelaxRefused():
            return start.relax_refused(problem, t)
        case p.ContainerNotOurs():
            return start.container_not_ours(problem, t)
        case p.ServerNotRunning():
            return ask.server_not_running(problem, t)
        case p.ServerStarting():
            return ask.server_starting(problem, t)
        case p.SmokeFailed():
            return own.smoke_failed(problem, t)
        case p.NotAnswering():
            return own.not_answering(problem, t)
        case p.CardsDiffer():
            return cards.cards_differ(problem, t)
        case p.CardVariant():
            return cards.card_variant(problem, t)
        case p.CardNameUnknown():
            return cards.card_name_unknown(problem, t)
        case p.VirtualGpu():
            return cards.virtual_gpu(problem, t)
        case p.UsesHostMemory():
            return cards.uses_host_memory(problem, t)
        case p.BoardNotServed():
            return cards.board_not_served(problem, t)
        case p.CardAsleep():
            return cards.card_asleep(problem, t)
        case p.CardSwitchedOff():
            return cards.card_switched_off(problem, t)
        case p.LeftoverWorkers():
            return cards.leftover_workers(problem, t)
        case p.HostMemoryBelowCard():
            return cards.host_memory_below_card(problem, t)
        case p.DriverCombination():
            return driver.driver_combination(problem, t)
        case p.KernelMissing():
            return driver.kernel_missing(problem, t)
        case p.Fp8NotSupported():
            return driver.fp8_not_supported(problem, t)
        case p.UvaNotAvailable():
            return driver.uva_not_available(problem, t)
        case p.NotResident():
            return driver.not_resident(problem, t)
        case p.NoAdapterInWsl():
            return driver.no_adapter_in_wsl(t)
        case p.DesktopWithoutGpu():
            return docker.desktop_without_gpu(problem, t)
        case p.WslIntegrationOff():
            return docker.wsl_integration_off(t)
        case p.CdiDeviceUnknown():
            return docker.cdi_device_unknown(problem, t)
        case p.CredentialHelperMissing():
            return docker.credential_helper_missing(problem, t)
        case p.ContainerNameTaken():
            return docker.container_name_taken(problem, t)
        case p.HealthProgramMissing():
            return docker.health_program_missing(problem, t)
        case p.ProgramNotInImage():
            return docker.program_not_in_image(problem, t)
        case p.OtherDigest():
            return docker.other_digest(problem, t)
        case p.ComposeFlaw():
            return docker.compose_flaw(problem, t)
        case p.ProxyRefused():
            return network.proxy_refused(problem, t)
        case p.WeightsDamaged():
            return network.weights_damaged(problem, t)
        case p.SymlinkRefused():
            return own.symlink_refused(problem, t)
        case p.SlowDisk():
            return own.slow_disk(problem, t)
        case p.SharedMemoryTooSmall():
            return start.shared_memory_too_small(problem, t)
        case p.FreeMemoryMoved():
            return start.free_memory_moved(problem, t)
        case p.ArchitectureUnknown():
            return start.architecture_unknown(problem, t)
        case p.OffloadRefused():
            return start.offload_refused(t)
        case p.ReadyTimedOut():
            return start.ready_timed_out(problem, t)
        case p.JsonArgument():
            return start.json_argument(problem, t)
        case p.NotReadyYet():
            return proof.not_ready_yet(problem, t)
        case p.ReasoningOnly():
            return proof.reasoning_only(problem, t)
        case p.ReasoningInAnswer():
            return proof.reasoning_in_answer(problem, t)
        case p.AnswerCutShort():
            return proof.answer_cut_short(problem, t)
        case p.ChatTemplateMissing():
            return proof.chat_template_missing(t)
        case p.SlowKernel():
            return proof.slow_kernel(problem, t)
        case p.MediaNotFetched():
            return proof.media_not_fetched(problem, t)
        case p.MediaRefused():
            return proof.media_refused(problem, t)
        case p.VideoFramesMissing():
            return proof.video_frames_missing(problem, t)
        case p.HostNotReached():
            return media.host_not_reached(problem, t)
        case p.UrlHostUnknown():
            return media.url_host_unknown(problem, t)
        case p.UrlNotFound():
            return media.url_not_found(problem, t)
        case p.UrlNotPublic():
            return media.url_not_public(problem, t)
        case p.UrlNotVideo():
            return media.url_not_video(problem, t)
        case p.UrlTimedOut():
            return media.url_timed_out(problem, t)
        case p.UrlTooLarge():
            return media.url_too_large(problem, t)
        case p.VideoTooLongForContext():
            return media.video_too_long_for_context(problem, t)
        case p.VideosNotRead():
            return media.videos_not_read(problem, t)
        case p.VideoUnreadable():
            return media.video_unreadable(problem, t)
        case p.ImageUnusable():
            return proof.image_unusable(problem, t)
        case p.ForeignEncoding():
            return system.foreign_encoding(problem, t)
        case p.VariableFlaw():
            return system.variable_flaw(problem, t)
        case p.QtLibraryMissing():
            return system.qt_library_missing(problem, t)
        case p.QtPluginMissing():
            return system.qt_plugin_missing(problem, t)
        case p.ThreadStillRunning():
            return system.thread_still_running(t)
        case p.WrongThread():
            return system.wrong_thread(t)
        case p.Quarantined():
            return system.quarantined(problem, t)
        case p.NvmlModuleDoubled():
            return system.nvml_module_doubled(problem, t)
        case p.CauseUnknown():
            return system.cause_unknown(t)
        case p.AnswerRefused():
            return ask.answer_refused(problem, t)
        case p.AnswerBroken():
            return ask.answer_broken(t)
        case p.Interrupted():
            return own.interrupted(t)
        case p.Bug():
            return own.bug(problem, t)
        case _:
            assert_never(problem)
