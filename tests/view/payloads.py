"""Texts that would run a script, load something or leave their place, were they not escaped."""

from __future__ import annotations

from itertools import product

RUN = "window.hacked=1"
TAGS = [
    f"<script>{RUN}</script>",
    f"<ScRiPt >{RUN}</sCrIpT>",
    f"<img src=x onerror={RUN}>",
    f"<img/src=x/onerror={RUN}//",
    f"<svg/onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}>",
    f"<textarea autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src='javascript:parent.{RUN}'></iframe>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<a href='javascript:{RUN}' id=found>x</a>",
    f"<form action='javascript:{RUN}'><button id=found>x</button></form>",
    f"<math><a xlink:href='javascript:{RUN}'>x</a></math>",
    "<meta http-equiv=refresh content='0;url=http://localhost:9/'>",
    "<base href='http://localhost:9/'>",
    "<link rel=stylesheet href='http://localhost:9/a.css'>",
    "<style>@import 'http://localhost:9/a.css'; * { display: none }</style>",
    "<img src='http://localhost:9/a.png'>",
]
OUT_OF = ["{}", "\"'>{}", "</textarea></title></option></script></style>-->{}"]
"""Places that a text may try to leave: between tags, the value of an attribute, raw text."""
OTHERS = [
    f"' onmouseover='{RUN}' style='position:fixed;inset:0",
    f'" onfocus="{RUN}" autofocus tabindex=0 x="',
    f"{{{{ {RUN} }}}}{{% raw %}}{{{{ ''.__class__.__mro__ }}}}",
    f"${{{RUN}}}#{{{RUN}}}<%= 7*7 %>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"<scr\x00ipt>{RUN}</scr\x00ipt>",
    f"\u202e\u2066<script>{RUN}</script>\u2069",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    "../../../../etc/passwd",
    "run?run=../../x#a\r\nSet-Cookie: a=b",
    "%00/.%2e/%2e%2e/\\..\\",
    "'; DROP TABLE runs; --",
    "\" OR ''='",
    "\ufeff\u200b\u2028\u2029\x85",
]
PAYLOADS = [place.format(tag) for place, tag in product(OUT_OF, TAGS)] + OTHERS
