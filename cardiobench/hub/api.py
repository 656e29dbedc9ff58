"""Hub client: the logged-in user, explanations of refusals, and retries."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cardiobench.core.errors import HubError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")

ATTEMPTS = 5
TIMEOUT = 60.0
"""Timeout in seconds without any received byte."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
READER, READ_ONLY = "read", "read"  # Roles that whoami reports for members and tokens without write access.
BUSY = {408, 425, 500, 502, 503, 504}
OVERTAKEN = {409, 412}  # Another commit came first, so read and merge again.
MEANING = {
    400: "the Hub found the files invalid",
    401: "you are not logged in, or the token is not valid. Log in with `hf auth login` or set HF_TOKEN",
    403: "your token does not have write access there. Use a token with write access, or ask the owner",
    404: "there is no such repository that you can see. Check its name, create it, or log in with `hf auth login`",
    409: "another client is changing the repository",
    412: "the repository kept changing in between",
    429: "the Hub's rate limit was reached",
}


class MissingRepository(HubError):
    """A repository that does not exist, or that this account cannot see."""


@dataclass(frozen=True)
class Account:
    """The account that is logged in.

    Attributes:
        name: User name.
        organisations: Organisations that the user may write for.
        may_write: Whether the token has write access.
    """

    name: str
    organisations: tuple[str, ...] = ()
    may_write: bool = True

    def owns(self, repository: str) -> bool:
        """Return whether the user may write to a repository of their own or of one of their organisations."""
        return repository.partition("/")[0] in (self.name, *self.organisations)


NOBODY = Account("")


def connect() -> "HfApi":
    """Return the client; endpoint and token are those of huggingface_hub (HF_ENDPOINT, HF_TOKEN, `hf auth login`)."""
    from huggingface_hub import HfApi, get_session

    get_session().timeout = TIMEOUT
    return HfApi(library_name="cardiobench")


def call(
    target: object,
    action: Callable[[], T],
    *,
    on_wait: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call the Hub, with retries for temporary failures.

    Args:
        target: Name of the requested object, for errors.
        action: Call that can be repeated safely.
        on_wait: Function called before each pause.
        sleep: Function that waits between attempts.

    Raises:
        HubError: The request was refused, or there was no answer after several attempts.
    """
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except client_errors() as error:
            pause = pause_before_retry(error, attempt)
            if pause is None or attempt == ATTEMPTS - 1:
                raise explanation(str(target), error) from None
            if pause:
                on_wait(f"{target}: the Hub did not answer or refused temporarily; trying again in {pause:g} s")
                sleep(pause)
        except (OSError, RuntimeError) as error:  # Errors of the disk, or built-in exceptions of hf_xet.
            raise HubError(
                f"{target}: {type(error).__name__}: {first_line(error)}. Run the same line again."
            ) from error
    raise AssertionError("every attempt returns or raises")


def whoami(api: "HfApi", sleep: Callable[[float], None] = time.sleep) -> Account:
    """Return the account of the token; `NOBODY` without one, which suffices for reading and for a dry run.

    Raises:
        HubError: The token is not valid, or the Hub cannot be reached.
    """
    from huggingface_hub import get_token

    if not get_token():
        return NOBODY
    facts = call("the Hub", api.whoami, sleep=sleep)
    organisations = [one["name"] for one in facts.get("orgs", ()) if one.get("roleInOrg") != READER]
    role = facts.get("auth", {}).get("accessToken", {}).get("role")
    return Account(facts["name"], tuple(organisations), role != READ_ONLY)


def client_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client for a refusal, no answer, or an invalid name."""
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    return HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError, HFValidationError


def status(error: BaseException | None) -> int:
    """Return the HTTP status of a refusal; 0 if there was no answer."""
    code = getattr(getattr(error, "response", None), "status_code", 0)
    # A failed download only reports a missing cache file; its cause has the reason.
    return code or (status(error.__cause__) if error is not None and error.__cause__ is not None else 0)


def pause_before_retry(error: BaseException, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt; None if another attempt is useless.

    Args:
        error: Error raised by the client.
        attempt: Number of earlier attempts, 0 or more.
    """
    if _final(error):
        return None
    code = status(error)
    growing = FIRST_PAUSE * 2**attempt
    if code == 429:
        asked = error.response.headers.get("Retry-After", "") if hasattr(error, "response") else ""
        return min(float(asked) if asked.isdigit() else growing, LONGEST_PAUSE)
    if code in OVERTAKEN:
        return 0.0
    return growing if code in BUSY or code == 0 else None


def _final(error: BaseException) -> bool:
    from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

    return isinstance(error, (HFValidationError, OfflineModeIsEnabled))


def explanation(target: str, error: BaseException) -> HubError:
    """Return the message for a refusal of the Hub, or for no answer, with one line of the server's message."""
    from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled) or isinstance(error.__cause__, OfflineModeIsEnabled):
        return HubError(f"{target} was not reached: HF_HUB_OFFLINE is set. Unset it to use the Hub.")
    if isinstance(error, HFValidationError):
        return HubError(f"{target} is not a valid Hub name: {first_line(error)}")
    code = status(error)
    if not code:
        return HubError(f"{target} could not be reached ({first_line(error)}). Check the network.")
    kind = MissingRepository if code == 404 else HubError
    meaning = MEANING.get(code, "the Hub reported an internal error" if code >= 500 else "the Hub refused")
    said = getattr(error, "server_message", None) or ""
    return kind(f"{target}: {meaning} (HTTP {code}{': ' + ' '.join(said.split())[:200] if said else ''}).")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
