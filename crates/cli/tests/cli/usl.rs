//! `corsair usl`: the universal scalability law, from points to a drawing.

use crate::terminal::{Terminal, picture};

const SPEC: &str =
    "load,throughput\n1,64.9\n18,995.9\n36,1652.4\n72,1853.2\n108,1828.9\n144,1775.0\n216,1702.2\n";

#[test]
fn a_file_of_points_gives_the_law_and_its_peak() {
    let terminal = Terminal::new();
    terminal.write("spec.csv", SPEC);
    let said = terminal.succeed("usl spec.csv --svg out/spec.svg");
    for part in [
        "α  0.0277",
        "β  0.00010",
        "at a load of 96.5",
        "R² 0.98",
        "drawn in out/spec.svg",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let drawing = picture(&terminal, "out/spec.svg");
    assert_eq!(drawing.matches("<circle").count(), 8);
}

#[test]
fn points_may_be_given_as_a_flag() {
    let said = Terminal::new().succeed("usl --points 1:100,2:195,4:370,8:660");
    assert!(
        said.contains("4 points are few") && said.contains("throughput of one"),
        "{said}"
    );
}

#[test]
fn a_straight_line_has_neither_peak_nor_limit() {
    let said = Terminal::new().succeed("usl --points 1:100,2:200,4:400,8:800,16:1600,32:3200");
    assert!(
        said.contains("no peak; throughput grows with the load"),
        "{said}"
    );
}

#[test]
fn the_law_answers_in_every_direction() {
    let terminal = Terminal::new();
    terminal.write("spec.csv", SPEC);
    let said = terminal.succeed("usl spec.csv --load 36 --throughput 1500 --response 0.03");
    for part in [
        "at a load of 36: load 36.0000, throughput 1",
        "at a throughput of 1500: load 3",
        "at a response time of 0.03: load 5",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let said = terminal.succeed("usl spec.csv --throughput 5000");
    assert!(
        said.contains("at a throughput of 5000: no load gives that"),
        "{said}"
    );
    assert!(terminal.refuse("usl spec.csv --load 0").contains("above 0"));
}

#[test]
fn bad_points_are_refused_with_their_place() {
    let terminal = Terminal::new();
    terminal.write("points", "1 2\n2 x\n");
    for (args, told) in [
        ("usl points", "points: line 2: '2 x' is not a pair"),
        ("usl nowhere", "cannot read nowhere"),
        ("usl --points 1:1,2:2", "2 different loads"),
        ("usl --points 1:1,2:0,3:3", "point 2 is (2.0, 0.0)"),
        ("usl --points 1:NaN,2:1,3:3", "point 1 is (1.0, NaN)"),
        ("usl --points 1:1e308,2:1e308,3:1e308", "to 1e15"),
    ] {
        let said = terminal.refuse(args);
        assert!(said.contains(told), "{args}: {said}");
    }
}
