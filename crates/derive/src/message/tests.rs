//! Tests of the macro's error messages. Its output is tested where it is used, in `corsair`.

use super::expand;
use syn::{DeriveInput, parse_quote};

fn refusal(input: &DeriveInput) -> String {
    match expand(input) {
        Ok(tokens) => panic!("it was accepted: {tokens}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_union_is_refused() {
    let text = refusal(&parse_quote!(union Letter { a: u32, b: f32 }));
    assert!(text.contains("make the message an enum"), "{text}");
}

#[test]
fn a_borrowed_field_is_refused() {
    let text = refusal(&parse_quote!(
        struct Letter<'a> {
            text: &'a str,
        }
    ));
    assert!(text.contains("remove the lifetime"), "{text}");
}

#[test]
fn an_unknown_attribute_is_refused_and_the_known_ones_are_listed() {
    let text = refusal(&parse_quote!(
        enum Letter {
            #[message(rename = "B")]
            A,
        }
    ));
    assert_eq!(
        text,
        "unknown attribute of a variant; there are `skip`, `kind = \"Name\"`"
    );
    let text = refusal(&parse_quote!(
        struct Letter {
            #[message(kind = "B")]
            a: u32,
        }
    ));
    assert_eq!(
        text,
        "unknown attribute of a field; there are `skip`, `fingerprint = function`"
    );
}

#[test]
fn attributes_that_contradict_each_other_are_refused() {
    let text = refusal(&parse_quote!(
        struct Letter {
            #[message(skip, fingerprint = f)]
            a: u32,
        }
    ));
    assert!(text.contains("contradict"), "{text}");
    let text = refusal(&parse_quote!(
        enum Letter {
            #[message(kind = "A", kind = "B")]
            A,
        }
    ));
    assert!(text.contains("`kind` is given twice"), "{text}");
}
