//! Tests with files in the states in which a crash can leave them.

use super::*;
use proptest::prelude::*;

const IDENTITY: u64 = 0x1234_5678_9abc_def0;
const SECTOR: usize = 512;

fn header() -> Header {
    Header {
        format: FORMAT,
        identity: IDENTITY,
        first: 7,
    }
}

fn record(first: u64, entries: &[u8]) -> Vec<u8> {
    let mut record = Record::default();
    record.begin();
    record.bytes().extend_from_slice(entries);
    let count = entries.len() as u32 + 1;
    record.finish(IDENTITY, first, count).to_vec()
}

/// Builds a file with a record for each group, and returns the end of each record.
fn file(groups: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let mut file = header().bytes().to_vec();
    let (mut first, mut ends) = (header().first, vec![HEADER]);
    for group in groups {
        file.extend(record(first, group));
        ends.push(file.len());
        first += group.len() as u64 + 1;
    }
    (file, ends)
}

fn groups() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1500), 1..12)
}

fn read_back(file: &[u8]) -> Result<Vec<Vec<u8>>, u64> {
    let contents = contents(file, &header());
    if contents.is_interrupted(file, &header()) {
        return Err(contents.next);
    }
    let entries = contents.records.iter();
    Ok(entries.map(|record| record.entries.to_vec()).collect())
}

proptest! {
    // Guarantee: courier-1.
    #[test]
    fn what_was_on_disk_is_read_whatever_became_of_the_record_that_was_being_written(
        groups in groups(),
        ahead in 0usize..4096,
        grown in any::<bool>(),
        written in prop::collection::vec(any::<bool>(), 16),
    ) {
        // All groups but the last are on disk, followed by zeros. Of the last group, and of the zeros after it, only
        // random sectors are on disk.
        let (last, durable) = groups.split_last().unwrap();
        let (mut disk, ends) = file(durable);
        let whole = disk.len();
        disk.resize(whole + ahead, 0);
        let next = header().first + durable.iter().map(|group| group.len() as u64 + 1).sum::<u64>();
        let mut wanted = disk.clone();
        wanted.truncate(whole);
        wanted.extend(record(next, last));
        wanted.resize(wanted.len().max(disk.len()) + 1024, 0);
        if grown {
            disk.resize(wanted.len(), 0);
        }
        for (sector, bytes) in wanted.chunks(SECTOR).enumerate() {
            let at = sector * SECTOR;
            if written[sector % written.len()] && at < disk.len() {
                let end = (at + bytes.len()).min(disk.len());
                disk[at..end].copy_from_slice(&bytes[..end - at]);
            }
        }
        let found = read_back(&disk).unwrap();
        prop_assert!(found == durable || found == groups, "{} of {}", found.len(), groups.len());
        prop_assert_eq!(ends.len(), durable.len() + 1);
    }

    #[test]
    fn a_file_that_ends_early_has_the_records_before(groups in groups(), cut in 0.0..1.0) {
        let (mut whole, ends) = file(&groups);
        let cut = HEADER + ((whole.len() - HEADER) as f64 * cut) as usize;
        whole.truncate(cut);
        let found = read_back(&whole).unwrap();
        // A record may end with padding.
        let least = ends.iter().filter(|&&end| end <= cut).count() - 1;
        prop_assert!(found.len() >= least && found.len() <= least + 1);
        prop_assert_eq!(&found[..], &groups[..found.len()]);
    }

    // Guarantee: courier-13.
    #[test]
    fn damage_before_the_last_record_is_an_error_and_of_the_last_one_no_part_is_read(
        groups in groups(),
        place in 0.0..1.0,
        bit in 0u8..8,
    ) {
        let (mut whole, ends) = file(&groups);
        let place = HEADER + ((whole.len() - HEADER) as f64 * place) as usize;
        whole[place] ^= 1 << bit;
        let of = ends.iter().filter(|&&end| end <= place).count() - 1;
        match read_back(&whole) {
            Err(entry) => {
                prop_assert!(of + 1 < groups.len());
                let before: u64 = groups[..of].iter().map(|group| group.len() as u64 + 1).sum();
                prop_assert_eq!(entry, header().first + before);
            }
            // Damage in the padding of a record is not detected.
            Ok(found) if found == groups => prop_assert!(ends[of + 1] - place < ALIGN),
            Ok(found) => {
                prop_assert_eq!(of + 1, groups.len());
                prop_assert_eq!(&found[..], &groups[..of]);
            }
        }
    }
}

#[test]
fn records_of_another_log_and_zeros_are_none() {
    let (whole, _) = file(&[vec![1, 2, 3]]);
    let other = Header {
        identity: IDENTITY + 1,
        ..header()
    };
    assert!(contents(&whole, &other).records.is_empty());
    let mut zeros = header().bytes().to_vec();
    zeros.resize(1 << 16, 0);
    let found = contents(&zeros, &header());
    assert_eq!((found.next, found.end, found.continues), (7, HEADER, false));
}

#[test]
fn a_header_is_read_as_it_was_written_and_not_if_a_bit_of_it_differs() {
    let bytes = header().bytes();
    assert_eq!(Header::read(&bytes), Some(header()));
    for place in 0..HEADER {
        let mut damaged = bytes;
        damaged[place] ^= 1;
        assert_eq!(Header::read(&damaged), None, "{place}");
    }
    assert_eq!(Header::read(&bytes[..HEADER - 1]), None);
}
