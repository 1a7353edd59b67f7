//! SQLite and redb on the simulated disk: committed rows survive power losses, and a database that does not sync is
//! detected.
//!
//! The variable `POWER_LOSSES` sets the number of power losses; `ci/host.sh real 10000` sets it to 10,000.

use corsair_host::{Disk, Fault, HostState, Sim, SimError, simulate};
use redb::{ReadableDatabase, TableDefinition};
use rusqlite::Connection;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// The number of power losses in one simulation.
const LOSSES: u64 = 25;

/// Runs a program that is interrupted by power losses at random times, also while it recovers. It prints `commits N`
/// before it commits row N and `committed N` afterwards, and, when it has recovered, `found N` with the number of the last
/// row.
fn lose_power(sim: &mut Sim, program: fn()) -> Result<(), SimError> {
    let mut random = corsair::Random::new(sim.seed());
    let host = sim.host("database", move || {
        println!("starts 0");
        program();
    });
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
    let (mut least, mut most, mut starts, mut recoveries) = (0, 0, 0, 0);
    for line in sim.lines() {
        let Some((what, number)) = line.text.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            panic!("{}", line.text);
        };
        match what {
            "starts" => starts += 1,
            "commits" => most = number,
            "committed" => least = number,
            "found" => {
                assert!(
                    (least..=most).contains(&number),
                    "{number} of {least} to {most}"
                );
                (least, recoveries) = (number, recoveries + 1);
            }
            other => panic!("{other}"),
        }
    }
    // The interval between a start and the next power loss is rarely shorter than a recovery.
    assert!(
        starts == LOSSES + 1 && recoveries > LOSSES / 2 && least > LOSSES,
        "{starts} starts, {recoveries} recoveries, {least} rows"
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
    let (path, mark) = ("/data/rows.redb", Path::new("/data/created"));
    // redb refuses a file whose creation was interrupted. Before the mark exists, nothing was committed.
    let database = redb::Database::create(path).or_else(|refused| match mark.exists() {
        true => Err(refused),
        false => {
            std::fs::remove_file(path)?;
            redb::Database::create(path)
        }
    })?;
    std::fs::write(mark, "")?;
    let mut last = 0;
    if let Ok(table) = database.begin_read()?.open_table(ROWS) {
        for row in table.range::<u64>(..)? {
            assert_eq!(row?.0.value(), last + 1);
            last += 1;
        }
    }
    // According to the manual of `fsync`, the name of a new file is durable only when its directory has been synced.
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

/// Runs simulations with different seeds, with at least `least` power losses in total, or as many as `POWER_LOSSES`
/// requests.
fn repeat(least: u64, program: fn()) {
    let wanted = std::env::var("POWER_LOSSES")
        .ok()
        .and_then(|count| count.parse().ok());
    let wanted = wanted.unwrap_or(least).max(1);
    for seed in 1..=wanted.div_ceil(LOSSES) {
        let run = |sim: &mut Sim| {
            // On every other disk, any sync makes names durable, as on ext4.
            sim.disk(Disk::new().syncs_names(seed % 2 == 0));
            lose_power(sim, program)
        };
        let (failure, _) = simulate(seed, NonZeroUsize::MIN, run).unwrap();
        assert_eq!(failure, None, "seed {seed}");
    }
}

/// With `EXTRA`, SQLite also syncs the directory after removing the journal, which is what commits a transaction.
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

/// Runs seeds until a simulation fails because the database does not sync, and returns this seed.
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

/// SQLite documents that `NORMAL` with a write-ahead log may lose the last commits.
#[corsair_host::test]
fn sqlite_that_syncs_at_checkpoints_alone_is_caught(_: &mut Sim) {
    caught(|| sqlite("WAL", "NORMAL").unwrap());
}

/// SQLite documents that `FULL` with a rollback journal may lose the last commit, because the removal of the journal is
/// not durable.
#[corsair_host::test]
fn sqlite_that_does_not_sync_its_directory_is_caught(_: &mut Sim) {
    caught(|| sqlite("DELETE", "FULL").unwrap());
}
