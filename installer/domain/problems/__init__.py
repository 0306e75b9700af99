"""Problems: everything that can go wrong, as values. Sentences about them live in `installer.text`.

One frozen class per kind, its figures as typed fields, one file per family. The family gives the exit code. A Problem
never holds a secret and never a guess: what is not known is `Unknown...`, with the lines that were seen.
"""

from __future__ import annotations

import msgspec

from installer.domain.problems.ask import (
    AnswerBroken,
    AnswerRefused,
    BeyondContext,
    PicturesNotRead,
    PictureUnreadable,
    ServerNotRunning,
    ServerStarting,
)
from installer.domain.problems.base import (
    Action,
    Bug,
    Cancelled,
    InstallerError,
    Interrupted,
    Problem,
    Tagged,
    Treatment,
    snake_case,
)
from installer.domain.problems.cards import (
    BoardNotServed,
    CardAsleep,
    CardNameUnknown,
    CardsDiffer,
    CardSwitchedOff,
    CardVariant,
    HostMemoryBelowCard,
    LeftoverWorkers,
    UsesHostMemory,
    VirtualGpu,
)
from installer.domain.problems.disk import (
    DiskFull,
    DiskProblem,
    NotWritable,
    SlowDisk,
    SymlinkRefused,
)
from installer.domain.problems.docker import (
    CdiDeviceUnknown,
    ComposeFlaw,
    ComposeMissing,
    ComposeTooOld,
    ContainerNameTaken,
    CredentialHelperMissing,
    DesktopWithoutGpu,
    DockerProblem,
    EngineDown,
    EngineFailed,
    EngineIsPodman,
    EngineLost,
    EngineNoPermission,
    EngineNotInstalled,
    EngineNotLinux,
    EngineTimedOut,
    HealthProgramMissing,
    NoSuchPlatform,
    NvidiaToolkitMissing,
    OtherDigest,
    ProgramNotInImage,
    WslIntegrationOff,
)
from installer.domain.problems.graphics_card import (
    CacheNotLaidOut,
    CapabilityTooLow,
    DoesNotFit,
    DriverCombination,
    DriverLibraryMismatch,
    DriverNotLoaded,
    DriverTooOld,
    Fp8NotSupported,
    GpuLost,
    GpuMemoryUnknown,
    GpuNotInContainer,
    GpuProblem,
    GpuReadFailed,
    GpuReadTimedOut,
    KernelMissing,
    MemoryHiddenByWsl2,
    MigNotServed,
    NoAdapterInWsl,
    NoGpu,
    NoNvidiaDriver,
    NotEnoughFreeMemory,
    NotEnoughHostMemory,
    NothingFits,
    NotResident,
    NvidiaNoPermission,
    ProfileBlocked,
    UvaNotAvailable,
)
from installer.domain.problems.media import (
    HostNotReached,
    UrlHostUnknown,
    UrlNotFound,
    UrlNotPublic,
    UrlNotVideo,
    UrlTimedOut,
    UrlTooLarge,
    VideosNotRead,
    VideoTooLongForContext,
    VideoUnreadable,
)
from installer.domain.problems.network import (
    AccessNotGranted,
    BadToken,
    CaptivePortal,
    DigestGone,
    ImageUnknown,
    NetworkProblem,
    NotResolvedYet,
    ProxyRefused,
    RateLimited,
    RegistryDenied,
    RepoUnknown,
    ServerError,
    Stalled,
    TlsNotTrusted,
    TokenNeeded,
    Truncated,
    Unreachable,
    WeightsDamaged,
    WrongContent,
)
from installer.domain.problems.proxy import EngineWithoutProxy, LoopbackThroughProxy, ProxyInEngineOnly
from installer.domain.problems.registry import (
    EvidenceNotReproduced,
    LicenceTagMissing,
    NotServedYet,
    RegistryExpired,
    RegistryRecalled,
    SignatureInvalid,
    SigningNotInstalled,
)
from installer.domain.problems.smoke import (
    AnswerCutShort,
    ChatTemplateMissing,
    ImageUnusable,
    MediaNotFetched,
    MediaRefused,
    NotAnswering,
    NotReadyYet,
    ReasoningInAnswer,
    ReasoningOnly,
    SlowKernel,
    SmokeFailed,
    SmokeProblem,
    VideoFramesMissing,
)
from installer.domain.problems.start import (
    ArchitectureUnknown,
    ContainerExited,
    ContainerKilled,
    ContainerNotOurs,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    FreeMemoryMoved,
    JsonArgument,
    KvCacheTooSmall,
    NeverHealthy,
    NoCacheBlocks,
    OffloadRefused,
    PortTaken,
    ReadyTimedOut,
    RelaxRefused,
    SharedMemoryTooSmall,
    StartProblem,
    StateBlocksTooFew,
    UnknownArgument,
)
from installer.domain.problems.system import (
    CauseUnknown,
    ForeignEncoding,
    NvmlModuleDoubled,
    QtLibraryMissing,
    QtPluginMissing,
    Quarantined,
    SystemProblem,
    ThreadStillRunning,
    VariableFlaw,
    WrongThread,
)
from installer.domain.problems.usage import (
    AlreadyRunning,
    BadArguments,
    BadChoice,
    CardHeldByStack,
    ConsentNeeded,
    EditedByHand,
    FileUnreadable,
    LicenceNotAccepted,
    MalformedFile,
    NotInstalled,
    NoTokenStore,
    PinNotProved,
    UnknownName,
    UsageProblem,
    WindowNotAvailable,
)

