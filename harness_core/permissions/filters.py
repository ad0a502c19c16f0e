"""Filters of jq and yq: programs in which every word must be known to read nothing but what they are given.

Two programs go by the name of yq: mikefarah's has a language of its own, kislyuk's hands its filter to jq. What is let
through here is harmless in both.
"""

from __future__ import annotations

import re
from typing import Final

from harness_core.permissions.flags import Given, Refused
from harness_core.permissions.paths import secret
from harness_core.permissions.text import listed

# jq 1.8. Not: env, input_filename, debug, stderr, halt_error, modulemeta, get_search_list, import, include, def.
_JQ: Final = listed(
    "if then elif else end as reduce foreach try catch label break and or not true false null "
    "abs add all any arrays ascii ascii_downcase ascii_upcase booleans bsearch capture ceil combinations contains del "
    "delpaths empty endswith error exp exp10 exp2 explode fabs finites first flatten floor from_entries fromdate "
    "fromdateiso8601 fromjson fromstream getpath gmtime group_by gsub halt has have_decnum have_literal_numbers "
    "implode in index indices infinite input input_line_number inputs inside isempty isfinite isinfinite isnan "
    "isnormal isvalid iterables join keys keys_unsorted last leaf_paths length limit localtime log log10 log2 ltrimstr "
    "ltrim map map_values match max max_by min min_by mktime nan normals now nth nulls numbers objects path paths pick "
    "pow range recurse recurse_down reverse rindex round rtrimstr rtrim scalars scan select setpath significand skip "
    "sort sort_by split splits sqrt startswith strflocaltime strftime strings strptime sub test to_entries toarray "
    "todate todateiso8601 tojson tonumber tostream tostring transpose trim trimstr trunc truncate_stream type unique "
    "unique_by until utf8bytelength values walk while with_entries IN INDEX"
)
# mikefarah/yq 4. Not: load and its kin, env, strenv, envsubst, eval, system.
_YQ: Final = _JQ | listed(
    "ref line column line_comment head_comment foot_comment comments style tag anchor alias explode parent parents key "
    "root kind is_key filename file_index fileIndex fi document_index di collect with filter omit ireduce sort_keys "
    "sortKeys to_yaml to_json to_xml to_csv to_tsv to_props from_yaml from_json from_xml from_props from_csv from_tsv "
    "to_number to_string upcase downcase any_c all_c array_to_map pivot shuffle from_unix to_unix tz with_dtf "
    "format_datetime toEntries fromEntries withEntries splitDoc split_doc slice"
)
_FORMATS: Final = listed(
    "@text @base32 @base32d @base64 @base64d @json @jsond @html @uri @urid @csv @csvd @tsv @tsvd @sh @yaml @yamld @xml "
    "@xmld @props"
)
_TOKEN: Final = re.compile(
    r"""
    (?P<blank>[ \t\n]+) | (?P<field>(?<!\.)\.[A-Za-z_][A-Za-z0-9_]*) | (?P<variable>\$[A-Za-z][A-Za-z0-9_]*)
  | (?P<format>@[a-z0-9]+) | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])) | (?P<mark>[][.(){}|,:;=<>!?+*/%"-])
    """,
    re.X,
)
_TEXT: Final = re.compile(r'[^"\\]*(?:\\[^(][^"\\]*)*')  # of a string, up to its end or to code in it
# mikefarah's yq takes all into the name of a field that jq would end it at, but for some marks; and it knows no field
# in quotes with a blank. What both read alike: names, with dashes that are no minus of a word of jq's.
_YQ_FIELD: Final = re.compile(
    r"""
    (?<!\.)\.(?:[A-Za-z_]\w*(?:-\w+)*\??(?![^][ ;{}:,|.()=\n])|"[^\ "\\]+") | \.{1,3}(?![^][ ;{}:,|()=\n])
    """,
    re.X | re.A,
)
_YQ_READS: Final = re.compile(r"load|env|eval|system|input|debug|stderr|halt|import|include")
_KEY: Final = re.compile(r"[ \t\n]*(?:[,}]|:(?!:))")
_YQ_KEY: Final = re.compile(r"[ \t\n]*:")
_PAIRS: Final = {")": "(", "]": "[", "}": "{", "end": "if"}
_FILE: Final = re.compile(r"(?!env\b)[\w./-]+\.(?:ya?ml|json|toml|xml|csv|tsv|props)")
_VERBS: Final = listed("e eval ea eval-all")


