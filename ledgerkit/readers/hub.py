"""Read models from a hub, through the hub's own client (extra ``hub``).

Only ``config.json``, the index and the headers of safetensors files are fetched, never weights. The
client's environment is honoured: ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``,
``HF_HUB_CACHE``. The commit that was read is recorded in ``Model.source``.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.errors import CheckpointError, HubError
from ledgerkit.readers.config import parse_json, read_config
from ledgerkit.readers.safetensors import index_map, reconcile
from ledgerkit.readers.safetensors_header import DTYPE_BITS, StoredTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.readers.safetensors import Checkpoint
    from ledgerkit.spec.model import Model

__all__ = ["read_hub", "read_hub_checkpoint"]

_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"snapshots[/\\]([0-9a-f]{7,64})[/\\]")
_MAX_JSON_BYTES = 128 << 20


class _Place(NamedTuple):
    """Where to read: repository, revision and how to reach the hub."""

    repo: str
    revision: str | None
    endpoint: str | None
    token: str | None
    cache_dir: str | Path | None
    timeout_s: float


def read_hub(
    ref: str,
    revision: str | None = None,
    *,
    token: str | None = None,
    endpoint: str | None = None,
    cache_dir: str | Path | None = None,
    timeout_s: float = 10.0,
) -> Model:
    """Read the config of a model on a hub.

    Parameters
    ----------
    ref : str
        ``"org/name"``, or ``"org/name@revision"``.
    revision : str, optional
        Branch, tag or commit; None = the main branch.
    token : str, optional
        Access token; None = from the environment.
    endpoint : str, optional
        Address of the hub; None = ``HF_ENDPOINT``, or the client's own.
    cache_dir : str or pathlib.Path, optional
        The client's cache; None = from the environment.
    timeout_s : float
        Seconds to wait for the hub to answer.

    Returns
    -------
    Model
        Its ``source`` names the commit.

    Raises
    ------
    HubError
        The client is missing, or the hub cannot be reached, refuses, or answers with something
        else than a config.
    ConfigError
        The config cannot be read into a model.
    """
    place = _place(ref, revision, token, endpoint, cache_dir, timeout_s)
    config, source = _config(place)
    return read_config(config, place.repo.rpartition("/")[2].lower(), source)


def read_hub_checkpoint(
    ref: str,
    revision: str | None = None,
    *,
    token: str | None = None,
    endpoint: str | None = None,
    cache_dir: str | Path | None = None,
    timeout_s: float = 10.0,
) -> Checkpoint:
    """Read config and safetensors headers of a model on a hub, and reconcile them.

    Parameters
    ----------
    ref, revision, token, endpoint, cache_dir, timeout_s
        As for ``read_hub``.

    Returns
    -------
    Checkpoint

    Raises
    ------
    HubError
        As for ``read_hub``.
    CheckpointError
        The repository holds no safetensors checkpoint, or a header contradicts the index.
    """
    place = _place(ref, revision, token, endpoint, cache_dir, timeout_s)
    config, source = _config(place)
    model = read_config(config, place.repo.rpartition("/")[2].lower(), source)
    commit = _COMMIT_IN_SOURCE.search(source)
    pinned = place._replace(revision=commit[1]) if commit else place
    index = _fetch(pinned, "model.safetensors.index.json", optional=True)
    if index is None:
        files, mapped = ["model.safetensors"], None
    else:
        mapped = index_map(_json(index, pinned), place.repo)
        files = sorted(set(mapped.values()))
    tensors = [tensor for file in files for tensor in _header(pinned, file)]
    if mapped is not None and {tensor.name: tensor.file for tensor in tensors} != mapped:
        raise CheckpointError(f"{place.repo}: the index and the headers of the files disagree")
    return reconcile(model, tensors, source)


_COMMIT_IN_SOURCE = re.compile(r"/blob/([0-9a-f]{7,64})/")


def _place(
    ref: str,
    revision: str | None,
    token: str | None,
    endpoint: str | None,
    cache_dir: str | Path | None,
    timeout_s: float,
) -> _Place:
    match = _ID.fullmatch(str(ref))
    if match is None:
        raise HubError("no hub id", given=ref, allowed='"org/name" or "org/name@revision"')
    if revision is not None and match["revision"] not in (None, revision):
        raise HubError("two different revisions", given=(match["revision"], revision))
    # the client reads the variable once, when it is first imported
    endpoint = endpoint or os.environ.get("HF_ENDPOINT") or None
    endpoint = endpoint.rstrip("/") if endpoint else None
    revision = revision or match["revision"]
    return _Place(match["repo"], revision, endpoint, token, cache_dir, timeout_s)


def _client() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise HubError("reading from a hub needs its client, huggingface_hub",
                       fix="install the extra: ledgerkit-llm[hub]") from None  # fmt: skip
    return huggingface_hub


def _config(place: _Place) -> tuple[dict[str, Any], str]:
    """Return the config and its public address, commit included."""
    path = _fetch(place, "config.json")
    if path is None:
        raise HubError(f"{place.repo} has no config.json", given=place.revision)
    endpoint = place.endpoint or _client().constants.ENDPOINT
    commit = _COMMIT.search(str(path))
    revision = commit[1] if commit else place.revision or "main"
    return _json(path, place), f"{endpoint}/{place.repo}/blob/{revision}/config.json"


def _json(path: Path, place: _Place) -> dict[str, Any]:
    where = f"{place.repo}/{path.name}"
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise HubError(f"{where} is too large", given=f"{path.stat().st_size} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise HubError(f"{where} is not UTF-8 text") from None
    if text.lstrip().startswith("<"):
        raise HubError(
            f"the hub answered with a web page instead of {path.name}", given=text[:80],
            fix=f"check HF_ENDPOINT and the proxy, then delete {path} from the cache",
        )  # fmt: skip
    return parse_json(text, where)


def _fetch(place: _Place, name: str, *, optional: bool = False) -> Path | None:
    """Return the path of a file in the client's cache; None where it may be missing, and is."""
    client = _client()
    with _translated(place, name), _quiet(client):
        try:
            answers = _hub_answers(client, place, name)
            return Path(
                client.hf_hub_download(
                    place.repo, name, revision=place.revision, token=place.token,
                    endpoint=place.endpoint, cache_dir=place.cache_dir,
                    local_files_only=not answers,
                )
            )  # fmt: skip
        except client.errors.EntryNotFoundError as problem:
            if optional and not isinstance(problem, client.errors.LocalEntryNotFoundError):
                return None
            raise