__all__ = [
    "AccessNotGranted",
    "Action",
    "AlreadyRunning",
    "AnswerBroken",
    "AnswerCutShort",
    "AnswerRefused",
    "AnyProblem",
    "ArchitectureUnknown",
    "BadArguments",
    "BadChoice",
    "BadToken",
    "BeyondContext",
    "BoardNotServed",
    "Bug",
    "CacheNotLaidOut",
    "Cancelled",
    "CapabilityTooLow",
    "CaptivePortal",
    "CardAsleep",
    "CardHeldByStack",
    "CardNameUnknown",
    "CardSwitchedOff",
    "CardVariant",
    "CardsDiffer",
    "CauseUnknown",
    "CdiDeviceUnknown",
    "ChatTemplateMissing",
    "ComposeFlaw",
    "ComposeMissing",
    "ComposeTooOld",
    "ConsentNeeded",
    "ContainerExited",
    "ContainerKilled",
    "ContainerNameTaken",
    "ContainerNotOurs",
    "CredentialHelperMissing",
    "CudaOutOfMemory",
    "DesktopWithoutGpu",
    "DigestGone",
    "DiskFull",
    "DiskProblem",
    "DockerProblem",
    "DoesNotFit",
    "DriverCombination",
    "DriverLibraryMismatch",
    "DriverNotLoaded",
    "DriverTooOld",
    "EditedByHand",
    "EngineDown",
    "EngineFailed",
    "EngineIsPodman",
    "EngineLost",
    "EngineNoPermission",
    "EngineNotInstalled",
    "EngineNotLinux",
    "EngineTimedOut",
    "EngineWithoutProxy",
    "EvidenceNotReproduced",
    "FileUnreadable",
    "ForeignEncoding",
    "Fp8NotSupported",
    "FreeBelowUtilisation",
    "FreeMemoryMoved",
    "GpuLost",
    "GpuMemoryUnknown",
    "GpuNotInContainer",
    "GpuProblem",
    "GpuReadFailed",
    "GpuReadTimedOut",
    "HealthProgramMissing",
    "HostMemoryBelowCard",
    "HostNotReached",
    "ImageUnknown",
    "ImageUnusable",
    "InstallerError",
    "Interrupted",
    "JsonArgument",
    "KernelMissing",
    "KvCacheTooSmall",
    "LeftoverWorkers",
    "LicenceNotAccepted",
    "LicenceTagMissing",
    "LoopbackThroughProxy",
    "MalformedFile",
    "MediaNotFetched",
    "MediaRefused",
    "MemoryHiddenByWsl2",
    "MigNotServed",
    "NetworkProblem",
    "NeverHealthy",
    "NoAdapterInWsl",
    "NoCacheBlocks",
    "NoGpu",
    "NoNvidiaDriver",
    "NoSuchPlatform",
    "NoTokenStore",
    "NotAnswering",
    "NotEnoughFreeMemory",
    "NotEnoughHostMemory",
    "NotInstalled",
    "NotReadyYet",
    "NotResident",
    "NotResolvedYet",
    "NotServedYet",
    "NotWritable",
    "NothingFits",
    "NvidiaNoPermission",
    "NvidiaToolkitMissing",
    "NvmlModuleDoubled",
    "OffloadRefused",
    "OtherDigest",
    "PictureUnreadable",
    "PicturesNotRead",
    "PinNotProved",
    "PortTaken",
    "Problem",
    "ProfileBlocked",
    "ProgramNotInImage",
    "ProxyInEngineOnly",
    "ProxyRefused",
    "QtLibraryMissing",
    "QtPluginMissing",
    "Quarantined",
    "RateLimited",
    "ReadyTimedOut",
    "ReasoningInAnswer",
    "ReasoningOnly",
    "RegistryDenied",
    "RegistryExpired",
    "RegistryRecalled",
    "RelaxRefused",
    "RepoUnknown",
    "ServerError",
    "ServerNotRunning",
    "ServerStarting",
    "SharedMemoryTooSmall",
    "SignatureInvalid",
    "SigningNotInstalled",
    "SlowDisk",
    "SlowKernel",
    "SmokeFailed",
    "SmokeProblem",
    "Stalled",
    "StartProblem",
    "StateBlocksTooFew",
    "SymlinkRefused",
    "SystemProblem",
    "Tagged",
    "ThreadStillRunning",
    "TlsNotTrusted",
    "TokenNeeded",
    "Treatment",
    "Truncated",
    "UnknownArgument",
    "UnknownName",
    "Unreachable",
    "UrlHostUnknown",
    "UrlNotFound",
    "UrlNotPublic",
    "UrlNotVideo",
    "UrlTimedOut",
    "UrlTooLarge",
    "UsageProblem",
    "UsesHostMemory",
    "UvaNotAvailable",
    "VariableFlaw",
    "VideoFramesMissing",
    "VideoTooLongForContext",
    "VideoUnreadable",
    "VideosNotRead",
    "VirtualGpu",
    "WeightsDamaged",
    "WindowNotAvailable",
    "WrongContent",
    "WrongThread",
    "WslIntegrationOff",
    "kinds",
    "snake_case",
    "to_json",
]

