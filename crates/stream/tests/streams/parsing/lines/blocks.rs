//! From lines to blocks, and back.

use corsair_stream::Value;
use corsair_stream::block::{Block, Builder, Cells, Data, LineCounts, Origin, Words};
use corsair_stream::line::{LineError, Precision};
use std::collections::HashMap;
use std::sync::Arc;

fn origin(measurement: &str) -> Arc<Origin> {
    Arc::new(Origin {
        database: "db".into(),
        policy: "rp".into(),
        measurement: measurement.into(),
    })
}

/// The blocks of a text of which everything is good and wanted.
#[track_caller]
fn blocks(text: &str) -> Vec<Block> {
    let mut builder = Builder::new();
    let bad = |error: LineError| panic!("{error}");
    let now = -1;
    let wanted = |name: &str| Some(origin(name));
    builder.feed(text.as_bytes(), Precision::Nanoseconds, now, wanted, bad);
    builder.finish()
}

#[track_caller]
fn block(text: &str) -> Block {
    let mut blocks = blocks(text);
    assert_eq!(blocks.len(), 1);
    blocks.remove(0)
}

fn names(block: &Block) -> Vec<&str> {
    block.columns.iter().map(|column| &*column.name).collect()
}

fn data<'a>(block: &'a Block, name: &str) -> &'a Data {
    &block.column(name).unwrap().data
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

#[test]
fn points_of_a_measurement_make_a_block_of_columns() {
    let block =
        block("m,t=a f=1.5,i=-2i,u=3u,b=t,s=\"x\" 10\nm,t=b f=2.5,i=4i,u=5u,b=f,s=\"y\" 20");
    assert_eq!(*block.origin, *origin("m"));
    assert_eq!(&*block.times, [10, 20]);
    assert_eq!(names(&block), ["t", "f", "i", "u", "b", "s"]);
    let Data::Tag(words) = data(&block, "t") else {
        panic!("no tag");
    };
    assert_eq!(words.codes, [0, 1]);
    assert_eq!(words.words, ["a".into(), "b".into()]);
    let whole = |values| Cells {
        values,
        present: None,
    };
    assert!(matches!(data(&block, "f"), Data::Float(cells) if *cells == whole(vec![1.5, 2.5])));
    let Data::Integer(integers) = data(&block, "i") else {
        panic!("no integers");
    };
    assert_eq!(
        (&integers.values[..], &integers.present),
        (&[-2, 4][..], &None)
    );
    let Data::Unsigned(unsigned) = data(&block, "u") else {
        panic!("no unsigned integers");
    };
    assert_eq!(
        (&unsigned.values[..], &unsigned.present),
        (&[3, 5][..], &None)
    );
    let Data::Boolean(booleans) = data(&block, "b") else {
        panic!("no booleans");
    };
    assert_eq!(
        (&booleans.values[..], &booleans.present),
        (&[true, false][..], &None)
    );
    let Data::Text(texts) = data(&block, "s") else {
        panic!("no strings");
    };
    assert_eq!(
        (&texts.values[..], &texts.present),
        (&["x".into(), "y".into()][..], &None)
    );
}

#[test]
fn blocks_are_in_order_of_first_lines_and_rows_in_order_of_lines() {
    let blocks = blocks("b v=1 5\na v=2 4\nb v=3 3\nc v=4 2\na v=5 1\nb v=6 0");
    let outline: Vec<_> = blocks
        .iter()
        .map(|block| (&*block.origin.measurement, block.times.to_vec()))
        .collect();
    assert_eq!(
        outline,
        [("b", vec![5, 3, 0]), ("a", vec![4, 1]), ("c", vec![2])]
    );
}

#[test]
fn what_a_line_does_not_have_is_missing() {
    let block = block("m,t=a f=1 1\nm g=2i 2\nm,t=b,u=c f=3,g=4i 3\nm h=\"x\" 4");
    assert_eq!(names(&block), ["t", "u", "f", "g", "h"]);
    let column = |name| {
        (0..4)
            .map(|row| data(&block, name).get(row))
            .collect::<Vec<_>>()
    };
    assert_eq!(column("t"), [Some(text("a")), None, Some(text("b")), None]);
    assert_eq!(column("u"), [None, None, Some(text("c")), None]);
    assert_eq!(
        column("f"),
        [Some(Value::Float(1.0)), None, Some(Value::Float(3.0)), None]
    );
    assert_eq!(
        column("g"),
        [None, Some(Value::Integer(2)), Some(Value::Integer(4)), None]
    );
    assert_eq!(column("h"), [None, None, None, Some(text("x"))]);
    let Data::Float(cells) = data(&block, "f") else {
        panic!("no floats");
    };
    assert_eq!(cells.values, [1.0, 0.0, 3.0, 0.0]);
    let Data::Tag(words) = data(&block, "t") else {
        panic!("no tag");
    };
    assert_eq!(words.codes, [0, Words::MISSING, 1, Words::MISSING]);
}

