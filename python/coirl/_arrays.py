"""What people pass, as the arrays that the extension takes: contiguous, of one type, of the right number of dimensions."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArrayError, FileError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

#: More numbers than this are not held at once.
_MOST_NUMBERS = 2**30


def _plain(what: str, value: Any) -> npt.NDArray[Any]:
    """Any array of numbers; text, objects, dates and complex numbers are none."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ArrayError(f"{what} is no array: {error}", what=what) from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{what} is an array of objects; expected numbers") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} is an array of type {array.dtype}; expected numbers")
    return array


def _dimensions(what: str, array: npt.NDArray[Any], wanted: tuple[int, ...]) -> None:
    if array.ndim not in wanted:
        expected = " or ".join(f"{n} dimension{'s' * (n != 1)}" for n in wanted)
        raise ArrayError(
            f"{what} has shape {list(array.shape)}; expected an array of {expected}",
            what=what,
            expected=expected,
            found=list(array.shape),
        )


def floats(what: str, value: Any, *dimensions: int) -> Floats:
    """An array of floats with one of these numbers of dimensions; no copy where it is one already."""
    array = _plain(what, value)
    _dimensions(what, array, dimensions)
    return np.ascontiguousarray(array, dtype=np.float64)


def integers(what: str, value: Any, *dimensions: int) -> Integers:
    """The same of whole numbers; floats are taken where they are whole."""
    array = _plain(what, value)
    _dimensions(what, array, dimensions)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**62)
        if not whole.all():
            index = int(np.flatnonzero(~whole.ravel())[0])
            found = array.ravel()[index]
            raise ArrayError(f"{what}[{index}] is {found}; expected a whole number", what=what, index=index, value=float(found))
    elif array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ArrayError(f"{what} has entries beyond 64 bits; expected indices", what=what)
    return np.ascontiguousarray(array, dtype=np.int64)


def booleans(what: str, value: Any, *dimensions: int) -> Booleans:
    """The same of flags; numbers are taken where they are zero or one."""
    array = _plain(what, value)
    _dimensions(what, array, dimensions)
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ArrayError(f"{what} has entries other than 0 and 1; expected flags", what=what)
    return np.ascontiguousarray(array, dtype=np.bool_)


def policy(value: Any) -> Integers | Floats:
    """Whole numbers are actions, others probabilities."""
    array = _plain("policy", value)
    _dimensions("policy", array, (1, 2, 3))
    if array.dtype.kind in "iub":
        return integers("policy", array, 1, 2, 3)
    return np.ascontiguousarray(array, dtype=np.float64)


def contexts(value: Any) -> Floats:
    """A row per context; a single context is one row."""
    array = floats("contexts", value, 1, 2)
    return array.reshape(1, -1) if array.ndim == 1 else array


def count(what: str, value: Any, least: int = 0) -> int:
    """A whole number that is not too small."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} is {value!r}; expected a whole number")
    if not least <= int(value) < 2**63:
        raise ArrayError(f"{what} is {value}; expected a whole number of at least {least}", what=what, value=int(value))
    return int(value)


def parts(what: str, value: Any) -> list[Any]:
    """What something consists of, if it can be walked through."""
    try:
        return list(value)
    except (TypeError, NotImplementedError, ValueError) as error:
        raise TypeError(f"{what} is a {type(value).__name__}; expected a list") from error


def file_name(path: str | os.PathLike[str]) -> str:
    """The name of a file as text, if it can be one."""
    name = os.fsdecode(path)
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise FileError(f"{name!r} cannot be the name of a file: {error.reason}", path=name) from None
    return name


def flag(what: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} is {value!r}; expected True or False")
    return bool(value)


def room(what: str, *sizes: int) -> None:
    """Refuses what no memory would hold; asking the system for it would end the process."""
    wanted = math.prod(sizes)
    if wanted > _MOST_NUMBERS:
        raise ArrayError(
            f"{what}: {wanted} numbers are more than the {_MOST_NUMBERS} that can be held",
            what=what,
            count=wanted,
            limit=_MOST_NUMBERS,
        )


def number(what: str, value: Any) -> float:
    """One number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{what} is {value!r}; expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ArrayError(f"{what} is {value}; expected a number in double precision", what=what) from None
