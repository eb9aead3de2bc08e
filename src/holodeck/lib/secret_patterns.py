"""How secrets look: the forms of keys and tokens, and the names that stand before them.

All patterns are RE2's. Where a form alone says too little (``basic understanding``, ``token: 5``), :data:`RULES` has the last word.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

__all__ = ["CERTAIN", "LIKELY", "MAIL", "MAYBE_NAME", "NAME", "RULES", "mailbox", "rest_of_value"]

_STRIPE: Final = frozenset(f"{kind}k_{mode}_" for kind in "spr" for mode in ("live", "test"))
_LONGEST_BOX: Final = 64
"""Characters before the ``@`` of an e-mail address (RFC 5321)."""

_LONGEST_NAME: Final = 16
"""Characters of a name or a word; what is longer, and has digits and letters of both cases in it, is none."""

_PEM: Final = r"[A-Za-z0-9+/=\s\\:,-]*"
_PLAIN: Final = "|".join(
    (
        *("gh[pousr]_", "npm_", "hf_", "gsk_", "sbp_", "dop_v1_", "doo_v1_", "shp(?:at|ca|pa|ss)_", "lin_api_", "ntn_", "rubygems_", "r8_"),
        *("tvly-", "pplx-", "xai-", "hv[sb]\\.", "whsec_", "ATATT3", "secret_"),
    )
)
_DASHED: Final = "|".join(
    (
        *(
            "sk-(?:proj|ant|or|svcacct|admin|lf)-",
            "github_pat_",
            "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-",
            "pypi-",
            "nvapi-",
            "lsv2_",
            "sq0[a-z]{3}-",
        ),
        *(
            "GOCSPX-",
            "ya29\\.",
            "gl(?:sa|c)_",
            "dckr_pat_",
            "figd_",
            "PMAK-",
            "NRAK-",
            "pscale_tkn_",
            "sntr[yu]s_",
            "dp\\.pt\\.",
            "api_org_",
        ),
    )
)

# What is a secret by its look alone, whatever stands around it. A group is the part to be hidden; without one it is the whole match.
# Nothing here begins with a repetition, and repetitions are counted in rules: both would cost RE2 its speed.
CERTAIN: Final = "|".join(
    (
        rf"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:{_PEM}?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|{_PEM})",
        r"(?P<jwt>eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)*)",
        rf"(?P<plain>(?:{_PLAIN})[A-Za-z0-9]+)|(?P<dashed>(?:{_DASHED})[A-Za-z0-9_-]+)",
        r"(?:\b|_|\\[nrt])(?P<generic>(?:sk|pk|rk)-[A-Za-z0-9_-]+|sk_[A-Za-z0-9_-]+|[pr]k_(?:live|test)_[A-Za-z0-9]+)",
        r"(?P<slack>xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]+|xapp-[A-Za-z0-9-]+)|hooks\.slack\.com/(?P<hook>[A-Za-z0-9/]+)",
        r"discord(?:app)?\.com/api/webhooks/(?P<discord>[0-9]+/[A-Za-z0-9_-]+)",
        r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b|AIza[0-9A-Za-z_-]{30,}|\b1//[0-9A-Za-z_-]{30,}",  # AWS, Google
        r"[0-9]Q~[A-Za-z0-9_~.-]{31,34}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]+|:AA[A-Za-z0-9_-]{30,}",  # Azure, SendGrid, Telegram
        r"\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b|\bdapi[0-9a-f]{32}|AGE-SECRET-KEY-[A-Z0-9]+",  # Twilio, Mailgun, Databricks, age
        r"://(?P<login>[^\s/@:\"'<>]*:(?:[0-9]+|[0-9]*[^0-9/?#\s\"'<>][^\s\"'<>]*))@|://(?P<lone>[^\s/@:\"'<>]+)@",
        r"(?i:[?&](?:sig|x-(?:amz|goog)-(?:signature|security-token|credential))=)(?P<query>[^\s&\"'<>]+)",
    )
)
MAIL: Final = r"(?:@|%40)(?:[\p{L}\p{N}-][\p{L}\p{N}.-]*\.\p{L}{2,}|\[[0-9a-fA-F:.]+\])"
"""An e-mail address from its ``@`` on; :func:`mailbox` finds what stands before."""
_BOX: Final = re.compile(r"(?:[\w.%+-]+|\"[^\"\n@]+\")\Z")

_NAMES: Final = "|".join(
    (
        r"pass(?:word|wd|wort|phrase|code)|kennwort|contrase(?:n|ñ)a|mot[_ -]?de[_ -]?passe|senha|pwd|[a-z0-9][_-]pass",
        r"secret|credential|cvv|cvc",
        r"(?:api|access|account|private|signing|encryption|master|subscription|storage|ssh|auth|shared[_ -]?access)[_ -]?key(?:[_ -]?id)?",
        r"(?:access|auth|refresh|bearer|session|security|csrf|xsrf|api|bot|id)[_ -]?token|shared[_ -]?access[_ -]?signature|authorization",
    )
)
_ENDS: Final = r"(?:[_-]?(?:key|value|base|hash|confirm|confirmation|[0-9]{1,2})){0,2}s?"
NAME: Final = rf"(?i)(?:{_NAMES}){_ENDS}$"
"""Ends the name of a secret: what stands under it is one whatever it looks like."""
MAYBE_NAME: Final = r"(?i)(?:^|[^a-z])(?:token|pass|cookie|set-cookie)$|[a-z0-9]Token$"
"""Ends a name under which a secret may stand: a text of some length is one."""

_BETWEEN: Final = r"(?:\\*[\"'`]|%2[27]|\*\*)?\s*(?:=>|:=|={1,3}|:|%3[AaDd])\s*(?:\*\*\s*)?"
_QUOTED: Final = r"\"(?:[^\"\\\n]|\\[^\n])*\"?|\\+\"(?:[^\"\\\n]|\\+[^\"\\\n])*(?:\\*\")?|'(?:[^'\\\n]|\\[^\n])*'?|`[^`\n]*`?"
_WORD: Final = r"[^\s\"',;&}\]]+"
_SCHEME: Final = r"(?i:bearer|basic|token|apikey|digest|negotiate|aws4-hmac-sha256)\s+"
_BLOCK: Final = r"[|>][+-]?[ \t]*\n[ \t]+[^\n]+"
_VALUE: Final = rf"(?:{_SCHEME})?(?:{_BLOCK}|{_QUOTED}|{_WORD})"

# What is a secret because of the word before it, if its rule agrees.
LIKELY: Final = "|".join(
    (
        rf"(?i:authorization){_BETWEEN}(?P<header>{_SCHEME}[A-Za-z-]+=(?:{_QUOTED}|{_WORD})(?:\s*,\s*[A-Za-z-]+=(?:{_QUOTED}|{_WORD}))*)",
        rf"(?i:(?:{_NAMES}){_ENDS}){_BETWEEN}(?P<named>{_VALUE})",
        rf"(?i:<[a-z0-9:_-]{{0,20}}(?:{_NAMES}){_ENDS}(?:\s[^<>\n]{{0,40}})?>)(?P<element>[^<\n]+)",
        rf"(?i:--[a-z-]{{0,20}}(?:{_NAMES}|token)s?)(?:\s+|=)(?P<flag>{_QUOTED}|[^\s\"'-][^\s\"']*)",
        r"(?i:(?:\s-u|--user)\s+)[\"']?[0-9]*[^\s:\"'0-9][^\s:\"']*:(?P<user>[^\s\"']+)",
        r"(?i:\blogin\s+[^\s]+\s+password\s+)(?P<netrc>[^\s\"']+)",
        # Not from the beginning of the name: what is found first counts, and an access_token is one of _NAMES.
        rf"(?i:token|\bpass){_BETWEEN}(?P<token>{_QUOTED}|{_WORD})",
        rf"(?i:\b(?:name|key|id){_BETWEEN}[\"']?[a-z0-9_.-]{{0,40}}(?:{_NAMES}){_ENDS}[\"']?,?\s+[\"']?value){_BETWEEN}(?P<paired>{_VALUE})",
        r"(?i:bearer(?:\s|%20|\+)+)(?P<bearer>[A-Za-z0-9._~+/=-]{8,})|(?i:basic(?:\s|%20|\+)+)(?P<basic>[A-Za-z0-9+/=_-]{8,})",
        r"(?i:cookie)[\"']?\s*:\s*[\"']?(?P<cookie>[A-Za-z0-9!#$%&*+.^_|~-]+=[^\n\"']+)",
        r"(?i:pass(?:word|phrase|code|wort)\s+(?:is|was|ist|=)\s*:?\s+)[\"'`]?(?P<said>[^\s\"'`]{4,})",
    )
)

_NOTHING: Final = frozenset(
    (
        *("null", "none", "nil", "undefined", "true", "false", "string", "***", "..."),
        *("is", "are", "was", "must", "has", "should", "cannot", "not", "required", "optional", "missing", "invalid", "incorrect", "wrong"),
        *("expired", "unset", "empty", "failed", "refused", "the", "a", "an", "see", "please", "or", "and", "be", "to", "of", "for"),
        *("at", "in", "on", "by", "as", "if", "when", "with", "it", "this", "that", "your", "my", "enter", "use", "minimum", "maximum"),
        *("str", "bytes", "text", "int", "bool", "object", "secretstr", "include", "same-origin", "omit"),
    )
)
_ELSEWHERE: Final = re.compile(r"\$(?:[{(].*|[A-Z][A-Z0-9_]*|\d{1,2})|%\w|%\(\w+\)s", re.DOTALL)
"""A value that is read from elsewhere, quoted or not: ``${DB_PASSWORD}``, ``$1``, ``%s``."""
_LONGEST_CODE: Final = 100
"""Characters of a reference in code: this one pattern is not RE2's, and could take its time."""
_CODE: Final = re.compile(rf"[A-Za-z_][\w.]*[(\[][\w.,=]*\)?|[A-Za-z_][\w.]*\.\w*(?:{_NAMES}){_ENDS}|:[A-Za-z_]+|~/.*", re.IGNORECASE)
"""The same in code: ``varchar(255)``, ``os.environ[``, ``settings.api_key``, ``:hash``; and a path."""