#[test]
fn keys_may_change_their_order_from_line_to_line() {
    let block =
        block("m,a=1,b=2,c=3 x=1,y=2,z=3\nm,c=6,a=4,b=5 z=6,x=4,y=5\nm,b=8,c=9,a=7 y=8,z=9,x=7");
    assert_eq!(names(&block), ["a", "b", "c", "x", "y", "z"]);
    for (place, name) in ["a", "b", "c"].iter().enumerate() {
        let digits: Vec<_> = (0..3)
            .map(|row| data(&block, name).get(row).unwrap())
            .collect();
        let digit = |row: usize| text(&(3 * row + place + 1).to_string());
        assert_eq!(digits, [digit(0), digit(1), digit(2)]);
    }
    for (place, name) in ["x", "y", "z"].iter().enumerate() {
        let numbers: Vec<_> = (0..3)
            .map(|row| data(&block, name).get(row).unwrap())
            .collect();
        let number = |row: usize| Value::Float((3 * row + place + 1) as f64);
        assert_eq!(numbers, [number(0), number(1), number(2)]);
    }
}

#[test]
fn words_that_come_back_in_any_order_keep_their_codes() {
    let sequence = [0, 1, 2, 0, 1, 2, 2, 2, 1, 0, 3, 0, 3, 1, 1, 2, 0];
    let lines: Vec<_> = sequence
        .iter()
        .map(|word| format!("m,t=w{word} v=1"))
        .collect();
    let block = block(&lines.join("\n"));
    let Data::Tag(words) = data(&block, "t") else {
        panic!("no tag");
    };
    assert_eq!(words.codes, sequence);
    assert_eq!(words.words.len(), 4);
}

#[test]
fn a_field_whose_type_changes_keeps_every_value_as_it_is() {
    let large = i64::MAX - 1;
    let block = block(&format!(
        "m v={large}i 1\nm w=1 2\nm v=1.5 3\nm v=\"x\" 4\nm v=t 5\nm v=7u 6"
    ));
    let Data::Mixed(cells) = data(&block, "v") else {
        panic!("not mixed");
    };
    let expected = [
        Some(Value::Integer(large)),
        None,
        Some(Value::Float(1.5)),
        Some(text("x")),
        Some(Value::Boolean(true)),
        Some(Value::Unsigned(7)),
    ];
    assert_eq!(*cells, expected);
}

#[test]
fn of_a_field_that_is_there_twice_the_last_value_counts() {
    let block =
        block("m a=1,b=9,a=2 1\nm a=3,a=4,a=5 2\nm c=1i,c=2i 3\nm d=1,d=2i 4\nm d=\"x\",d=3i 5");
    assert_eq!(data(&block, "a").get(0), Some(Value::Float(2.0)));
    assert_eq!(data(&block, "a").get(1), Some(Value::Float(5.0)));
    assert_eq!(data(&block, "c").get(2), Some(Value::Integer(2)));
    // Values that were replaced do not make a type.
    let Data::Integer(cells) = data(&block, "d") else {
        panic!("no integers");
    };
    assert_eq!(cells.values, [0, 0, 0, 2, 3]);
    assert_eq!(cells.present, Some(vec![false, false, false, true, true]));
}

#[test]
fn a_tag_and_a_field_may_have_the_same_key() {
    let block = block("m,k=a k=1");
    assert_eq!(names(&block), ["k", "k"]);
    assert_eq!(
        block.column("k").unwrap().data.get(0),
        Some(Value::Float(1.0))
    );
}

