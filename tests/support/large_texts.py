"""Large apps of every shape: one long thing, or very many short ones."""

MEGABYTE = 1_000_000
DEFINE = "define stream A (k string, v int, p double); define stream B (k string, v int);"


def listed(head, piece, separator, tail):
    """`head`, then so many pieces, then `tail`; a piece may name its number."""
    return lambda n: head + separator.join(piece.replace("{n}", str(i)) for i in range(n)) + tail


def repeated(piece):
    return listed(DEFINE, piece, " ", "")


SHAPES = {
    "select list": listed(DEFINE + "from A select ", "v as a{n}", ", ", " insert into X;"),
    "wide stream": listed("define stream W (", "a{n} int", ", ", "); from W insert into X;"),
    "unknown names": listed(DEFINE + "from A select ", "b{n}", ", ", " insert into X;"),
    "pattern": listed(DEFINE + "from ", "e{n}=A", " -> ", " select e0.v as v insert into X;"),
    "sequence": listed(DEFINE + "from ", "e{n}=A[v > 1]", ", ", " select e0.v as v return;"),
    "filters": listed(DEFINE + "from A", "[v > {n}]", "", " insert into X;"),
    "alternatives": listed(DEFINE + "from A[", "v == {n}", " or ", "] insert into X;"),
    "sums": listed(DEFINE + "from A[", "(v + {n})", " + ", " > 1] insert into X;"),
    "negations": listed(DEFINE + "from A[", "not", " ", " (v > 1)] insert into X;"),
    "negated comparisons": listed(DEFINE + "from A[", "not (v == {n})", " == ", "] return;"),
    "arguments": listed(DEFINE + "from A select str:concat(", "k", ", ", ") as x return;"),
    "calls": listed(DEFINE + "from A select ", "math:abs(", "", "v"),
    "groups": listed(DEFINE + "from A select k group by ", "k", ", ", " insert into X;"),
    "ranges": listed(DEFINE + "partition with (", "v > {n} as 'x'", " or ", " of A) begin "),
    "keys": listed(DEFINE + "partition with (", "k of A", ", ", ") begin from A return; end;"),
    "columns set": listed(
        DEFINE + "define table T (v int); from A update T set ", "T.v = {n}", ", ", " on T.v == v;"
    ),
    "annotations": listed("", "@a(b='{n}')", " ", DEFINE),
    "keys of one annotation": listed("@a(", "b{n}='c'", ", ", ")" + DEFINE),
    "nested annotations": listed("", "@a(", "", DEFINE),
    "streams": repeated("define stream S{n} (a int);"),
    "one stream again and again": repeated("define stream S (a int);"),
    "tables": repeated("@PrimaryKey('a') define table S{n} (a int);"),
    "windows": repeated("define window S{n} (a int) length(3);"),
    "functions": repeated("define function f{n}[python] return int { return {n} };"),
    "triggers": repeated("define trigger S{n} at every 5 sec;"),
    "aggregations": repeated(
        "define aggregation G{n} from A select sum(v) as t aggregate every sec;"
    ),
    "queries": repeated("from A[v > {n}]#window.time(1 min) select k, v insert into O{n};"),
    "queries in a row": repeated("from O{n} insert into P{n};"),
    "queries of one name": repeated("@info(name='q') from A insert into X;"),
    "patterns": repeated("from every e1=A -> e2=B[k == e1.k]<2:5> within 5 min return;"),
    "joins": repeated("from A#window.length(2) join B on A.k == B.k select A.k insert into F;"),
    "partitions": repeated(
        "partition with (k of A) begin from A insert into #I; from #I insert into O; end;"
    ),
    "queries in queries": repeated("from (from A select v return)[v > 1] insert into K;"),
    "nested queries": listed(DEFINE + "from ", "(from ", "", "A"),
    "parentheses": listed(DEFINE + "from A[", "(", "", ""),
    "opening brackets": listed(DEFINE + "from A", "[", "", ""),
    "every": listed(DEFINE + "from ", "every (", "", ""),
    "semicolons": repeated(";"),
    "one word": listed(DEFINE, "a", "", ""),
    "one number": listed(DEFINE + "from A[v > ", "9", "", "] return;"),
    "zeros": listed(DEFINE + "from A[v > ", "0", "", "] return;"),
    "one string": listed(DEFINE + "from A[k == '", "x", "", "'] return;"),
    "open strings": listed(DEFINE, "'", "\n", ""),
    "quotes": listed(DEFINE, '"', "", ""),
    "long strings": listed(DEFINE, '"""', "", ""),
    "backticks": listed(DEFINE, "`", "", ""),
    "braces": listed(DEFINE, "{", "", ""),
    "comments": listed(DEFINE, "/* {n} */", "", ""),
    "open comments": listed(DEFINE, "/*", "", ""),
    "lines of comments": listed(DEFINE, "-- {n}", "\n", ""),
    "blank lines": listed(DEFINE, "", "\n", ""),
    "variables": listed(DEFINE, "${X}", " ", ""),
}  # fmt: skip


def megabyte(shape, size=MEGABYTE):
    """About so many characters of a shape."""
    make = SHAPES[shape]
    each = max(1.0, (len(make(1_000)) - len(make(0))) / 1_000)
    return make(int(size / each))
