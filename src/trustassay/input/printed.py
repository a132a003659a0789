"""Reads lists and objects that are written as Python prints them. No code is run.

1. Angle brackets are no Python. ``<Kind.TEXT: '1'>`` becomes the value in it, and any other object
   in them becomes a name that stands for an object without content.
2. The text is parsed to a syntax tree.
3. Literals become their values. ``Document(page_content='...')`` becomes an object of its keyword
   arguments, ``array([...])`` its list, and ``float64(0.3)`` its number.
"""

import ast
import datetime
import re
import warnings
from typing import Any

from trustassay.input.layouts import NAMES

MAX_CHARACTERS, MAX_MARKS = 2**22, 2**18
"""Limits of a text, and of its commas, brackets and quotes, which bound the syntax tree."""
_MARKS = ",[({'\""
_AS_JSON = 'write the texts as JSON: ["one", "two"]'
NO_LIST = f"cannot be read as a list; {_AS_JSON}"
"""The problem of a text that begins as a list and is not one."""
CUT_OFF = 'was cut off when it was printed ("..."); write all texts as JSON: ["one", "two"]'
TOO_LONG = "is too long for a list printed by Python; write it as JSON"
_CALL = r"[A-Za-z_][\w.]*\((?=\w+[=:]|['\"\[({<])"
_OPAQUE = r"<(?:[\w.]*\b[A-Z]\w*[ (:]|[A-Za-z_][\w.]* (?:object|at 0x))[^<>]*>"
_CONTAINERS = ("array", "deque", "OrderedDict", "defaultdict")
_FIELDS = "|".join(
    name for kind, names in NAMES["passages"].items() if kind != "lists" for name in names.split()
)
_START = re.compile(rf"\s*(?:[\[{{<]|\(\s*(?:['\"\[({{]|{_CALL})|{_CALL}|page_content=)")
"""The beginning of a text that may be a list or an object; most texts are told apart by it."""
_MEANT = re.compile(
    rf"\[\s*(?:['\"{{]|{_CALL}|{_OPAQUE}\s*[,\]])|\{{\s*['\"]"
    # A passage on code may begin so, and ends as a sentence does.
    rf"|(?:\w+\.)?(?:{'|'.join(_CONTAINERS)})\([\[({{<](?=[\s\S]*(?:[)\]}}…]|\.\.\.)\Z)"
    rf"|[A-Z]\w*\((?:{_FIELDS})_?[=:]|page_content=['\"]|{_OPAQUE}\Z"
)
"""The beginning of a text that is nothing else; a passage may begin with ``[1]``."""
_LANGCHAIN_TEXT = "page_content='"
"""The beginning of a document of LangChain by ``str``, in whose text quotes are not escaped."""
_TEXT = r"""'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)"""
"""A text in quotes; one that is never closed reaches to the end, so that no part is read twice."""
_ANGLES = re.compile(
    rf"""{_TEXT}|<[A-Za-z_][\w.]*: ?('[^'\n]*'|"[^"\n]*"|-?\d+)>|(<[A-Za-z_][^<>]*>)""",
    re.DOTALL,
)
_NO_CONTENT = "_OBJECT_WITHOUT_CONTENT"
_CONSTANTS = {
    **dict.fromkeys(("nan", "NaN", "NaT", "NA", "inf", "null", _NO_CONTENT)),
    **{"true": True, "false": False, "True_": True, "False_": False},
}
_SCALAR = re.compile(
    r"(?:u?int|float|bool|str|bytes)\d*_?|Decimal|UUID|Timestamp|ObjectId|\w*Path|\w*Url"
)
"""Classes that print a single value."""


class UnreadableError(ValueError):
    """A text begins as a list or an object and cannot be read; the message says why."""


def begins_as_value(text: str) -> bool:
    """Whether a text begins as a list or an object does, in JSON or as Python prints it."""
    return bool(_START.match(text))


def parse_printed(text: str) -> Any:
    """Return the list or object that a text is as Python prints it; ``None`` for other texts."""
    try:
        return _parse(text.strip()) if begins_as_value(text) else None
    except UnreadableError:
        return None


def explain_unreadable(text: str) -> str:
    """Return why a text that is meant as a list or an object cannot be read.

    The result is empty for readable texts, and for all that do not begin as a list or an object.
    """
    if not begins_as_value(text) or not _MEANT.match(text.strip()):
        return ""
    try:
        return "" if _parse(text.strip()) is not None else NO_LIST
    except UnreadableError as error:
        return str(error)