def _is_value(text: str) -> bool:
    """Not a word of a program that stands for no value, one that is read from elsewhere, or the beginning of a structure."""
    bare = text.strip("\"'`\\")
    if bare.lower().rstrip(").:;?!]") in _NOTHING or not bare.strip("*.•xX") or (len(bare) < 4 and not any(map(str.isalnum, bare))):
        return False
    if _ELSEWHERE.fullmatch(bare) or (bare == text and _is_code(text)):
        return False
    return text[0] not in "{[(<" and not _is_path(text)


def _is_code(text: str) -> bool:
    return len(text) <= _LONGEST_CODE and _CODE.fullmatch(text) is not None


def _is_path(text: str) -> bool:
    """Where a secret may be kept, such as ``/run/secrets/db``; not one that happens to begin like this."""
    return text[0] == "/" and "/" in text[1:] and not any(len(part) > _LONGEST_NAME and _is_random(part) for part in text.split("/"))


def _is_random(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.islower, text)) and any(map(str.isupper, text))


def _mixed(text: str) -> bool:
    return any(c.isdigit() or c in "=+/" for c in text) or (not text[1:].islower() and not text.isupper())


def _is_token(text: str) -> bool:
    bare = text.strip("\"'`\\")
    known = re.fullmatch(r"[A-Za-z0-9._~+/=:-]{6,}", bare) is not None and any(map(str.isalpha, bare)) and not _is_code(text)
    return known and (any(map(str.isdigit, bare)) or len(bare) >= (8 if bare != text else 16))


