//! Generates records of people, with which marshalling is tested and measured.
//!
//! The same seed always produces the same records.
//!
//! A record has 22 fields (ids, flags, floats, long text with characters that JSON escapes, seven
//! tags, three friends) and takes about 1,080 bytes as JSON. Its text is pure ASCII and has none
//! of the characters that only some encoders escape, so that every JSON encoder should give the
//! same bytes for it.
//!
//! ```
//! let people = corsair_testing::people::generate(1_000, 7);
//! assert_eq!(people[3].index, 3);
//! assert_eq!(people[..10], corsair_testing::people::generate(10, 7));
//! ```

use corsair::Random;
use serde::{Deserialize, Serialize};

/// A generated person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the fields of a generated record are self-explanatory"
)]
pub struct Person {
    #[serde(rename = "_id")]
    pub id: String,
    pub index: u32,
    pub guid: String,
    pub is_active: bool,
    pub balance: String,
    pub picture: String,
    pub age: u8,
    pub eye_color: String,
    pub name: String,
    pub gender: String,
    pub company: String,
    pub email: String,
    pub phone: String,
    pub address: String,
    pub about: String,
    pub registered: String,
    pub latitude: f64,
    pub longitude: f64,
    pub tags: Vec<String>,
    pub friends: Vec<Friend>,
    pub greeting: String,
    pub favorite_fruit: String,
}

/// A friend of a [`Person`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the fields of a generated record are self-explanatory"
)]
pub struct Friend {
    pub id: u32,
    pub name: String,
}

/// Generates `count` people; the first ones do not depend on the count.
pub fn generate(count: usize, seed: u64) -> Vec<Person> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|index| person(&mut random, u32::try_from(index).unwrap_or(u32::MAX)))
        .collect()
}

const GIVEN: [&str; 16] = [
    "Anne",
    "Bartholomew",
    "Calico",
    "Davy",
    "Edward",
    "Francis",
    "Grace",
    "Henry",
    "Israel",
    "Jacquotte",
    "Kanhoji",
    "Laurens",
    "Mary",
    "Olivier",
    "Piet",
    "Sayyida",
];
const FAMILY: [&str; 16] = [
    "Avery",
    "Bonny",
    "Cofresi",
    "Drake",
    "Every",
    "Flint",
    "Gibbs",
    "Hornigold",
    "Jennings",
    "Kidd",
    "Low",
    "Morgan",
    "Rackham",
    "Roberts",
    "Silver",
    "Teach",
];
const WORDS: [&str; 32] = [
    "anchor",
    "ballast",
    "barnacle",
    "boom",
    "bowsprit",
    "brig",
    "broadside",
    "cable",
    "capstan",
    "cargo",
    "compass",
    "crew",
    "cutlass",
    "doubloon",
    "fathom",
    "galley",
    "harbour",
    "jetty",
    "keel",
    "lantern",
    "mainsail",
    "mast",
    "parrot",
    "plank",
    "rigging",
    "rudder",
    "schooner",
    "spyglass",
    "starboard",
    "tide",
    "treasure",
    "windward",
];
const COLOURS: [&str; 4] = ["blue", "brown", "green", "grey"];
const FRUITS: [&str; 4] = ["banana", "coconut", "lime", "mango"];
const GENDERS: [&str; 3] = ["female", "male", "other"];
const STREETS: [&str; 4] = ["Quay", "Lane", "Wharf", "Road"];

