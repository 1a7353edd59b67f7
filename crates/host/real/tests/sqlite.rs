//! SQLite and redb on the simulated disk: what was committed survives power losses, and a database that does not sync is
//! caught.
//!
//! `POWER_LOSSES=10000` sets how many there are (`ci/host.sh whole`).

use corsair_host::{Disk, Fault, HostState, Sim, SimError, simulate};
use redb::{ReadableDatabase, TableDefinition};
use rusqlite::Connection;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Power losses of one simulation.
const LOSSES: u64 = 25;

/// Runs a program that is cut off at random times, again and again. It prints `commits N` before it commits row N and
/// `committed N` after, and `found N` with the last row at its start.
fn lose_power(sim: &mut Sim, program: fn()) -> Result<(), SimError> {
    let mut random = corsair::Random::new(sim.seed());
    let host = sim.host("database", program);
    sim.file(&host, "/data/.keep", "");
    let mut time = 0;
    for _ in 0..LOSSES {
        time += 1_000 + u64::from(random.below(120_000));
        sim.at(Duration::from_micros(time), Fault::power_loss(&host));
        time += 1_000;
        sim.at(Duration::from_micros(time), Fault::start(&host));
    }
    sim.run_until(Duration::from_micros(time + 100_000))?;
    assert_eq!(sim.state(&host), HostState::Running);
    let (mut least, mut most, mut starts) = (0, 0, 0);
    for line in sim.lines() {
        let Some((what, number)) = line.text.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            panic!("{}", line.text);
        };
        match what {
            "commits" => most = number,
            "committed" => least = number,
            "found" => {
                assert!(
                    (least..=most).contains(&number),
                    "{number} of {least} to {most}"
                );
                (least, starts) = (number, starts + 1);
            }
            other => panic!("{other}"),
        }
    }
    assert!(
        starts == LOSSES + 1 && least > LOSSES,
        "{starts} starts, {least} rows"
    );
    Ok(())
}

fn sqlite(journal: &str, synchronous: &str) -> rusqlite::Result<()> {
    let mut database = Connection::open("/data/rows.sqlite")?;
    database.pragma_update(None, "journal_mode", journal)?;
    database.pragma_update(None, "synchronous", synchronous)?;
    database.pragma_update(None, "wal_autocheckpoint", 20)?;
    let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    assert_eq!(check, "ok");
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, text TEXT);
         CREATE TABLE IF NOT EXISTS total (sum INTEGER);",
    )?;
    let query = "SELECT coalesce(max(number), 0), count(*), coalesce(sum(number), 0) FROM rows";
    let (last, count, sum): (u64, u64, u64) =
        database.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    assert_eq!(
        (count, sum),
        (last, last * (last + 1) / 2),
        "rows without gaps"
    );
    println!("found {last}");
    for number in last + 1.. {
        let transaction = database.transaction()?;
        // Long rows, so that transactions have several pages.
        let text = number.to_string().repeat(700);
        transaction.execute("INSERT INTO rows VALUES (?1, ?2)", (number, text))?;
        println!("commits {number}");
        transaction.commit()?;
        println!("committed {number}");
    }
    Ok(())
}

fn redb() -> Result<(), redb::Error> {
    const ROWS: TableDefinition<u64, &str> = TableDefinition::new("rows");
    let database = redb::Database::create("/data/rows.redb")?;
    let mut last = 0;
    if let Ok(table) = database.begin_read()?.open_table(ROWS) {
        for row in table.range::<u64>(..)? {
            assert_eq!(row?.0.value(), last + 1);
            last += 1;
        }
    }
    // The manual of fsync: the name of a new file is durable when its directory is.
    std::fs::File::open("/data")
        .and_then(|data| data.sync_all())
        .unwrap();
    println!("found {last}");
    for number in last + 1.. {
        let transaction = database.begin_write()?;
        let text = number.to_string().repeat(700);
        transaction.open_table(ROWS)?.insert(number, &text[..])?;
        println!("commits {number}");
        transaction.commit()?;
        println!("committed {number}");
    }
    Ok(())
}

/// Simulations with other seeds, until there were as many power losses as are asked for.
fn repeat(least: u64, program: fn()) {
    let wanted = std::env::var("POWER_LOSSES")
        .ok()
        .and_then(|count| count.parse().ok());
    let wanted = wanted.unwrap_or(least).max(1);
    for seed in 1..=wanted.div_ceil(LOSSES) {
        let run = |sim: &mut Sim| {
            // Every other disk makes names durable as ext4 does.
            sim.disk(Disk::new().syncs_names(seed % 2 == 0));
            lose_power(sim, program)
        };
        let (failure, _) = simulate(seed, NonZeroUsize::MIN, run).unwrap();
        assert_eq!(failure, None, "seed {seed}");
    }
}

/// `EXTRA` syncs the directory after the journal was removed, which is what commits.
#[corsair_host::test]
fn sqlite_with_a_rollback_journal_keeps_what_it_committed(_: &mut Sim) {
    repeat(50, || sqlite("DELETE", "EXTRA").unwrap());
}

#[corsair_host::test]
fn sqlite_with_a_write_ahead_log_keeps_what_it_committed(_: &mut Sim) {
    repeat(50, || sqlite("WAL", "FULL").unwrap());
}

#[corsair_host::test]
fn redb_keeps_what_it_committed(_: &mut Sim) {
    repeat(50, || redb().unwrap());
}

/// Seeds until a database that does not sync is caught.
fn caught(program: fn()) -> u64 {
    let fails = |seed: &u64| {
        let run = |sim: &mut Sim| lose_power(sim, program);
        simulate(*seed, NonZeroUsize::MIN, run).unwrap().0.is_some()
    };
    (1..=20)
        .find(fails)
        .expect("no seed finds the missing syncs")
}

#[corsair_host::test]
fn sqlite_that_does_not_sync_is_caught(_: &mut Sim) {
    caught(|| sqlite("DELETE", "OFF").unwrap());
}

/// Documented: with a write-ahead log, `NORMAL` may lose the last commits.
#[corsair_host::test]
fn sqlite_that_syncs_at_checkpoints_alone_is_caught(_: &mut Sim) {
    caught(|| sqlite("WAL", "NORMAL").unwrap());
}

/// Documented as well: with a rollback journal, `FULL` may lose the last commit, because the removal of the journal is
/// not durable.
#[corsair_host::test]
fn sqlite_that_does_not_sync_its_directory_is_caught(_: &mut Sim) {
    caught(|| sqlite("DELETE", "FULL").unwrap());
}