def _parse(text: str) -> Any:
    if text.startswith(_LANGCHAIN_TEXT) and text.endswith(("'", "}")):
        content, metadata, _ = text.removeprefix(_LANGCHAIN_TEXT).partition("' metadata={")
        return {"page_content": content if metadata else content.removesuffix("'")}
    if opaque := re.fullmatch(_OPAQUE, text):
        raise UnreadableError(_describe_opaque(opaque[0]))
    if text.startswith("<"):
        return None
    if len(text) > MAX_CHARACTERS or sum(map(text.count, _MARKS)) > MAX_MARKS:
        raise UnreadableError(TOO_LONG)
    opaque_texts: list[str] = []

    def replace_angles(match: re.Match[str]) -> str:
        if match[2]:
            opaque_texts.append(match[2])
        return _NO_CONTENT if match[2] else match[1] or match[0]

    python = _ANGLES.sub(replace_angles, text)
    try:
        # On an escape that Python does not know, as in 'C:\\data', it would warn the user.
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(python, mode="eval").body
            result = _convert(tree, is_element=True)
            if isinstance(tree, ast.List):
                result = _split_adjacent_texts(python, result)
    except UnreadableError as error:
        raise UnreadableError(str(error) or _describe_opaque(*opaque_texts[:1])) from None
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        # A list of NumPy with more than 1000 elements, a cell of pandas, a long text of Haystack.
        is_cut = text.endswith(("...", "…")) or re.search(r"\.\.\.['\"]?\s*[,\])}]", text)
        raise UnreadableError(CUT_OFF if is_cut else NO_LIST) from error
    return result if isinstance(result, list | dict) else None


def _describe_opaque(text: str = _NO_CONTENT) -> str:
    return f"has an object without its text ({text[:40]}); {_AS_JSON}"


def _split_adjacent_texts(python: str, result: list[Any]) -> list[Any]:
    """Return the elements of a list; NumPy prints no commas, and Python joins adjacent texts."""
    if not result or not all(isinstance(element, str) for element in result):
        return result
    texts = re.findall(_TEXT, python, re.DOTALL)
    return [ast.literal_eval(text) for text in texts] if len(texts) > len(result) else result


def _convert(node: ast.AST, *, is_element: bool = False) -> Any:
    """Return the value of a syntax tree in JSON's types.

    Args:
        node: the tree.
        is_element: whether it is an element of a list, and so may be a passage. Elsewhere, a value
            of an unknown kind is kept as a text.

    Raises:
        UnreadableError: an element was cut off, or printed without its content; then the message
            is empty.
        ValueError: it is no list or object.
    """
    match node:
        case ast.Constant():
            return _convert_constant(node.value)
        case ast.List() | ast.Tuple():
            return [_convert(element, is_element=True) for element in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            # ``{**other}``, which Python does not print, has no key.
            return {str(_convert(key or node)): _convert(value) for key, value in pairs}
        case ast.UnaryOp(operand=ast.Name(id="inf" | "nan")):
            node = node.operand
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _convert_constant(ast.literal_eval(node))
        case ast.Call():
            return _convert_call(node, is_element=is_element)
    name = _name_of(node)
    if name == _NO_CONTENT and is_element:
        raise UnreadableError
    if is_element and name not in _CONSTANTS:
        raise ValueError(type(node).__name__)
    return _CONSTANTS[name] if name in _CONSTANTS else ast.unparse(node)


def _convert_constant(value: Any) -> Any:
    if value is ...:
        raise UnreadableError(CUT_OFF)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, complex) else value


def _convert_call(node: ast.Call, *, is_element: bool) -> Any:
    """Return the value of a call; raises as :func:`_convert` where its class prints none so."""
    name = _name_of(node.func)
    if name in _CONTAINERS and node.args:
        # ``defaultdict`` prints its factory first.
        content = _convert(node.args[-1], is_element=True)
        is_pairs = name == "OrderedDict" and isinstance(content, list)
        return {str(key): value for key, value in content} if is_pairs else content
    values = [_convert(value, is_element=is_element) for value in node.args]
    if name in {"date", "datetime"} and values and all(type(value) is int for value in values):
        return getattr(datetime, name)(*values).isoformat()
    if len(values) == 1 and _SCALAR.fullmatch(name):
        return values[0]
    if name and node.keywords and not values:
        return {str(item.arg): _convert(item.value) for item in node.keywords}
    if is_element:
        raise ValueError(name)
    return ast.unparse(node)


def _name_of(node: ast.AST) -> str:
    """Return the last part of a name with dots: "float64" of ``np.float64``; empty for others."""
    if isinstance(node, ast.Attribute):
        return node.attr if _name_of(node.value) else ""
    return node.id if isinstance(node, ast.Name) else ""
