//! Tests of error messages, and of the lines after an invalid one.

use super::{error, outline, wrong};
use corsair_stream::line;

#[test]
fn a_string_without_end_is_at_fault_where_it_begins() {
    assert_eq!(wrong(r#"m v="abc"#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v=""#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v="abc\""#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v="abc\"#), ("unterminated_string", 5));
}

#[test]
fn after_a_bad_line_the_next_one_is_read() {
    let text = b"a v=1\nb v=x\nc v=2\n,\n\nd\nf v=1";
    let expected = [
        Ok("a".to_owned()),
        Err(("bad_field_value", 2)),
        Ok("c".to_owned()),
        Err(("missing_measurement", 4)),
        Err(("missing_fields", 6)),
        Ok("f".to_owned()),
    ];
    assert_eq!(outline(text), expected);
}

#[test]
fn the_line_after_a_string_without_end_is_read_again() {
    let expected = [
        Err(("unterminated_string", 1)),
        Ok("b".to_owned()),
        Err(("missing_fields", 3)),
    ];
    assert_eq!(outline(b"a v=\"x\nb v=1\nc"), expected);
}

#[test]
fn a_newline_before_the_fault_belongs_to_the_bad_line_and_one_behind_it_ends_it() {
    // The string that begins in the first line ends in the third; the fault is right behind it.
    let swallowed = b"a v=\"x\nb v=1\nc v=\"y\"\nd v=1";
    assert_eq!(
        outline(swallowed),
        [Err(("text_after_string", 3)), Ok("d".to_owned())]
    );
    // The fault is before the string, so that its newline ends the line.
    let within = b"a u=x,v=\"1\n2\" 5\nd v=1";
    let expected = [
        Err(("bad_field_value", 1)),
        Err(("missing_field_value", 2)),
        Ok("d".to_owned()),
    ];
    assert_eq!(outline(within), expected);
}

#[test]
fn broken_utf_8_makes_its_own_line_bad_and_no_other() {
    let text = b"a v=1\nb\xff v=1\nc,t=\xc3\x28 v=1\nd v=\"\xe9\n\"\ne v=\"\xf0\x9f\x98\x80\"\nf v=1 1\xff";
    let expected = [
        Ok("a".to_owned()),
        Err(("invalid_utf8", 2)),
        Err(("invalid_utf8", 3)),
        Err(("invalid_utf8", 4)),
        Err(("missing_fields", 5)),
        Ok("e".to_owned()),
        Err(("invalid_utf8", 7)),
    ];
    assert_eq!(outline(text), expected);
    let error = error(b"caf\xc3\xa9,x=\xe9 v=1");
    assert_eq!((error.code(), error.column), ("invalid_utf8", 8));
    assert_eq!(&*error.excerpt, "\\xe9 v=1");
    assert_eq!(
        outline(b"# caf\xe9\na v=1\n \xff\n"),
        [Ok("a".to_owned()), Err(("invalid_utf8", 3))]
    );
    assert_eq!(
        outline(b"a v=1\n\xff"),
        [Ok("a".to_owned()), Err(("invalid_utf8", 2))]
    );
    assert_eq!(outline(b"a v=1 \xff"), [Err(("invalid_utf8", 1))]);
    assert_eq!(outline(b"a v=x,\xff"), [Err(("invalid_utf8", 1))]);
}

#[test]
fn an_error_says_where_in_characters_what_and_what_to_write_instead() {
    let error = error("# café\n\nhöhe,ort=München wert=1,zahl=1x7 12".as_bytes());
    assert_eq!((error.line, error.column), (3, 30));
    assert_eq!(&*error.excerpt, "1x7 12");
    assert_eq!(
        error.to_string(),
        "line 3, column 30: not the value of a field: write a number such as 1.5, an integer such as \
         15i or 15u, true, false, or a string in double quotes; at: 1x7 12"
    );
}

#[test]
fn an_error_behind_a_newline_in_a_string_is_in_the_line_where_it_stands() {
    let error = error(b"m a=\"1\n2\n3\",b=x");
    assert_eq!((error.line, error.column), (3, 6));
}

#[test]
fn an_error_at_the_end_of_a_line_says_so() {
    let error = error(b"m");
    assert!(
        error.to_string().ends_with("; at the end of the line"),
        "{error}"
    );
}

/// These are done at once, or not within anybody's patience.
#[test]
fn no_text_takes_more_than_linear_time() {
    const LARGE: usize = 1_920_000;
    let count = |text: String| {
        let (good, bad): (Vec<_>, Vec<_>) = line::parse(text.as_bytes()).partition(Result::is_ok);
        (good.len(), bad.len())
    };
    let many = |piece: &str| piece.repeat(LARGE / piece.len());
    assert_eq!(count(many("m v=x\n")), (0, LARGE / 6));
    assert_eq!(count(many("m v=\"\n")).1, 0);
    assert_eq!(count(many("m v=\"x\n,\"\n")), (LARGE / 10, 0));
    assert_eq!(count(many("m v=\"\\\"\n")), (0, LARGE / 16));
    assert_eq!(count(many("m v=\"a\" \"\n")), (0, LARGE / 10));
    assert_eq!(count(many("m v=\"\n\"x\n")), (0, LARGE / 9));
    assert_eq!(count(format!("m v=\"{}", many("x\nm v=1\n"))).1, LARGE / 8);
    assert_eq!(count(format!("m v={}", many("1"))), (0, 1));
    assert_eq!(count(format!("m v={}i", many("0"))), (1, 0));
    assert_eq!(count(format!("m v=0.{}", many("0"))), (1, 0));
    assert_eq!(count(many("m")), (0, 1));
    assert_eq!(count(many(" ")), (0, 0));
    assert_eq!(count(many("\\")), (0, 1));
    assert_eq!(count(many("#\n")), (0, 0));
    assert_eq!(count(format!("m{} v=1", many(",a=b"))), (0, 1));
    let number = |place: usize| place * 7919 % 100_000;
    let tags: String = (0..100_000)
        .map(|place| format!(",t{:06}=b", number(place)))
        .collect();
    assert_eq!(count(format!("m{tags} v=1")), (1, 0));
    assert_eq!(count(format!("m v=1{}", tags.replace('b', "1"))), (1, 0));
    let broken = [
        b"m v=\xff\n".repeat(LARGE / 7),
        b"m v=\"\xff\n".repeat(LARGE / 8),
    ];
    assert_eq!(
        line::parse(&broken[0]).filter(Result::is_err).count(),
        LARGE / 7
    );
    assert_eq!(
        line::parse(&broken[1]).filter(Result::is_err).count(),
        LARGE / 8
    );
}