def jq(what: Given) -> None:
    """A filter that reads neither the environment nor other files."""
    if not what.operands:
        raise Refused("jq has no filter")
    _Filter(what.operands[0].text, _JQ).read()


def yq(what: Given) -> None:
    """As jq; the filter may stand behind a verb, or be left out before a file."""
    operands = [operand.text for operand in what.operands]
    if operands and operands[0] in _VERBS:
        del operands[0]
    if not operands or any("(" in operand for operand in operands[1:]):
        raise Refused("yq has no filter, or more than one")
    first = operands[0]
    if (len(operands) == 1 or first.startswith(".env")) and secret(first):
        raise Refused(f"{first} is read if there is such a file, and may hold secrets")
    if not (len(operands) == 1 and _FILE.fullmatch(first)):
        _Filter(first, _YQ, both=True).read()


class _Filter:
    """The tokens of a filter, one after the other. both: either yq may run it."""

    def __init__(self, text: str, words: frozenset[str], *, both: bool = False) -> None:
        self.text, self.words, self.both, self.at = text, words, both, 0
        self.open: list[str] = []  # brackets, strings with code in them, and "if" until its "end"
        self.before = ""

    def read(self) -> None:
        """Raises Refused for a token that is not known."""
        while self.at < len(self.text):
            if self.both and self.text[self.at] == ".":
                self._field()
                continue
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                raise Refused(f"`{self.text[self.at]}` in this filter is not known to be harmless")
            self.at = token.end()
            self._token(str(token.lastgroup), token[0])
        if self.open:
            raise Refused("this filter has no end")

    def _token(self, kind: str, text: str) -> None:
        if kind == "blank":
            return
        if (kind == "word" and text not in self.words and not self._key(text)) or (
            kind == "format" and text not in _FORMATS
        ):
            raise Refused(f"`{text}` in this filter may read the environment or other files")
        if text == "$ENV":
            raise Refused("this filter reads the environment")
        if text == '"':
            self._string()
        elif text in _PAIRS.values() or (text == "if" and not self._key(text)):
            self.open.append(text)
        elif text in _PAIRS and not self._key(text):
            self._closed(text)
        self.before = text

    def _key(self, text: str) -> bool:
        """Whether a word is the key of an object: nothing that is run."""
        if self.open[-1:] != ["{"] or self.before not in ("{", ","):
            return False
        if self.both:
            return bool(_YQ_KEY.match(self.text, self.at)) and not _YQ_READS.search(text)
        return bool(_KEY.match(self.text, self.at))

    def _closed(self, bracket: str) -> None:
        opened = self.open.pop() if self.open else ""
        if opened == '"' and bracket == ")":
            self._string()
        elif opened != _PAIRS[bracket]:
            raise Refused("the brackets of this filter do not match")

    def _string(self) -> None:
        """The rest of a string, up to its end or to code in it."""
        if self.both and '"' in self.open:
            raise Refused("a string inside a string is read in another way by some")
        if text := _TEXT.match(self.text, self.at):
            self.at = text.end()
        if self.text.startswith("\\(", self.at):
            self.open.append('"')
            self.at += 2
        elif self.text.startswith('"', self.at):
            self.at += 1
        else:
            raise Refused("a string of this filter has no end")

    def _field(self) -> None:
        field = _YQ_FIELD.match(self.text, self.at)
        if field is None or _YQ_READS.search(field[0].partition("-")[2]):
            raise Refused("a field of this filter is read in another way by some")
        self.at = field.end()
        self.before = field[0]
