"""Read a safetensors checkpoint by its headers, and reconcile it with what its config predicts.

The report has one row for each class of tensors: predicted and stored bytes side by side. Every
stored tensor is in a class, in an MTP block, in a tower, or listed as unbooked with a reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.errors import CheckpointError
from ledgerkit.readers.config import parse_json, read_config
from ledgerkit.readers.safetensors_header import StoredTensor, read_header
from ledgerkit.readers.safetensors_names import Expected, expand, match, other_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from ledgerkit.spec.axes import Account, Ledger
    from ledgerkit.spec.model import Model

__all__ = ["Checkpoint", "StoredTensor", "TensorClass", "read_safetensors", "reconcile"]

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_MAX_INDEX_BYTES = 128 << 20
_LISTED = 5


class TensorClass(NamedTuple):
    """Predicted and stored tensors of one name, over all layers and experts."""

    name: str
    ledger: Ledger
    account: Account
    mtp: bool
    predicted_dtype: str
    """Storage format by the config; several are joined with ``+``."""
    predicted_shape: tuple[int, ...]
    """One tensor; slices of a fused one are joined along the outputs."""
    predicted_tensors: int
    predicted_bytes: float
    found_dtype: str
    """Dtypes of the stored tensors, scales and zero points included."""
    found_shape: tuple[int, ...]
    """The largest stored tensor of the class."""
    found_tensors: int
    """Predicted tensors that are there, whole."""
    found_bytes: int

    @property
    def difference_bytes(self) -> float:
        """Stored minus predicted bytes."""
        return self.found_bytes - self.predicted_bytes

    @property
    def agrees(self) -> bool:
        """Whether every predicted tensor is there, with the predicted bytes."""
        return self.found_tensors == self.predicted_tensors and self.difference_bytes == 0


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, reconciled with its config."""

    path: str
    files: tuple[str, ...]
    tensors: tuple[StoredTensor, ...]
    model: Model
    """As the config alone predicts it."""
    classes: tuple[TensorClass, ...]
    """Predicted classes of tensors, MTP blocks last."""
    mtp: tuple[StoredTensor, ...]
    """Tensors of MTP blocks, predicted or not."""
    towers: Mapping[str, tuple[StoredTensor, ...]]
    """Tensors of vision and audio towers and of projectors, by name of the tower."""
    unbooked: tuple[tuple[StoredTensor, str], ...]
    """Tensors that belong to nothing known, each with the reason."""

    @property
    def bytes(self) -> int:
        """Stored bytes of all tensors."""
        return sum(tensor.bytes for tensor in self.tensors)

    @cached_property
    def bytes_by_account(self) -> dict[tuple[Ledger, Account], int]:
        """Stored bytes of the text model, without MTP, by (ledger, account)."""
        books: Counter[tuple[Ledger, Account]] = Counter()
        for row in self.classes:
            if not row.mtp:
                books[row.ledger, row.account] += row.found_bytes
        return dict(books)

    @property
    def differing(self) -> tuple[TensorClass, ...]:
        """Classes in which prediction and file are not equal."""
        return tuple(row for row in self.classes if not row.agrees)

    @property
    def agrees(self) -> bool:
        """Whether prediction and file are equal in every class, and nothing is unbooked.

        A checkpoint that leaves its MTP blocks out altogether still agrees.
        """
        wrong = [row for row in self.differing if self.mtp or not row.mtp]
        return not wrong and not self.unbooked

    @property
    def table(self) -> pl.DataFrame:
        """The classes as a frame: columns of ``TensorClass``, and ``difference_bytes``."""
        import polars as pl

        columns: dict[str, list[Any]] = {field: [] for field in TensorClass._fields}
        for row in self.classes:
            for field, value in zip(TensorClass._fields, row, strict=True):
                columns[field].append(list(value) if isinstance(value, tuple) else value)
        columns["difference_bytes"] = [row.difference_bytes for row in self.classes]
        return pl.DataFrame(columns)


def read_safetensors(
    path: str | Path, config: Mapping[str, Any] | str | Path | None = None
) -> Checkpoint:
    """Read the headers of a checkpoint and reconcile them with its config; no weights are loaded.

    Parameters
    ----------
    path : str or pathlib.Path
        A directory, a ``model.safetensors.index.json``, or one ``.safetensors`` file.
    config : Mapping, str or pathlib.Path, optional
        The config; None = the ``config.json`` beside the files.

    Returns
    -------
    Checkpoint

    Raises
    ------
    CheckpointError
        A file is missing, truncated, corrupt, or contradicts the index.
    ConfigError
        The config cannot be read.
    """
    path = Path(path)
    directory, files, mapped = _files(path)
    tensors = [tensor for name in files for tensor in read_header(directory / name)]
    _check_index(tensors, mapped, path.name)
    beside = directory / "config.json"
    if config is None and not beside.is_file():
        raise CheckpointError("there is no config.json beside the safetensors files",
                              given=str(directory), fix="give config=")  # fmt: skip
    model = read_config(beside if config is None else config)
    return reconcile(model, tensors, str(path))


