//! Tests with logs in the format of earlier versions.

use super::*;
use redb::Durability;

/// Writes a log in the format of earlier versions: groups of commands, the first of which is entry 1.
pub fn write(data: &Path, identity: u64, groups: &[Vec<Command>]) {
    let (database, _) = database::open(Some(data), FILE, CACHE).unwrap();
    let mut txn = database.begin_write().unwrap();
    txn.set_durability(Durability::Immediate).unwrap();
    {
        let mut meta = txn.open_table(META).unwrap();
        meta.insert("format", u64::from(FORMAT)).unwrap();
        meta.insert("identity", identity).unwrap();
        let rows: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log_0");
        let mut rows = txn.open_table(rows).unwrap();
        let mut first = 1;
        for group in groups {
            let mut bytes = Vec::new();
            for command in group {
                bytes = postcard::to_extend(command, bytes).unwrap();
            }
            let mut row = checksum(first, &bytes).to_vec();
            row.extend(bytes);
            rows.insert(first, row.as_slice()).unwrap();
            first += group.len() as u64;
        }
    }
    txn.commit().unwrap();
}
