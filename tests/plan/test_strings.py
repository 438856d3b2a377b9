import pytest

from edgewise.plan import strings


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (strings.char_at("abc", 1), "b"),
        (strings.char_at("abc", 9), None),
        (strings.coalesce(None, "x"), "x"),
        (strings.concat("a", None, 1, True), "anull1true"),
        (strings.contains("abc", "bc"), True),
        (strings.equals_ignore_case("aB", "Ab"), True),
        (strings.fill_template("{{1}} is {{2}}", "a", 2), "a is 2"),
        (strings.to_hex("MySQL"), "4d7953514c"),
        (strings.from_hex("4d7953514c"), "MySQL"),
        (strings.from_hex("zz"), None),
        (strings.length("abc"), 3),
        (strings.locate("abcabc", "c", 3), 5),
        (strings.lower("AB"), "ab"),
        (strings.upper("ab"), "AB"),
        (strings.regexp("WSO2 abcd", "WSO(.*h)?.*"), True),
        (strings.repeat("ab", 2), "abab"),
        (strings.replace_all("hello hi hello", "hello", "test"), "test hi test"),
        (strings.replace_all("ab", "(a)(b)", "$2$1"), "ba"),
        (strings.replace_first("aa", "a", "b"), "ba"),
        (strings.reverse("abc"), "cba"),
        (strings.split("a,b", ",", 1), "b"),
        (strings.split("a,b", ",", 5), None),
        (strings.strcmp("a", "b"), -1),
        (strings.substr("AbCDefghiJ KLMN", 4), "efghiJ KLMN"),
        (strings.substr("AbCDefghiJ KLMN", 2, 4), "CDef"),
        (strings.trim(" a "), "a"),
    ],
)
def test_strings(found, value):
    assert found == value