AnyProblem = (
    BadArguments
    | MalformedFile
    | FileUnreadable
    | UnknownName
    | BadChoice
    | LicenceNotAccepted
    | WindowNotAvailable
    | EditedByHand
    | ConsentNeeded
    | PinNotProved
    | NotInstalled
    | AlreadyRunning
    | CardHeldByStack
    | NoTokenStore
    | PicturesNotRead
    | PictureUnreadable
    | BeyondContext
    | NotServedYet
    | EvidenceNotReproduced
    | LicenceTagMissing
    | SignatureInvalid
    | RegistryExpired
    | RegistryRecalled
    | SigningNotInstalled
    | NoNvidiaDriver
    | DriverNotLoaded
    | DriverLibraryMismatch
    | NvidiaNoPermission
    | GpuReadTimedOut
    | GpuLost
    | GpuReadFailed
    | NoGpu
    | DriverTooOld
    | CapabilityTooLow
    | GpuMemoryUnknown
    | MigNotServed
    | DoesNotFit
    | NotEnoughFreeMemory
    | NotEnoughHostMemory
    | MemoryHiddenByWsl2
    | GpuNotInContainer
    | ProfileBlocked
    | CacheNotLaidOut
    | NothingFits
    | EngineNotInstalled
    | EngineDown
    | EngineNoPermission
    | EngineTimedOut
    | EngineIsPodman
    | EngineNotLinux
    | EngineFailed
    | EngineLost
    | NvidiaToolkitMissing
    | ComposeMissing
    | ComposeTooOld
    | NoSuchPlatform
    | Unreachable
    | TlsNotTrusted
    | Stalled
    | CaptivePortal
    | ServerError
    | RateLimited
    | ImageUnknown
    | DigestGone
    | RegistryDenied
    | TokenNeeded
    | AccessNotGranted
    | RepoUnknown
    | BadToken
    | WrongContent
    | Truncated
    | NotResolvedYet
    | EngineWithoutProxy
    | ProxyInEngineOnly
    | LoopbackThroughProxy
    | DiskFull
    | NotWritable
    | PortTaken
    | KvCacheTooSmall
    | NoCacheBlocks
    | StateBlocksTooFew
    | FreeBelowUtilisation
    | CudaOutOfMemory
    | UnknownArgument
    | ContainerExited
    | ContainerKilled
    | NeverHealthy
    | RelaxRefused
    | ContainerNotOurs
    | ServerNotRunning
    | ServerStarting
    | SmokeFailed
    | NotAnswering
    | CardsDiffer
    | CardVariant
    | CardNameUnknown
    | VirtualGpu
    | UsesHostMemory
    | BoardNotServed
    | CardAsleep
    | CardSwitchedOff
    | LeftoverWorkers
    | HostMemoryBelowCard
    | DriverCombination
    | KernelMissing
    | Fp8NotSupported
    | UvaNotAvailable
    | NotResident
    | NoAdapterInWsl
    | DesktopWithoutGpu
    | WslIntegrationOff
    | CdiDeviceUnknown
    | CredentialHelperMissing
    | ContainerNameTaken
    | HealthProgramMissing
    | ProgramNotInImage
    | OtherDigest
    | ComposeFlaw
    | ProxyRefused
    | WeightsDamaged
    | SymlinkRefused
    | SlowDisk
    | SharedMemoryTooSmall
    | FreeMemoryMoved
    | ArchitectureUnknown
    | OffloadRefused
    | ReadyTimedOut
    | JsonArgument
    | NotReadyYet
    | ReasoningOnly
    | ReasoningInAnswer
    | AnswerCutShort
    | ChatTemplateMissing
    | SlowKernel
    | MediaNotFetched
    | MediaRefused
    | VideoFramesMissing
    | HostNotReached
    | UrlHostUnknown
    | UrlNotFound
    | UrlNotPublic
    | UrlNotVideo
    | UrlTimedOut
    | UrlTooLarge
    | VideoTooLongForContext
    | VideosNotRead
    | VideoUnreadable
    | ImageUnusable
    | ForeignEncoding
    | VariableFlaw
    | QtLibraryMissing
    | QtPluginMissing
    | ThreadStillRunning
    | WrongThread
    | Quarantined
    | NvmlModuleDoubled
    | CauseUnknown
    | AnswerRefused
    | AnswerBroken
    | Interrupted
    | Bug
)
"""Every kind there is: matched exhaustively, so that a kind without a sentence does not type-check."""


def to_json(problem: Problem) -> dict[str, object]:
    """Return a Problem as plain JSON values, with its kind, family, exit code and treatment."""
    values: dict[str, object] = msgspec.to_builtins(problem)
    return values | {
        "family": problem.family,
        "exit_code": problem.exit_code,
        "advice": problem.advice,
        "treatment": problem.treatment.value,
    }


def kinds() -> tuple[type[Problem], ...]:
    """Return every concrete kind, in the order in which they stand here."""
    families = (
        UsageProblem,
        GpuProblem,
        DockerProblem,
        NetworkProblem,
        DiskProblem,
        StartProblem,
        SmokeProblem,
        SystemProblem,
    )
    found = [kind for family in families for kind in family.__subclasses__()]
    return (*found, Interrupted, Bug)
