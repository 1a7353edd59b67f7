use super::*;
use crate::Value;
use crate::block::Builder;
use crate::line::Precision;
use proptest::prelude::*;

fn origin(measurement: &str) -> Arc<Origin> {
    Arc::new(Origin {
        database: "d".into(),
        policy: "p".into(),
        measurement: measurement.into(),
    })
}

fn blocks(lines: &str, precision: Precision) -> Vec<Block> {
    let mut builder = Builder::new();
    let wanted = |measurement: &str| Some(origin(measurement));
    let bad = |error| panic!("{error}");
    builder.feed(lines.as_bytes(), precision, 0, wanted, bad);
    builder.finish()
}

fn encoded(block: &Block) -> Vec<u8> {
    let mut bytes = vec![7];
    block.encode(&mut bytes);
    bytes.split_off(1)
}

fn decoded(mut bytes: &[u8]) -> Option<Block> {
    let block = Block::decode(&mut bytes, |measurement| origin(&measurement))?;
    bytes.is_empty().then_some(block)
}

/// The content of a block. Unlike blocks, it can be compared.
fn content(block: &Block) -> String {
    format!("{block:?}")
}

#[test]
fn every_kind_of_column_is_read_back() {
    let lines = "m,a=x,b=y f=1.5,i=-5i,u=7u,t=t,s=\"one\",x=1 3\n\
                 m,a=z f=-0,i=9223372036854775807i,u=18446744073709551615u,t=f,s=\"one\",x=2i 5\n\
                 m,a=x i=-9223372036854775808i,s=\"\",x=\"text\" 4\n\
                 m f=1e300,t=t,s=\"two\" -7\n";
    let blocks = blocks(lines, Precision::Milliseconds);
    assert!(
        blocks[0]
            .fields()
            .any(|column| matches!(*column.data, Data::Mixed(_)))
    );
    for block in &blocks {
        assert_eq!(content(&decoded(&encoded(block)).unwrap()), content(block));
    }
    let text = |block: &Block, row| block.column("s").unwrap().data.get(row);
    assert_eq!(text(&blocks[0], 3), Some(Value::Text("two".into())));
}

#[test]
fn a_line_of_regular_series_takes_eight_bytes() {
    let mut lines = String::new();
    for at in 0..5000 {
        let time = 1_700_000_000 + at;
        lines += &format!(
            "m0,host=h{},writer=w0 value={}.5 {time}\n",
            at % 100,
            at * 7 % 1000
        );
    }
    let blocks = blocks(&lines, Precision::Seconds);
    let bytes: usize = blocks.iter().map(|block| encoded(block).len()).sum();
    // Two bytes for the time, one for the host, none for the writer, and four for the value.
    assert!(bytes < 5000 * 8, "{bytes} bytes");
}

#[test]
fn integers_of_any_distribution_are_read_back() {
    let lists: [&[i64]; 8] = [
        &[],
        &[i64::MIN, i64::MAX, 0],
        &[5; 40],
        &[0, 60, 120, 180, 240],
        &[i64::MAX, i64::MAX - 12, i64::MAX - 24],
        // The last difference is not a multiple of the divisor of the sample.
        &[
            0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90, 96, 102, 103,
        ],
        &[
            0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90, 96, 102, 105,
        ],
        &[0, 1 << 40, 3 << 40, 1 << 41],
    ];
    for list in lists {
        for least_width in [0, 1] {
            let mut bytes = Vec::new();
            put_integers(list.iter().copied(), least_width, &mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(
                take_integers(list.len(), least_width, &mut rest).unwrap(),
                list
            );
            assert!(rest.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn integers_are_read_back(
        list in prop::collection::vec(any::<i64>(), 0..40),
        least in any::<i64>(), divisor in 1..1_000_000_i64,
    ) {
        let multiples = list.iter().map(|value| least.wrapping_add((value >> 24).wrapping_mul(divisor)));
        for list in [list.clone(), multiples.collect()] {
            let mut bytes = Vec::new();
            put_integers(list.iter().copied(), 0, &mut bytes);
            prop_assert_eq!(take_integers(list.len(), 0, &mut &bytes[..]), Some(list));
        }
    }

    #[test]
    fn blocks_are_read_back(
        rows in prop::collection::vec(
            (0..4_u8, any::<Option<i64>>(), any::<Option<bool>>(), 0..3_u8, any::<i32>()), 1..60,
        ),
    ) {
        let mut lines = String::new();
        for (tag, integer, boolean, text, time) in rows {
            let tags = ["", ",a=x", ",b=y", ",a=y,b=x"][tag as usize];
            let text = ["", ",s=\"é\"", ",s=\"one\""][text as usize];
            let integer = integer.map_or(String::new(), |value| format!(",i={value}i,u={}u", value.unsigned_abs()));
            let boolean = boolean.map_or(String::new(), |value| format!(",t={value}"));
            lines += &format!("m{tags} f={time}{integer}{boolean}{text} {time}\n");
        }
        for block in blocks(&lines, Precision::Seconds) {
            prop_assert_eq!(content(&decoded(&encoded(&block)).unwrap()), content(&block));
        }
    }

    #[test]
    fn damaged_bytes_do_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let lines = "m,a=x f=1,i=-5i,u=7u,t=t,s=\"one\" 3\nm f=2,s=\"one\",x=2i 5\nm x=\"text\" 4\n";
        let mut bytes = encoded(&blocks(lines, Precision::Seconds)[0]);
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert!(decoded(&bytes).is_none());
        } else {
            bytes[at] = byte;
            decoded(&bytes);
        }
    }
}