def _is_basic(text: str) -> bool:
    """User and password in base64, or what nobody would write behind the word."""
    with suppress(binascii.Error):
        if b":" in base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_"):
            return True
    return text.endswith("=") or (len(text) >= _LONGEST_NAME and _is_random(text))


def _is_words(text: str) -> bool:
    """As in ``sk-toggleable__control`` and ``sk_model_selection``, names of a library."""
    return ("-" in text or "_" in text) and not any(c.isdigit() or c.isupper() for c in text)


RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    "jwt": lambda text: len(text) >= 20,
    "plain": lambda text: len(text) >= 20,
    "dashed": lambda text: len(text) >= 20 and any(c.isdigit() or c.isupper() for c in text[6:]),
    "generic": lambda text: (len(text) >= 15 and not _is_words(text[3:])) or (text[:8] in _STRIPE and len(text) >= 12),
    "slack": lambda text: len(text) >= 15,
    "hook": lambda text: len(text) >= 16,
    "discord": lambda text: len(text) >= 24,
    "lone": lambda text: len(text) >= 16,
    "named": _is_value,
    "paired": _is_value,
    "element": _is_value,
    "flag": _is_value,
    "token": _is_token,
    "bearer": lambda text: _mixed(text) or len(text) >= 16,
    "basic": _is_basic,
    "said": lambda text: not text.strip(".,;:!?\"'").isalpha(),
}
"""By the group that has matched: whether it is a secret. Those without a rule are."""

_MORE: Final = re.compile(r"[,;&}\]]+(?![\w.-]{1,40}\s*[=:])[^\s\"',;&}\]]+")


def mailbox(text: str, end: int) -> int:
    """Where the e-mail address begins whose ``@`` is at ``end``; ``end`` if nothing stands before it."""
    found = _BOX.search(text, max(end - _LONGEST_BOX, 0), end)
    return found.start() if found and found[0] != "git" else end  # git@host:path is no mailbox


def rest_of_value(text: str, end: int) -> int:
    """Where an unquoted value ends that has been read up to ``end``, if a comma or the like in it is a part of it."""
    while more := _MORE.match(text, end):
        end = more.end()
    return end
