//! Tests of the code that `#[derive(Message)]` generates.

use corsair::{Addr, Message, ReplyHandle};
use std::sync::Arc;

#[derive(Message)]
enum Note {
    Empty,
    Number(u32),
    Pair {
        left: u32,
        right: i64,
    },
    #[message(kind = "Number")]
    Other(u32),
    Text {
        text: Arc<str>,
        #[message(skip)]
        _left_out: f32,
    },
    Float(f64),
    List(#[message(fingerprint = bits)] Vec<f64>),
    #[message(skip)]
    #[expect(dead_code, reason = "a skipped field is not read")]
    Opaque(Box<dyn Fn() + Send>),
    Raw(r#type),
}

#[expect(non_camel_case_types, reason = "a raw identifier")]
#[derive(Hash)]
struct r#type;

#[expect(
    clippy::ptr_arg,
    reason = "the attribute calls it with the field itself"
)]
fn bits(list: &Vec<f64>) -> u64 {
    list.iter().sum::<f64>().to_bits()
}

#[test]
fn kinds_are_the_variants_or_what_they_are_given() {
    assert_eq!(
        Note::KINDS,
        [
            "Empty", "Number", "Pair", "Text", "Float", "List", "Opaque", "Raw"
        ]
    );
    assert_eq!(Note::Number(1).kind(), Note::Other(1).kind());
    assert_eq!(Note::Raw(r#type).kind(), 7);
}

#[test]
fn variants_of_one_kind_have_different_fingerprints() {
    assert_ne!(Note::Number(1).fingerprint(), Note::Other(1).fingerprint());
}

#[test]
fn one_number_is_its_own_fingerprint() {
    #[derive(Message)]
    struct Address(Addr);

    assert_eq!(Note::Empty.fingerprint(), 0);
    assert_eq!(Note::Number(7).fingerprint(), 7);
    assert_eq!(Address(Addr::from_u32(9)).fingerprint(), 9);
    assert_eq!(Address::KINDS, ["Address"]);
}

#[test]
fn every_field_that_is_not_skipped_is_part_of_the_fingerprint() {
    let pair = |left, right| Note::Pair { left, right }.fingerprint();
    assert_ne!(pair(1, 2), pair(2, 1));
    assert_ne!(pair(1, 2), pair(1, 3));
    let text = |text: &str, _left_out| {
        let text = text.into();
        Note::Text { text, _left_out }.fingerprint()
    };
    assert_ne!(text("a", 0.0), text("b", 0.0));
    assert_eq!(text("a", 0.0), text("a", 1.0));
    assert_eq!(Note::Float(1.5).fingerprint(), 1.5_f64.to_bits());
    assert_eq!(Note::List(vec![1.0, 0.5]).fingerprint(), 1.5_f64.to_bits());
    assert_eq!(Note::Opaque(Box::new(|| ())).fingerprint(), 0);
}

#[test]
fn a_type_may_have_parameters_and_skip_what_has_no_hash() {
    struct NoHash;

    #[derive(Message)]
    enum Wrapped<T, const N: usize> {
        Many([T; N]),
        To(ReplyHandle),
    }
    #[derive(Message)]
    #[message(skip, kind = "Closure")]
    struct Closure(NoHash);

    assert_eq!(Wrapped::<u8, 2>::KINDS, ["Many", "To"]);
    assert_ne!(
        Wrapped::Many([1_u8, 2]).fingerprint(),
        Wrapped::Many([2_u8, 1]).fingerprint()
    );
    assert_eq!(Closure(NoHash).fingerprint(), 0);
    assert_eq!(Closure::KINDS, ["Closure"]);
    let _ = |reply_handle| Wrapped::<u8, 2>::To(reply_handle);
}
