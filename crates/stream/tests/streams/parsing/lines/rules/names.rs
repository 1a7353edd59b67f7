//! Measurements, keys, and values of tags.

use super::{only, tags, wrong};

#[test]
fn in_names_a_backslash_escapes_comma_equals_sign_and_space() {
    let line = only(r#"m\ 1\,x,tag\ a\,b\=c=va\ l\,u\=e field\ \,\=="x" 1"#);
    assert_eq!(line.measurement(), "m 1,x");
    assert_eq!(
        tags(line),
        [("tag a,b=c".to_owned(), "va l,u=e".to_owned())]
    );
    assert_eq!(line.fields().next().unwrap().0, "field ,=");
}

#[test]
fn a_backslash_before_anything_else_is_itself() {
    let line = only(r#"m\=\n\,a,\"k\a="v\t\\n w\"\\,=1"#);
    assert_eq!(line.measurement(), r"m\=\n,a");
    assert_eq!(
        tags(line),
        [(r#"\"k\a"#.to_owned(), r#""v\t\\n"#.to_owned())]
    );
    assert_eq!(line.fields().next().unwrap().0, r#"w\"\,"#);
}

#[test]
fn an_equals_sign_and_quotes_in_a_measurement_are_themselves() {
    assert_eq!(only(r#"a="b" v=1"#).measurement(), r#"a="b""#);
}

#[test]
fn the_measurement_is_not_optional() {
    assert_eq!(wrong(",a=b v=1"), ("missing_measurement", 1));
    assert_eq!(wrong("  ,a=b v=1"), ("missing_measurement", 3));
}

#[test]
fn tags_have_a_key_and_a_value() {
    assert_eq!(wrong("m, v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,=b v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,,a=b v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,a=b, v=1"), ("missing_tag_key", 7));
    assert_eq!(wrong("m,"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,\r\n"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,a v=1"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a,b=1 v=1"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a= v=1"), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a=,b=1 v=1"), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a="), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a=b=c v=1"), ("unescaped_equals", 6));
    assert_eq!(wrong("m,a== v=1"), ("unescaped_equals", 5));
}

#[test]
fn a_key_of_a_tag_is_there_once() {
    assert_eq!(wrong("m,a=1,a=2 v=1"), ("duplicate_tag", 7));
    assert_eq!(wrong("m,b=1,a=2,c=3,a=2 v=1"), ("duplicate_tag", 15));
    assert_eq!(wrong(r"m,b\ c=1,b=2,b\ c=2 v=1"), ("duplicate_tag", 14));
    assert_eq!(tags(only("m,ab=1,ba=2,a=3,b=4,aa=5,bb=6 v=1")).len(), 6);
}

#[test]
fn a_tag_that_is_there_twice_is_found_among_many() {
    let tag = |number: usize| format!(",tag{:04}=x", number * 7919 % 1000);
    let many: String = (0..1000).map(tag).collect();
    assert_eq!(only(&format!("m{many} v=1")).tags().count(), 1000);
    let twice = format!("m{many},tag0500=y,tag0400=y v=1");
    assert_eq!(wrong(&twice), ("duplicate_tag", 2 + many.len() + 1));
}

#[test]
fn fields_have_a_key_and_a_value() {
    assert_eq!(wrong("m =1"), ("missing_field_key", 3));
    assert_eq!(wrong("m ,a=1"), ("missing_field_key", 3));
    assert_eq!(wrong("m a=1,,b=1"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1, b=1"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1,"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1,\r\n"), ("missing_field_key", 7));
    assert_eq!(wrong("m a"), ("missing_field_value", 4));
    assert_eq!(wrong("m a,b=1"), ("missing_field_value", 4));
    assert_eq!(wrong("m a 1"), ("missing_field_value", 4));
    assert_eq!(wrong("m a="), ("missing_field_value", 5));
    assert_eq!(wrong("m a=\r\n"), ("missing_field_value", 5));
    assert_eq!(wrong("m a= 1"), ("missing_field_value", 5));
    assert_eq!(wrong("m a=,b=1"), ("missing_field_value", 5));
    assert_eq!(wrong("m a=1,b"), ("missing_field_value", 8));
}

#[test]
fn fields_are_not_optional() {
    assert_eq!(wrong("m"), ("missing_fields", 2));
    assert_eq!(wrong("m\r\n"), ("missing_fields", 3));
    assert_eq!(wrong("m "), ("missing_fields", 3));
    assert_eq!(wrong("m  \t\r\n"), ("missing_fields", 6));
    assert_eq!(wrong("m,a=b"), ("missing_fields", 6));
    assert_eq!(wrong("m,a=b "), ("missing_fields", 7));
    assert_eq!(wrong(r"m\ v=1"), ("missing_fields", 7));
}

#[test]
fn reserved_keys_are_refused() {
    assert_eq!(wrong("m,time=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m,_field=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m,_measurement=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m v=1,time=1"), ("reserved_key", 7));
    assert_eq!(
        only("time,times=1 _field=1,_measurement=2")
            .fields()
            .count(),
        2
    );
}
