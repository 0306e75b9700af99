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
)
from installer.domain.problems.base import (
    Action,
    Bug,
    Cancelled,
    InstallerError,
    Interrupted,
    Problem,
    Tagged,
    snake_case,
)
from installer.domain.problems.disk import DiskFull, DiskProblem, NotWritable
from installer.domain.problems.docker import (
    ComposeMissing,
    ComposeTooOld,
    DockerProblem,
    EngineDown,
    EngineFailed,
    EngineIsPodman,
    EngineLost,
    EngineNoPermission,
    EngineNotInstalled,
    EngineNotLinux,
    EngineTimedOut,
    NoSuchPlatform,
    NvidiaToolkitMissing,
)
from installer.domain.problems.graphics_card import (
    CacheNotLaidOut,
    CapabilityTooLow,
    DoesNotFit,
    DriverLibraryMismatch,
    DriverNotLoaded,
    DriverTooOld,
    GpuLost,
    GpuMemoryUnknown,
    GpuNotInContainer,
    GpuProblem,
    GpuReadFailed,
    GpuReadTimedOut,
    MemoryHiddenByWsl2,
    MigNotServed,
    NoGpu,
    NoNvidiaDriver,
    NotEnoughFreeMemory,
    NotEnoughHostMemory,
    NothingFits,
    NvidiaNoPermission,
    ProfileBlocked,
)
from installer.domain.problems.network import (
    AccessNotGranted,
    BadToken,
    CaptivePortal,
    DigestGone,
    ImageUnknown,
    NetworkProblem,
    NotResolvedYet,
    RateLimited,
    RegistryDenied,
    RepoUnknown,
    ServerError,
    Stalled,
    TlsNotTrusted,
    TokenNeeded,
    Truncated,
    Unreachable,
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
from installer.domain.problems.smoke import NotAnswering, SmokeFailed, SmokeProblem
from installer.domain.problems.start import (
    ContainerExited,
    ContainerKilled,
    ContainerNotOurs,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    KvCacheTooSmall,
    NeverHealthy,
    NoCacheBlocks,
    PortTaken,
    RelaxRefused,
    StartProblem,
    StateBlocksTooFew,
    UnknownArgument,
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
    UnknownName,
    UsageProblem,
    WindowNotAvailable,
)

__all__ = [
    "AccessNotGranted",
    "Action",
    "AlreadyRunning",
    "AnswerBroken",
    "AnswerRefused",
    "AnyProblem",
    "BadArguments",
    "BadChoice",
    "BadToken",
    "BeyondContext",
    "Bug",
    "CacheNotLaidOut",
    "Cancelled",
    "CapabilityTooLow",
    "CaptivePortal",
    "CardHeldByStack",
    "ComposeMissing",
    "ComposeTooOld",
    "ConsentNeeded",
    "ContainerExited",
    "ContainerKilled",
    "ContainerNotOurs",
    "CudaOutOfMemory",
    "DigestGone",
    "DiskFull",
    "DiskProblem",
    "DockerProblem",
    "DoesNotFit",
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
    "FreeBelowUtilisation",
    "GpuLost",
    "GpuMemoryUnknown",
    "GpuNotInContainer",
    "GpuProblem",
    "GpuReadFailed",
    "GpuReadTimedOut",
    "ImageUnknown",
    "InstallerError",
    "Interrupted",
    "KvCacheTooSmall",
    "LicenceNotAccepted",
    "LicenceTagMissing",
    "LoopbackThroughProxy",
    "MalformedFile",
    "MemoryHiddenByWsl2",
    "MigNotServed",
    "NetworkProblem",
    "NeverHealthy",
    "NoCacheBlocks",
    "NoGpu",
    "NoNvidiaDriver",
    "NoSuchPlatform",
    "NoTokenStore",
    "NotAnswering",
    "NotEnoughFreeMemory",
    "NotEnoughHostMemory",
    "NotInstalled",
    "NotResolvedYet",
    "NotServedYet",
    "NotWritable",
    "NothingFits",
    "NvidiaNoPermission",
    "NvidiaToolkitMissing",
    "PictureUnreadable",
    "PicturesNotRead",
    "PortTaken",
    "Problem",
    "ProfileBlocked",
    "ProxyInEngineOnly",
    "RateLimited",
    "RegistryDenied",
    "RegistryExpired",
    "RegistryRecalled",
    "RelaxRefused",
    "RepoUnknown",
    "ServerError",
    "ServerNotRunning",
    "SignatureInvalid",
    "SigningNotInstalled",
    "SmokeFailed",
    "SmokeProblem",
    "Stalled",
    "StartProblem",
    "StateBlocksTooFew",
    "Tagged",
    "TlsNotTrusted",
    "TokenNeeded",
    "Truncated",
    "UnknownArgument",
    "UnknownName",
    "Unreachable",
    "UsageProblem",
    "WindowNotAvailable",
    "WrongContent",
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
    | SmokeFailed
    | NotAnswering
    | AnswerRefused
    | AnswerBroken
    | Interrupted
    | Bug
)
"""Every kind there is: matched exhaustively, so that a kind without a sentence does not type-check."""


def to_json(problem: Problem) -> dict[str, object]:
    """Return a Problem as plain JSON values, with its kind, family and exit code."""
    values: dict[str, object] = msgspec.to_builtins(problem)
    return values | {"family": problem.family, "exit_code": problem.exit_code, "advice": problem.advice}


def kinds() -> tuple[type[Problem], ...]:
    """Return every concrete kind, in the order in which they stand here."""
    families = (UsageProblem, GpuProblem, DockerProblem, NetworkProblem, DiskProblem, StartProblem, SmokeProblem)
    found = [kind for family in families for kind in family.__subclasses__()]
    return (*found, Interrupted, Bug)
