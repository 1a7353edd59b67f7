//! Tests of the program with little work: they check its output, not its speed.

struct Load;

impl corsair_testing::terminal::Program for Load {
    const NAME: &str = "corsair-stream-load";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair-stream-load");
}

type Terminal = corsair_testing::terminal::Terminal<Load>;

#[test]
fn deliver_prints_a_line_for_each_work_and_number_of_tasks() {
    let table = Terminal::new().succeed("deliver --tasks 1,3 --lines 50 --rounds 1");
    for work in ["from", "none", "count", "alert", "packets"] {
        let lines = table.lines().filter(|line| line.starts_with(work)).count();
        assert_eq!(lines, 2, "{work} in\n{table}");
    }
}

#[test]
fn writers_write_to_a_server_of_their_own() {
    let said = Terminal::new()
        .succeed("write --writers 2 --lines 10 --tasks 2 --measurements 2 --seconds 1");
    let lines: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(lines > 0 && lines.is_multiple_of(10), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let said = Terminal::new().refuse("write --server 127.0.0.1:1 --seconds 1");
    assert!(said.contains("the writers stopped"), "{said}");
}