#[test]
fn names_are_unescaped() {
    let block = block(r#"m\ 1\,x,t\ 1=a\,b f\=1="say \"hi\"""#);
    assert_eq!(&*block.origin.measurement, "m 1,x");
    assert_eq!(names(&block), ["t 1", "f=1"]);
    assert_eq!(data(&block, "t 1").get(0), Some(text("a,b")));
    assert_eq!(data(&block, "f=1").get(0), Some(text("say \"hi\"")));
}

#[test]
fn times_become_nanoseconds_and_a_line_without_has_that_of_the_write() {
    let mut builder = Builder::new();
    let bad = |error: LineError| panic!("{error}");
    let wanted = |name: &str| Some(origin(name));
    builder.feed(
        b"m v=1 2\nm v=1\nm v=1 -3",
        Precision::Milliseconds,
        7,
        wanted,
        bad,
    );
    assert_eq!(&*builder.finish()[0].times, [2_000_000, 7, -3_000_000]);
}

#[test]
fn a_time_that_does_not_fit_makes_its_line_bad_wanted_or_not() {
    let text = b"m v=1 9223372036\nm v=1 9223372037\nother v=1 -9223372037\nm v=1 1";
    let mut errors = Vec::new();
    let mut builder = Builder::new();
    let wanted = |name: &str| (name == "m").then(|| origin(name));
    let fed = builder.feed(text, Precision::Seconds, 0, wanted, |error| {
        errors.push(error)
    });
    let (stored, unwanted, bad) = (2, 0, 2);
    assert_eq!(
        fed,
        LineCounts {
            stored,
            unwanted,
            bad
        }
    );
    let places: Vec<_> = errors
        .iter()
        .map(|error| (error.code(), error.line, error.column))
        .collect();
    let expected = [
        ("timestamp_out_of_range", 2, 7),
        ("timestamp_out_of_range", 3, 11),
    ];
    assert_eq!(places, expected);
    assert_eq!(builder.finish()[0].rows(), 2);
}

#[test]
fn nothing_of_a_bad_line_is_stored() {
    let text = b"m,t=a v=1 1\nm,new=b v=2,other=3,w=x 2\nm,t=c v=3 3\nn v=x";
    let mut errors = 0;
    let mut builder = Builder::new();
    let wanted = |name: &str| Some(origin(name));
    let fed = builder.feed(text, Precision::Nanoseconds, 0, wanted, |_| errors += 1);
    assert_eq!((fed.stored, fed.bad, errors), (2, 2, 2));
    let blocks = builder.finish();
    assert_eq!(blocks.len(), 1);
    assert_eq!(names(&blocks[0]), ["t", "v"]);
    assert_eq!(&*blocks[0].times, [1, 3]);
}

#[test]
fn each_measurement_is_asked_for_once_and_what_nobody_wants_is_checked_only() {
    let text = b"a v=1\nb v=1\na v=2\nb v=x\nc v=1\na v=3\nb v=2\nc\nd\\ e v=1";
    let mut asked = Vec::new();
    let mut bad = Vec::new();
    let mut builder = Builder::new();
    let wanted = |name: &str| {
        asked.push(name.to_owned());
        (name == "a" || name == "d e").then(|| origin(name))
    };
    let fed = builder.feed(text, Precision::Nanoseconds, 0, wanted, |error| {
        bad.push(error.line)
    });
    assert_eq!(asked, ["a", "b", "c", "d e"]);
    assert_eq!(bad, [4, 8]);
    assert_eq!((fed.stored, fed.unwanted, fed.accepted()), (4, 3, 7));
    let rows: Vec<_> = builder.finish().iter().map(Block::rows).collect();
    assert_eq!(rows, [3, 1]);
}

#[test]
fn several_texts_make_one_write_and_after_the_end_all_is_forgotten() {
    let mut builder = Builder::new();
    let bad = |error: LineError| panic!("{error}");
    for round in 0..3 {
        let mut asked = 0;
        for text in ["a v=1 1\nb v=2 2", "b v=3 3\na v=4 4\n"] {
            let wanted = |name: &str| {
                asked += 1;
                Some(origin(name))
            };
            let fed = builder.feed(text.as_bytes(), Precision::Nanoseconds, 0, wanted, bad);
            assert_eq!(fed.stored, 2);
        }
        assert_eq!(asked, 2, "round {round}");
        let blocks = builder.finish();
        assert_eq!(blocks.len(), 2);
        assert_eq!(&*blocks[0].times, [1, 4]);
        assert_eq!(&*blocks[1].times, [2, 3]);
        assert_eq!(names(&blocks[0]), ["v"]);
    }
    assert_eq!(builder.finish().len(), 0);
}

#[test]
fn lines_that_share_no_keys_do_not_make_a_table_of_holes() {
    let lines: Vec<_> = (0..5000)
        .map(|row| format!("m,t{row}=x f{row}={row}i {row}"))
        .collect();
    let blocks = blocks(&lines.join("\n"));
    let cells: usize = blocks
        .iter()
        .map(|block| block.rows() * block.columns.len())
        .sum();
    assert!(cells < 25 * 10_000, "{cells} cells of 10000 values");
    let times: Vec<_> = blocks
        .iter()
        .flat_map(|block| block.times.to_vec())
        .collect();
    assert!(times.iter().copied().eq(0..5000));
    for block in &blocks {
        for (row, &time) in block.times.iter().enumerate() {
            let value = data(block, &format!("f{time}")).get(row);
            assert_eq!(value, Some(Value::Integer(time)));
        }
    }
}

#[test]
fn one_wide_line_does_not_make_holes_of_the_narrow_ones() {
    let wide: Vec<_> = (0..5000).map(|field| format!("f{field}=1")).collect();
    let narrow = "m f0=2\n".repeat(5000);
    for text in [
        format!("m {}\n{narrow}", wide.join(",")),
        format!("{narrow}m {}\n", wide.join(",")),
    ] {
        let blocks = blocks(&text);
        let cells: usize = blocks
            .iter()
            .map(|block| block.rows() * block.columns.len())
            .sum();
        assert!(cells < 50_000, "{cells} cells of 10000 values");
        assert_eq!(blocks.iter().map(Block::rows).sum::<usize>(), 5001);
    }
}

#[test]
fn thousands_of_measurements_in_turn_keep_their_points_apart() {
    let line = |number: usize| format!("m{} v={number}i {number}\n", number % 3000);
    let text: String = (0..9000).map(line).collect();
    let blocks = blocks(&text);
    assert_eq!(blocks.len(), 3000);
    for (place, block) in blocks.iter().enumerate() {
        assert_eq!(*block.origin.measurement, *format!("m{place}"));
        let place = place as i64;
        assert_eq!(&*block.times, [place, place + 3000, place + 6000]);
    }
}

#[test]
fn a_row_is_written_as_the_line_that_it_was() {
    let text = concat!(
        r#"m\ 1\,x=y,t\=1=a\,\ b,u=é f\ 1=1.5,i=-2i,u=3u,b=true,s="say \"hi\" c:\\",w=1e300 10"#,
        "\n",
        r"m\ 1\,x=y,u=x i=9223372036854775807i -5",
        "\n",
    );
    assert_eq!(block(text).to_lines(), text);
}

#[test]
fn a_row_that_no_line_can_say_is_not_written() {
    let good = block("m,t=a v=1,w=2 5");
    let with = |name: &str, data: Data| {
        let mut block = good.clone();
        block.columns[1].name = name.into();
        block.columns[1].data = Arc::new(data);
        block.to_lines()
    };
    let floats = |value| {
        Data::Float(Cells {
            values: vec![value],
            present: None,
        })
    };
    assert_eq!(with("v", floats(1.0)), "m,t=a v=1.0,w=2.0 5\n");
    for value in [f64::NAN, f64::INFINITY] {
        assert_eq!(with("v", floats(value)), "m,t=a w=2.0 5\n");
    }
    for name in ["", "time", "a\nb", "ends\\"] {
        assert_eq!(with(name, floats(1.0)), "m,t=a w=2.0 5\n", "{name:?}");
    }
    assert_eq!(with("\tv", floats(1.0)), "m,t=a w=2.0,\tv=1.0 5\n");
    for measurement in ["", "#m", "\tm", "a\nb", "ends\\"] {
        let mut block = good.clone();
        block.origin = origin(measurement);
        let mut line = "before".to_owned();
        assert!(!block.write_line(0, &mut line), "{measurement:?}");
        assert_eq!(line, "before");
    }
    let mut block = good.clone();
    block.columns.truncate(1);
    assert_eq!(block.to_lines(), "");
}

#[test]
fn many_kinds_of_lines_in_one_text_are_all_where_they_belong() {
    let text = "\n# comment\ncpu,host=a v=1 1\r\nmem v=\"two\nlines\" 2\n\ncpu,host=b v=2 3";
    let blocks = blocks(text);
    let rows: HashMap<_, _> = blocks
        .iter()
        .map(|block| (&*block.origin.measurement, block.rows()))
        .collect();
    assert_eq!(rows, HashMap::from([("cpu", 2), ("mem", 1)]));
}
