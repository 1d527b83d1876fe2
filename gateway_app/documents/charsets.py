"""The character sets of pages: those that browsers know. Only the worker runs this.

Python has codecs that are none, and of which some take time that grows with the square of the data.
"""

import codecs
import re

# https://encoding.spec.whatwg.org/#names-and-labels: each of Python's codecs, with its labels.
# As there, some labels mean a larger set: latin1 is windows-1252, gb2312 is gb18030.
_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "utf-16-le": "utf-16 utf-16le unicode csunicode iso-10646-ucs-2 ucs-2 unicodefeff",
    "utf-16-be": "utf-16be unicodefffe",
    "cp866": "ibm866 cp866 866 csibm866",
    "iso8859-2": "iso-8859-2 iso8859-2 iso_8859-2 latin2 l2 csisolatin2 iso-ir-101",
    "iso8859-3": "iso-8859-3 iso8859-3 iso_8859-3 latin3 l3 csisolatin3 iso-ir-109",
    "iso8859-4": "iso-8859-4 iso8859-4 iso_8859-4 latin4 l4 csisolatin4 iso-ir-110",
    "iso8859-5": "iso-8859-5 iso8859-5 iso_8859-5 cyrillic csisolatincyrillic iso-ir-144",
    "iso8859-6": "iso-8859-6 iso8859-6 iso_8859-6 arabic asmo-708 iso-8859-6-e iso-8859-6-i",
    "iso8859-7": "iso-8859-7 iso8859-7 iso_8859-7 greek greek8 ecma-118 sun_eu_greek",
    "iso8859-8": "iso-8859-8 iso8859-8 iso_8859-8 iso-8859-8-e iso-8859-8-i hebrew visual logical",
    "iso8859-10": "iso-8859-10 iso8859-10 latin6 l6 csisolatin6 iso-ir-157",
    "iso8859-13": "iso-8859-13 iso8859-13",
    "iso8859-14": "iso-8859-14 iso8859-14",
    "iso8859-15": "iso-8859-15 iso8859-15 iso_8859-15 latin9 l9 csisolatin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8-r koi8_r koi8 koi cskoi8r",
    "koi8-u": "koi8-u koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman csmacintosh",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "windows-874 iso-8859-11 iso8859-11 tis-620 dos-874",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1252": (
        "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso_8859-1 iso88591 latin1 l1 "
        "csisolatin1 iso-ir-100 ibm819 cp819 ascii us-ascii ansi_x3.4-1968"
    ),
    "cp1253": "windows-1253 cp1253 x-cp1253",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso_8859-9 latin5 l5 iso-ir-148",
    "cp1255": "windows-1255 cp1255 x-cp1255",
    "cp1256": "windows-1256 cp1256 x-cp1256",
    "cp1257": "windows-1257 cp1257 x-cp1257",
    "cp1258": "windows-1258 cp1258 x-cp1258",
    "gb18030": "gb18030 gbk x-gbk gb2312 gb_2312 gb_2312-80 csgb2312 chinese iso-ir-58",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "euc-jp x-euc-jp cseucpkdfmtjapanese",
    "iso2022-jp": "iso-2022-jp csiso2022jp",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis",
    "cp949": "euc-kr cseuckr korean ks_c_5601-1987 ksc5601 ksc_5601 windows-949 iso-ir-149",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_HEAD_BYTES = 4096
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decoded(data: bytes, content_type: str, *, is_html: bool) -> str:
    """Text in an unknown character set is read as UTF-8."""
    return data.decode(_codec_of(data, content_type, is_html=is_html), errors="replace")


def _codec_of(data: bytes, content_type: str, *, is_html: bool) -> str:
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec
    named = _named(content_type)
    if named is not None or not is_html:
        return named or "utf-8"
    in_page = _named(data[:_HEAD_BYTES].decode("latin-1")) or "utf-8"
    # A page that could be read as ASCII up to here is not UTF-16.
    return "utf-8" if in_page.startswith("utf-16") else in_page


def _named(text: str) -> str | None:
    found = _CHARSET.search(text)
    if found is None:
        return None
    return _CODECS.get(found[1].lower())
