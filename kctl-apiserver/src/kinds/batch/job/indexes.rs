//! Parses lists of indexes of an indexed Job, such as `1,3-5`, into intervals.

/// The rule for lists of indexes.
pub(super) const RULE: &str = "must be increasing indexes and ranges below `completions`, such as '1,3-5,7'";

/// Parses a list of indexes, each item by `interval`. `None` if an item is invalid or the indexes do not increase.
pub(super) fn intervals(list: &str, interval: impl Fn(&str) -> Option<(i64, i64)>) -> Option<Vec<(i64, i64)>> {
    let intervals: Vec<_> = list.split(',').filter(|_| !list.is_empty()).map(interval).collect::<Option<_>>()?;
    intervals.is_sorted_by(|(_, previous), (first, _)| previous < first).then_some(intervals)
}

/// Parses one index or range into its first and last index, which are below `below`.
pub(super) fn interval(text: &str, below: i64) -> Option<(i64, i64)> {
    let index = |text: &str| text.parse().ok().filter(|index| *index < below);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    index(first).zip(index(last)).filter(|(first, last)| first <= last)
}

/// Parses one index or range like [`interval`], but rejects a range of one index such as `3-3`. kube-apiserver rejects
/// it in a status and accepts it in a `successPolicy`.
pub(super) fn strict_interval(text: &str, below: i64) -> Option<(i64, i64)> {
    interval(text, below).filter(|(first, last)| first < last || !text.contains('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_indexes_grow() {
        let all = |list| intervals(list, |text| interval(text, 10));
        for (list, expected) in
            [("", vec![]), ("0", vec![(0, 0)]), ("0,2-4", vec![(0, 0), (2, 4)]), ("3-3", vec![(3, 3)])]
        {
            assert_eq!(all(list), Some(expected), "{list}");
        }
        for list in ["3,1", "3,3", "4-2", "10", "a", "1-2-3", "-1", "1,"] {
            assert_eq!(all(list), None, "{list}");
        }
    }

    #[test]
    fn one_index_range_is_invalid_in_status() {
        assert_eq!(strict_interval("3", 10), Some((3, 3)));
        assert_eq!(strict_interval("2-3", 10), Some((2, 3)));
        assert_eq!(strict_interval("3-3", 10), None);
    }
}