def _files(path: Path) -> tuple[Path, list[str], dict[str, str] | None]:
    """Return directory, file names and the index's map from tensors to files."""
    if path.is_dir():
        if (path / _INDEX).is_file():
            path = path / _INDEX
        elif (path / _SINGLE).is_file():
            return path, [_SINGLE], None
        else:
            others = sorted(entry.name for entry in path.glob("*.safetensors"))
            if not others:
                raise CheckpointError("the directory holds no safetensors files", given=str(path))
            return path, others, None
    if path.suffix == ".safetensors":
        return path.parent, [path.name], None
    if path.suffix != ".json":
        raise CheckpointError("no safetensors checkpoint: give a directory, an index or a file",
                              given=str(path))  # fmt: skip
    try:
        if path.stat().st_size > _MAX_INDEX_BYTES:
            raise CheckpointError("the index is too large", given=str(path))
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise CheckpointError(f"the index cannot be read: {problem.strerror}",
                              given=str(path)) from None  # fmt: skip
    except UnicodeDecodeError:
        raise CheckpointError("the index is not UTF-8 text", given=str(path)) from None
    mapped = index_map(parse_json(text, str(path)), str(path))
    return path.parent, sorted(set(mapped.values())), mapped


def index_map(index: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the map from tensors to files that an index holds.

    Parameters
    ----------
    index : Mapping
        A parsed ``model.safetensors.index.json``.
    where : str
        How errors call it.

    Examples
    --------
    >>> index_map({"weight_map": {"w": "a.safetensors"}}, "index")
    {'w': 'a.safetensors'}
    """
    mapped = index.get("weight_map")
    if not isinstance(mapped, dict) or not mapped:
        raise CheckpointError("the index has no weight_map", given=where)
    for file in set(mapped.values()) if _all_text(mapped) else (None,):
        if file is None or "/" in file or "\\" in file or not file.endswith(".safetensors"):
            raise CheckpointError(f"{where}: weight_map must map tensors to safetensors files of "
                                  "the same directory", given=file)  # fmt: skip
    return mapped


def _all_text(mapped: dict[Any, Any]) -> bool:
    return all(isinstance(value, str) for value in mapped.values())


def _check_index(tensors: Iterable[StoredTensor], mapped: dict[str, str] | None, path: str) -> None:
    """Refuse files that hold other tensors than the index says, or one tensor twice."""
    places: dict[str, str] = {}
    for tensor in tensors:
        if tensor.name in places:
            raise CheckpointError(f"{path}: a tensor occurs in two files", given=tensor.name)
        places[tensor.name] = tensor.file
    if mapped is None or places == mapped:
        return
    wrong = sorted(name for name in places.keys() | mapped.keys()
                   if places.get(name) != mapped.get(name))  # fmt: skip
    raise CheckpointError(f"{path}: the index and the headers of the files disagree on "
                          f"{len(wrong)} tensors", given=wrong[:_LISTED])  # fmt: skip


def reconcile(model: Model, tensors: Iterable[StoredTensor], path: str) -> Checkpoint:
    """Set the tensors of a checkpoint against those that its config predicts.

    Parameters
    ----------
    model : Model
        Read from the config.
    tensors : iterable of StoredTensor
        From the headers.
    path : str
        Where they come from.
    """
    stored = tuple(tensors)
    expected, classes = expand(model)
    hits: dict[tuple[str, bool], _Hits] = {key: _Hits() for key in classes}
    mtp: list[StoredTensor] = []
    towers: dict[str, list[StoredTensor]] = {}
    unbooked: list[tuple[StoredTensor, str]] = []
    for tensor in stored:
        targets = match(tensor.name, expected)
        if targets:
            _share(tensor, targets, {name: expected[name].key for name in targets}, classes, hits)
            if expected[targets[0]].key[1]:
                mtp.append(tensor)
            continue
        kind, detail = other_place(tensor.name, model)
        if kind == "tower":
            towers.setdefault(detail, []).append(tensor)
        elif kind == "mtp":
            mtp.append(tensor)
        else:
            unbooked.append((tensor, detail))
    return Checkpoint(
        path=path,
        files=tuple(dict.fromkeys(tensor.file for tensor in stored)),
        tensors=stored,
        model=model,
        classes=tuple(_row(classes[key], hits[key]) for key in classes),
        mtp=tuple(mtp),
        towers={name: tuple(found) for name, found in towers.items()},
        unbooked=tuple(unbooked),
    )


class _Hits:
    """What was found of one class."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.bytes = 0
        self.dtypes: set[str] = set()
        self.shape: tuple[int, ...] = ()
        self.largest = -1


def _share(
    tensor: StoredTensor,
    targets: list[str],
    keys: dict[str, tuple[str, bool]],
    classes: dict[tuple[str, bool], Expected],
    hits: dict[tuple[str, bool], _Hits],
) -> None:
    """Book one stored tensor; a fused one is shared out by the predicted bytes of its parts."""
    by_class: dict[tuple[str, bool], list[str]] = {}
    for name in targets:
        by_class.setdefault(keys[name], []).append(name)
    weights = {key: classes[key].bytes / classes[key].tensors * len(names)
               for key, names in by_class.items()}  # fmt: skip
    left, total = tensor.bytes, sum(weights.values())
    for position, (key, names) in enumerate(by_class.items()):
        last = position == len(by_class) - 1
        part = left if last else round(tensor.bytes * weights[key] / total)
        left -= part
        found = hits[key]
        found.names.update(names)
        found.bytes += part
        found.dtypes.add(tensor.dtype)
        if tensor.bytes > found.largest:
            found.largest, found.shape = tensor.bytes, tensor.shape


def _row(expected: Expected, found: _Hits) -> TensorClass:
    first = expected.weights[0][0]
    return TensorClass(
        name=expected.name, ledger=first.ledger, account=first.account, mtp=expected.mtp,
        predicted_dtype="+".join(sorted({weight.dtype for weight, _ in expected.weights})),
        predicted_shape=expected.shape, predicted_tensors=expected.tensors,
        predicted_bytes=expected.bytes, found_dtype="+".join(sorted(found.dtypes)),
        found_shape=found.shape, found_tensors=len(found.names), found_bytes=found.bytes,
    )  # fmt: skip