/// Generates one record. The order of the draws is part of the format: if it changes, the people
/// change.
fn person(random: &mut Random, index: u32) -> Person {
    let (given, family) = (pick(random, &GIVEN), pick(random, &FAMILY));
    let company = format!("{}{}", pick(random, &WORDS), pick(random, &WORDS)).to_uppercase();
    let unread = random.below(20);
    Person {
        id: hex(random, 24),
        index,
        guid: [8, 4, 4, 4, 12].map(|digits| hex(random, digits)).join("-"),
        is_active: random.below(2) == 1,
        balance: format!(
            "${},{:03}.{:02}",
            1 + random.below(3),
            random.below(1000),
            random.below(100)
        ),
        picture: "http://images.example/portraits/32x32.png".to_owned(),
        age: 20 + random.below(21) as u8,
        eye_color: pick(random, &COLOURS).to_owned(),
        name: format!("{given} {family}"),
        gender: pick(random, &GENDERS).to_owned(),
        email: format!("{given}.{family}@{company}.example").to_lowercase(),
        phone: format!(
            "+1 ({}) {}-{:04}",
            800 + random.below(200),
            400 + random.below(200),
            random.below(10_000)
        ),
        address: format!(
            "{} {} {}, {}, {}, {}",
            100 + random.below(900),
            title(pick(random, &WORDS)),
            pick(random, &STREETS),
            title(pick(random, &WORDS)),
            title(pick(random, &WORDS)),
            1000 + random.below(9000)
        ),
        about: about(random),
        registered: format!(
            "20{:02}-{:02}-{:02}T{:02}:{:02}:{:02} -02:00",
            10 + random.below(15),
            1 + random.below(12),
            1 + random.below(28),
            random.below(24),
            random.below(60),
            random.below(60)
        ),
        latitude: degrees(random, 90),
        longitude: degrees(random, 180),
        tags: (0..7).map(|_| pick(random, &WORDS).to_owned()).collect(),
        friends: (0..3)
            .map(|id| Friend {
                id,
                name: format!("{} {}", pick(random, &GIVEN), pick(random, &FAMILY)),
            })
            .collect(),
        greeting: format!("Ahoy, {given} {family}! You have {unread} unread messages."),
        favorite_fruit: pick(random, &FRUITS).to_owned(),
        company,
    }
}

fn pick(random: &mut Random, from: &[&'static str]) -> &'static str {
    from[random.below(from.len() as u32) as usize]
}

/// Returns a word with its first letter in upper case.
fn title(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

fn hex(random: &mut Random, digits: usize) -> String {
    (0..digits)
        .map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize]))
        .collect()
}

/// Generates an angle with six decimals, up to `limit` degrees from zero, and never so close to
/// zero that an encoder would write an exponent.
fn degrees(random: &mut Random, limit: u32) -> f64 {
    let millionths = 1000 + random.below(limit * 1_000_000 - 1000);
    let angle = f64::from(millionths) / 1e6;
    if random.below(2) == 1 { angle } else { -angle }
}

/// Generates some sentences with quotation marks and line breaks, which JSON escapes.
fn about(random: &mut Random) -> String {
    let mut text = String::new();
    for sentence in 0..5 {
        for word in 0..8 {
            let next = pick(random, &WORDS);
            match word {
                0 => text.push_str(&title(next)),
                4 => text.extend([" \"", next, "\""]),
                _ => text.extend([" ", next]),
            }
        }
        text.push_str(if sentence < 4 { ".\t" } else { ".\r\n" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_22_fields_7_tags_3_friends_and_escapes() {
        for person in generate(50, 3) {
            let value = serde_json::to_value(&person).unwrap();
            assert_eq!(value.as_object().unwrap().len(), 22);
            assert_eq!(person.tags.len(), 7);
            assert_eq!(person.friends.len(), 3);
            assert!(person.about.contains('"') && person.about.contains('\n'));
        }
    }

    #[test]
    fn a_record_takes_about_1080_bytes_of_json() {
        let people = generate(1000, 7);
        let bytes = serde_json::to_vec(&people).unwrap().len();
        let mean = bytes / people.len();
        assert!((1060..=1100).contains(&mean), "{mean} bytes");
    }

    #[test]
    fn the_same_seed_gives_the_same_people_and_another_seed_others() {
        assert_eq!(generate(20, 5), generate(40, 5)[..20]);
        assert_ne!(generate(1, 5), generate(1, 6));
    }

    #[test]
    fn a_record_survives_json_and_back() {
        let people = generate(30, 11);
        let json = serde_json::to_string(&people).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Person>>(&json).unwrap(), people);
    }
}