def _hub_answers(client: Any, place: _Place, name: str) -> bool:
    """Whether the hub has the file; False when only the cache can serve it.

    Asked by one request with our own time limit: the client alone would try again for minutes.
    """
    if client.constants.HF_HUB_OFFLINE:
        return False
    url = client.hf_hub_url(place.repo, name, revision=place.revision, endpoint=place.endpoint)
    try:
        client.get_hf_file_metadata(url, token=place.token, timeout=place.timeout_s)
    except _transport_errors(client) as problem:
        status = getattr(getattr(problem, "response", None), "status_code", 500)
        cached = client.try_to_load_from_cache(
            place.repo, name, cache_dir=place.cache_dir, revision=place.revision
        )
        if status >= 500 and isinstance(cached, str):
            return False
        raise
    return True


def _transport_errors(client: Any) -> tuple[type[BaseException], ...]:
    """Return what a failing connection raises: errors of requests or httpx, by client version."""
    return (OSError, *client.errors.HfHubHTTPError.__bases__)


def _header(place: _Place, file: str) -> list[StoredTensor]:
    """Fetch the header of one safetensors file by byte ranges."""
    client = _client()
    with _translated(place, file):
        try:
            api = client.HfApi(endpoint=place.endpoint, token=place.token)
            found = api.parse_safetensors_file_metadata(place.repo, file, revision=place.revision)
        except client.errors.SafetensorsParsingError as problem:
            raise CheckpointError(f"{place.repo}/{file}: the header cannot be parsed",
                                  given=str(problem)) from None  # fmt: skip
    tensors = []
    for name, entry in found.tensors.items():
        size = entry.data_offsets[1] - entry.data_offsets[0]
        tensor = StoredTensor(name, str(entry.dtype), tuple(entry.shape), size, file)
        if tensor.elements * DTYPE_BITS.get(tensor.dtype, -1) != 8 * size:
            raise CheckpointError(f"{place.repo}/{file}: tensor {name!r} has an unknown dtype or "
                                  "offsets that are not its size", given=tensor)  # fmt: skip
        tensors.append(tensor)
    return tensors


