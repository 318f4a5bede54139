//! Validates the schedules of `CronJob`s as `github.com/robfig/cron/v3` parses them.
//!
//! Nothing here computes the next time of a schedule. A schedule is one of:
//!
//! ```text
//! */15 8-17 * jan-jun mon      five fields: minute, hour, day of month, month, day of week
//! @daily                       a descriptor
//! @every 1h30m                 an interval
//! ```

use kctl_apimachinery::duration;

/// A field of a schedule: its least and its greatest number, and the names of numbers.
struct Range {
    /// The least number, inclusive.
    least: i64,
    /// The greatest number, inclusive. It is also the end of `*` and of `5/10`.
    most: i64,
    /// Names for the numbers from the least one on, compared without case.
    names: &'static [&'static str],
}

/// English names of three letters; longer names are errors.
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Days of the week. Sunday is 0; unlike some implementations of cron, 7 is out of range.
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Minute, hour, day of month, month and day of week. Days are not checked against months: the 31st
/// of February is a valid schedule that never fires.
const FIELDS: [Range; 5] = [
    Range { least: 0, most: 59, names: &[] },
    Range { least: 0, most: 23, names: &[] },
    Range { least: 1, most: 31, names: &[] },
    Range { least: 1, most: 12, names: MONTHS },
    Range { least: 0, most: 6, names: DAYS },
];

/// Names of whole schedules, case-sensitive. `@reboot` is not one of them.
const DESCRIPTORS: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Returns `true` for a cron schedule. It has no time zone: `CronJob`s set `spec.timeZone` instead.
///
/// Each field is a list of ranges with commas between them. Empty items are skipped, as
/// `strings.FieldsFunc` does: `1,,2` is valid.
pub(super) fn is_schedule(schedule: &str) -> bool {
    if let Some(every) = schedule.strip_prefix("@every ") {
        return duration::parse(every).is_some();
    }
    let texts: Vec<&str> = schedule.split_whitespace().collect();
    let is_field = |(text, field): (&&str, &Range)| {
        text.split(',').filter(|range| !range.is_empty()).all(|range| is_range(range, field))
    };
    DESCRIPTORS.contains(&schedule) || (texts.len() == FIELDS.len() && texts.iter().zip(&FIELDS).all(is_field))
}

/// Returns `true` for an item of a field: `*`, `?`, a number or name, a range, each with an optional step.
///
/// | form | start to end |
/// |---|---|
/// | `*` | the whole field |
/// | `5` | only 5 |
/// | `5/10` | 5 to the greatest number, by 10 |
/// | `5-20/10` | 5 to 20, by 10 |
///
/// A range must not wrap: `fri-mon` is invalid.
fn is_range(text: &str, field: &Range) -> bool {
    let (range, step) = text.split_once('/').map_or((text, None), |(range, step)| (range, Some(step)));
    let parts: Vec<&str> = range.split('-').collect();
    let ends = match parts.as_slice() {
        ["*" | "?", ..] => Some((field.least, field.most)),
        [only] => field.number(only).map(|number| (number, if step.is_some() { field.most } else { number })),
        [start, end] => field.number(start).zip(field.number(end)),
        _ => None,
    };
    ends.is_some_and(|(start, end)| field.least <= start && start <= end && end <= field.most)
        && step.is_none_or(|step| step.parse().is_ok_and(|step: i64| step > 0))
}

impl Range {
    /// Returns the number of a name or of decimal digits.
    fn number(&self, text: &str) -> Option<i64> {
        let named = (self.least..).zip(self.names).find(|(_, name)| text.eq_ignore_ascii_case(name));
        named.map_or_else(|| text.parse().ok(), |(number, _)| Some(number))
    }
}

/// Returns `true` for the name of a time zone. Go looks the name up as a file, so its case matters.
///
/// `Local` is not one: it would mean another zone on each control plane node.
pub(super) fn is_zone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name().is_none_or(|name_of_zone| name_of_zone == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        let valid =
            ["* * * * *", "*/5 1-3 ? jan,Feb MON-fri", "@hourly", "@every 1h30m", "5/15 * * * *", "1,,2 * * * 0"];
        for schedule in valid {
            assert!(is_schedule(schedule), "{schedule}");
        }
        let invalid = [
            "",
            "* * * *",
            "-1 * * * *",
            "1/2/3 * * * *",
            "1-2-3 * * * *",
            "*/0 * * * *",
            "60 * * * *",
            "* * 0 * *",
            "* * * foo *",
            "* * * * fri-mon",
            "@every 5",
            "@reboot",
        ];
        for schedule in invalid {
            assert!(!is_schedule(schedule), "{schedule}");
        }
    }

    #[test]
    fn zones_are_named_as_they_are_written() {
        for name in ["UTC", "Etc/UTC", "GMT", "Zulu", "EST", "US/Pacific", "Europe/Berlin", "Etc/GMT+1"] {
            assert!(is_zone(name), "{name}");
        }
        for name in ["", "Local", "utc", "Europe/berlin", "europe/Berlin", "Nowhere/Town", "+00:00"] {
            assert!(!is_zone(name), "{name}");
        }
    }
}
