from tests.lang.trees import expression, parsed, problems

from edgewise.lang.syntax.query import Annotation


def test_annotations_of_the_app_are_told_from_those_of_its_parts():
    tree = parsed("@app:name('x') @sink(type='log') define stream S (v int)")
    assert tree.annotations == (Annotation("app:name", (("", "x"),)),)
    assert tree.definitions[0].annotations == (Annotation("sink", (("type", "log"),)),)


def test_keywords_are_legal_as_names_and_names_keep_their_case():
    tree = parsed("define stream Select (From int, `group by` int); from Select insert into Into")
    assert [c.name for c in tree.definitions[0].columns] == ["From", "group by"]


def test_each_broken_part_is_told():
    text = "define stream S (v); define stream T (v int) from S; from S select;"
    assert problems(text) == [
        "expected a type: string, int, long, float, double, bool, object, found ')'",
        "expected ';' or the end of the app, found 'from'",
        "expected an expression, found ';'",
    ]


def test_definitions_come_first():
    text = "define stream S (v int); from S insert into T; define stream U (v int)"
    assert problems(text) == ["a definition stands after a query"]


def test_an_expression_alone():
    assert expression("a").name == "a"
