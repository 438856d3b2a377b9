from edgewise.lang.tokens import KEYWORDS, UNIT_ORDER, UNIT_WORDS, UNITS_MS


def test_units_run_from_large_to_small():
    sizes = [UNITS_MS[unit] for unit in UNIT_ORDER]
    assert sizes == sorted(sizes, reverse=True)
    assert set(UNIT_WORDS.values()) == set(UNIT_ORDER)


def test_keywords_are_lower_case():
    assert all(word == word.lower() for word in KEYWORDS)