@contextmanager
def _quiet(client: Any) -> Iterator[None]:
    """Keep the client from drawing a progress bar for a file of a few kilobytes."""
    disabled = client.utils.are_progress_bars_disabled()
    if not disabled:
        client.utils.disable_progress_bars()
    try:
        yield
    finally:
        if not disabled:
            client.utils.enable_progress_bars()


@contextmanager
def _translated(place: _Place, name: str) -> Iterator[None]:
    """Turn what the client raises into a ``HubError`` that says what to do."""
    client = _client()
    errors = client.errors
    where = f"{place.repo}" + (f"@{place.revision}" if place.revision else "")
    try:
        yield
    except errors.GatedRepoError as problem:
        raise HubError(f"{where} is gated", given=_status(problem),
                       fix="accept its terms on the hub, then set HF_TOKEN") from None  # fmt: skip
    except errors.RevisionNotFoundError:
        raise HubError(f"{place.repo} has no such revision", given=place.revision) from None
    except errors.RepositoryNotFoundError as problem:
        raise HubError(
            f"the hub has no repository {where}, or it is private", given=_status(problem),
            fix="check the id; for a private repository set HF_TOKEN",
        ) from None  # fmt: skip
    except errors.LocalEntryNotFoundError as problem:
        raise _unreachable(where, name, problem) from None
    except errors.EntryNotFoundError:
        raise HubError(f"{where} has no {name}", fix="give the id of a model in the layout of "
                       "transformers, or the path of a file") from None  # fmt: skip
    except errors.HfHubHTTPError as problem:
        raise HubError(f"the hub refused {name} of {where}", given=_status(problem),
                       fix="check HF_TOKEN and HF_ENDPOINT") from None  # fmt: skip
    except errors.HFValidationError as problem:
        raise HubError("no hub id", given=str(problem)) from None
    except _transport_errors(client) as problem:
        raise _unreachable(where, name, problem) from None


def _unreachable(where: str, name: str, problem: BaseException) -> HubError:
    cause = problem.__cause__ or problem
    response = getattr(cause, "response", None)
    if getattr(response, "status_code", None) is not None:
        return HubError(f"the hub refused {name} of {where}", given=_status(cause),
                        fix="check HF_TOKEN and HF_ENDPOINT, or try again later")  # fmt: skip
    if type(cause).__name__ == "FileMetadataError":
        return HubError("what answers at this address is no hub", given=str(cause)[:160],
                        fix="check HF_ENDPOINT and the proxy")  # fmt: skip
    return HubError(
        f"{name} of {where} is not in the cache, and the hub cannot be reached",
        given=f"{type(cause).__name__}: {cause}"[:160],
        fix="check the connection, HF_ENDPOINT and HF_HUB_OFFLINE",
    )


def _status(problem: BaseException) -> str:
    response = getattr(problem, "response", None)
    status = getattr(response, "status_code", None)
    return f"HTTP {status}" if status is not None else type(problem).__name__
