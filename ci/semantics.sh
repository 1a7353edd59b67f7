#!/usr/bin/env bash
# Every test that SEMANTICS.md names must exist, and its guarantees be numbered.
#
#   ci/semantics.sh
#
# A test is named `conformance/tests/wheel.rs::entries_leave_in_order`: a file below crates/, and in it a
# function under `#[test]` or `#[tokio::test]`, or a line of a list `on_every_…!` that makes such functions.
set -euo pipefail
cd "$(dirname "$0")/.."

names=$(grep -oE '`[a-z_]+/(tests|src)/[a-z0-9_/]+\.rs::[a-z0-9_]+`' SEMANTICS.md | tr -d '`' | sort -u)
if [ -z "$names" ]; then
    echo "SEMANTICS.md names no test; expected names like \`conformance/tests/conformance.rs::a_question_is_answered\`" >&2
    exit 1
fi

# Whether the file has a function of this name at most three lines below `#[test]`, or lists it.
has_test() {
    awk -v name="$2" '
        /#\[(tokio::)?test[](]/ { test = NR }
        $0 ~ "fn " name "\\(" && test && NR - test <= 3 { found = 1 }
        /^on_every_[a-z_]+! \{/   { list = 1; next }
        list && /^}/             { list = 0 }
        list && $1 == name       { found = 1 }
        END { exit !found }
    ' "$1"
}

missing=0
for name in $names; do
    file="crates/${name%%::*}"
    if [ ! -f "$file" ] || ! has_test "$file" "${name##*::}"; then
        echo "SEMANTICS.md names $name, and there is no such test; name the one that holds the guarantee now" >&2
        missing=1
    fi
done
# A number is a guarantee's name: each stands once, in order.
if ! grep -oE '^[0-9]+\. \*\*' SEMANTICS.md | grep -oE '[0-9]+' | awk '$1 != NR { exit 1 }'; then
    echo "the guarantees of SEMANTICS.md are not numbered 1, 2, 3 and so on; number them anew" >&2
    missing=1
fi
[ "$missing" -eq 0 ] && echo "$(wc -l <<<"$names") tests named in SEMANTICS.md, all there"
exit "$missing"
