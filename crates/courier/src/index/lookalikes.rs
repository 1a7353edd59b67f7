//! Names that look alike: at most one of them can be taken.
//!
//! Two names look alike if they have the same [skeleton](skeleton) and one of them has characters other than ASCII. Two
//! ASCII names never look alike: `burn` and `bum` can be two users.

use super::tables::Tables;
use redb::ReadableTable;
use unicode_security::confusable_detection;

/// Returns the skeleton of a name by [UTS 39](https://www.unicode.org/reports/tr39/#Confusable_Detection), which is
/// equal for names that look alike in common fonts. The skeleton is part of the format, because all nodes must refuse
/// the same names. So new tables of Unicode need a new version of the command that creates users.
fn skeleton(name: &str) -> String {
    confusable_detection::skeleton(name).collect()
}

/// The number of users whose names have the same skeleton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holders {
    ascii: u64,
    others: u64,
}

impl Holders {
    /// Returns the counter for a name.
    fn of(&mut self, name: &str) -> &mut u64 {
        match name.is_ascii() {
            true => &mut self.ascii,
            false => &mut self.others,
        }
    }
}

fn holders(tables: &Tables<'_>, skeleton: &str) -> Result<Holders, redb::Error> {
    let row = tables.lookalikes.get(skeleton)?;
    let (ascii, others) = row.map_or((0, 0), |row| row.value());
    Ok(Holders { ascii, others })
}

/// True if the name looks like the name of an existing user.
pub(super) fn is_taken(tables: &Tables<'_>, name: &str) -> Result<bool, redb::Error> {
    let Holders { ascii, others } = holders(tables, &skeleton(name))?;
    Ok(others > 0 || (ascii > 0 && !name.is_ascii()))
}

/// Records a name that was taken.
pub(super) fn add(tables: &mut Tables<'_>, name: &str) -> Result<(), redb::Error> {
    change(tables, name, |count| count.saturating_add(1))
}

/// Removes a name that is no longer taken.
pub(super) fn remove(tables: &mut Tables<'_>, name: &str) -> Result<(), redb::Error> {
    change(tables, name, |count| count.saturating_sub(1))
}

fn change(tables: &mut Tables<'_>, name: &str, to: impl Fn(u64) -> u64) -> Result<(), redb::Error> {
    let skeleton = skeleton(name);
    let mut holders = holders(tables, &skeleton)?;
    let count = holders.of(name);
    *count = to(*count);
    let key = skeleton.as_str();
    if holders == Holders::default() {
        tables.lookalikes.remove(key)?;
    } else {
        tables
            .lookalikes
            .insert(key, (holders.ascii, holders.others))?;
    }
    Ok(())
}

/// Records the names of an index that was created without this table.
pub(super) fn add_all(tables: &mut Tables<'_>) -> Result<(), redb::Error> {
    let names = tables.names.iter()?;
    let names = names.map(|row| Ok(row?.0.value().to_owned()));
    for name in names.collect::<Result<Vec<_>, redb::Error>>()? {
        add(tables, &name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::skeleton;

    #[test]
    fn the_tables_of_unicode_are_those_of_this_format() {
        let version = unicode_security::UNICODE_VERSION;
        assert_eq!(
            version,
            (18, 0, 0),
            "skeletons are part of the format: give RegisterUser another version first"
        );
    }

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        for (one, other) in [("anne", "\u{430}nne"), ("Вера", "Bepa"), ("rn", "m")] {
            assert_eq!(skeleton(one), skeleton(other));
        }
        for (one, other) in [("anne", "anna"), ("Zoë", "Zoe"), ("a1", "a2")] {
            assert_ne!(skeleton(one), skeleton(other));
        }
    }
}
