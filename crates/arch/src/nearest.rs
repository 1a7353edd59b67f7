//! Suggests the right name for a mistyped one.

/// Returns the candidate that is most similar to the typed word. A candidate qualifies if it differs by at most two
/// typing errors, or if it starts with the typed word.
pub fn nearest<'a>(typed: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = typed.to_lowercase();
    let (mut closest, mut likest) = (None, None);
    for name in among {
        let lower = name.to_lowercase();
        let slips = strsim::osa_distance(&wanted, &lower);
        let likeness = strsim::jaro_winkler(&wanted, &lower);
        if closest.is_none_or(|(least, _)| slips < least) {
            closest = Some((slips, name));
        }
        if likest.is_none_or(|(most, _)| likeness > most) {
            likest = Some((likeness, name));
        }
    }
    let allowed = (typed.chars().count() / 3).max(1);
    let by_slips = closest.filter(|&(slips, _)| slips <= allowed);
    let by_likeness = likest.filter(|&(likeness, _)| likeness > 0.8);
    by_slips
        .map(|(_, name)| name)
        .or(by_likeness.map(|(_, name)| name))
}

/// Returns `; did you mean NAME?`, or an empty text if no name is similar.
pub(crate) fn did_you_mean<'a>(typed: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, among)
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_a_case_and_a_beginning_are_near_and_nonsense_is_not() {
        let names = ["karyon", "priamCassandra", "store"];
        assert_eq!(nearest("karyom", names), Some("karyon"));
        assert_eq!(nearest("priamcassandra", names), Some("priamCassandra"));
        assert_eq!(nearest("priamCass", names), Some("priamCassandra"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(did_you_mean("stor", names), "; did you mean store?");
    }
}
