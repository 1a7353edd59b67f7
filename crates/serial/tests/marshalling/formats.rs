//! Tests that every format reads back the values that it has written.

use crate::each::{self, Check};
use corsair_serial::{Format, Postcard, Serial, Strategy};
use corsair_testing::people::{self, Person};

#[test]
fn postcard_documents_are_those_of_postcard_and_read_back() {
    struct ReadBack(Vec<Person>);
    impl Check for ReadBack {
        fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
            let batch = strategy.marshal(&Postcard, &self.0).unwrap();
            for (document, person) in batch.iter().zip(&self.0) {
                assert_eq!(document, postcard::to_allocvec(person).unwrap());
                assert_eq!(&postcard::from_bytes::<Person>(document).unwrap(), person);
            }
        }
    }
    each::strategy(3, &mut ReadBack(people::generate(500, 3)));
}

#[test]
fn postcard_is_smaller_than_json() {
    let people = people::generate(50, 3);
    let binary = Serial.marshal(&Postcard, &people).unwrap().size();
    let text = Serial
        .marshal(&corsair_serial::Json, &people)
        .unwrap()
        .size();
    assert!(binary < text * 3 / 4, "{binary} and {text} bytes");
}

#[test]
fn a_value_that_a_format_cannot_express_names_the_format() {
    // A sequence of unknown length: postcard writes the length first.
    struct Endless;
    impl serde::Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serde::ser::SerializeSeq::end(serializer.serialize_seq(None)?)
        }
    }
    let error = Serial.marshal(&Postcard, &[Endless]).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("value 0 cannot be written as postcard: "),
        "{message}"
    );
    assert_eq!(Postcard::NAME, "postcard");
}

#[cfg(feature = "sonic")]
mod sonic {
    use super::*;
    use corsair_serial::{Json, Sonic, Strategy};
    use proptest::prelude::*;

    // Guarantee: serial-1.
    #[test]
    fn people_come_out_as_from_serde_json() {
        struct Same(Vec<Person>);
        impl Check for Same {
            fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
                let sonic = strategy.marshal(&Sonic, &self.0).unwrap();
                let json = Serial.marshal(&Json, &self.0).unwrap();
                assert!(sonic.iter().eq(json.iter()), "{}", strategy.name());
            }
        }
        each::strategy(3, &mut Same(people::generate(500, 3)));
    }

    proptest! {
        #[test]
        fn any_text_is_one_line_that_reads_back(texts in prop::collection::vec(any::<String>(), 0..50)) {
            let batch = Serial.marshal(&Sonic, &texts).unwrap();
            for (document, text) in batch.iter().zip(&texts) {
                prop_assert!(!document.contains(&b'\n'));
                prop_assert_eq!(&serde_json::from_slice::<String>(document).unwrap(), text);
            }
        }
    }
}
