//! Parses the schedules of `CronJob`s and the index lists of Jobs, and returns the errors of invalid ones.
//!
//! Behaviour: `github.com/robfig/cron/v3`, with its error messages.
//!
//! Both parsers only validate: nothing here computes the next time of a schedule. Messages go
//! verbatim into `FieldValueInvalid`, so wording and order of the checks are part of what a client
//! sees.
//!
//! A schedule is one of:
//!
//! ```text
//! */15 8-17 * jan-jun mon      five fields: minute, hour, day of month, month, day of week
//! @daily                       a descriptor
//! @every 1h30m                 an interval
//! TZ=Europe/Paris 0 8 * * *    any of these, in a time zone
//! ```

use kctl_apimachinery::duration;

/// A field of a schedule: its least and its greatest number, and the names of numbers.
struct Field {
    /// The least number, inclusive.
    least: i64,
    /// The greatest number, inclusive. It is also the end of `*` and of `5/10`.
    most: i64,
    /// Names for numbers, compared without case.
    names: &'static [(&'static str, i64)],
}

/// English names of three letters; longer names are errors.
const MONTHS: &[(&str, i64)] = &[
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
];

/// Days of the week. Sunday is 0; unlike some implementations of cron, 7 is out of range.
const DAYS: &[(&str, i64)] = &[("sun", 0), ("mon", 1), ("tue", 2), ("wed", 3), ("thu", 4), ("fri", 5), ("sat", 6)];
/// Minute, hour, day of month, month and day of week. Days are not checked against months: the 31st
/// of February is a valid schedule that never fires.
const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field { least: 1, most: 12, names: MONTHS },
    Field { least: 0, most: 6, names: DAYS },
];

/// Case-sensitive. `@reboot` is not one of them.
const DESCRIPTORS: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
/// Validates a cron schedule. The error is the message of `robfig/cron`.
///
/// `TZ=` and `CRON_TZ=` are parsed, though `CronJob` validation rejects them elsewhere in favour of
/// `spec.timeZone`. A zone without a schedule after it makes the library panic. Upstream recovers
/// and reports the panic's message as the error (`ParseCronScheduleWithPanicRecovery`); so does
/// this function.
///
/// Each field is a list of ranges with commas between them. Empty items are skipped, as
/// `strings.FieldsFunc` does: `1,,2` is valid.
pub(crate) fn check(schedule: &str) -> Result<(), String> {
    let mut schedule = schedule;
    if let Some(zoned) = schedule.strip_prefix("CRON_TZ=").or_else(|| schedule.strip_prefix("TZ=")) {
        let Some((zone, rest)) = zoned.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".into());
        };
        if !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        schedule = rest.trim();
    }
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        return Err(format!("expected exactly {} fields, found {found}: [{}]", FIELDS.len(), fields.join(" ")));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            check_range(range, field)?;
        }
    }
    Ok(())
}

/// Validates a schedule that begins with `@`: a known name, or `@every` with a duration of Go.
fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    let Some(every) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    if duration::parse(every).is_some() {
        return Ok(());
    }
    Err(format!("failed to parse duration {text}: time: invalid duration {every:?}"))
}

/// Validates one item of a field: `*`, `?`, a number or name, a range, each with an optional step.
///
/// | form | start to end |
/// |---|---|
/// | `*` | the whole field |
/// | `5` | only 5 |
/// | `5/10` | 5 to the greatest number, by 10 |
/// | `5-20/10` | 5 to 20, by 10 |
///
/// Only the first error is returned, in the order of the library's checks: hyphens, slashes,
/// numbers, bounds, step. A range must not wrap: `fri-mon` is an error.
fn check_range(text: &str, field: &Field) -> Result<(), String> {
    let (range, steps) = text.split_once('/').map_or((text, None), |(range, steps)| (range, Some(steps)));
    let parts: Vec<&str> = range.split('-').collect();
    let (start, mut end) = if ["*", "?"].contains(&parts[0]) {
        (field.least, field.most)
    } else {
        let start = number(parts[0], field.names)?;
        match parts.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number(end, field.names)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let mut step = 1;
    if let Some(steps) = steps {
        if steps.contains('/') {
            return Err(format!("too many slashes: {text}"));
        }
        step = number(steps, &[])?;
        if parts.len() == 1 {
            end = field.most;
        }
    }
    let Field { least, most, .. } = field;
    if start < *least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > *most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

/// Returns the number of a name or of decimal digits. Negative numbers have their own error. A minus sign rarely
/// arrives here, since a range splits at it.
fn number(text: &str, names: &[(&str, i64)]) -> Result<i64, String> {
    if let Some((_, number)) = names.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) {
        return Ok(*number);
    }
    let number: i64 = text.parse().map_err(|_| format!("failed to parse int from {text}: {}", not_an_integer(text)))?;
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(number)
}

/// Returns Go's `strconv.Atoi` error for a string that is not an integer.
fn not_an_integer(text: &str) -> String {
    format!("strconv.Atoi: parsing {text:?}: invalid syntax")
}

/// Returns `true` for the name of a time zone. Go looks the name up as a file, so its case matters.
///
/// `CronJob` rejects `Local` and the empty name itself, with other messages.
pub(crate) fn is_zone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name().is_none_or(|name_of_zone| name_of_zone == name))
}

/// Returns the number of indexes in a list such as `1,3-5`, here 4 (`validateIndexesFormat`).
///
/// The lists are fields of the status of an indexed Job. Indexes must be below `below`, the
/// completions, and strictly increasing over the whole list; neighbours need not be merged. The
/// empty list has 0 indexes. A range of one index, `3-3`, is valid.
pub(crate) fn indexes(list: &str, below: i64) -> Result<i64, String> {
    let (mut total, mut last): (i64, Option<i64>) = (0, None);
    for interval in list.split(',').filter(|_| !list.is_empty()) {
        let index = |text: &str| -> Result<i64, String> {
            text.parse::<i64>()
                .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))
                .and_then(|index| if index < below { Ok(index) } else { Err(format!("too large index: {text:?}")) })
        };
        let (first, end) = match interval.split('-').collect::<Vec<_>>().as_slice() {
            [index_text] => (index(index_text)?, index(index_text)?),
            [first, end] => (index(first)?, index(end)?),
            _ => {
                return Err(format!(
                    "the fragment {interval:?} violates the requirement that an index interval can have at most two \
                     parts separated by '-'"
                ));
            }
        };
        if let Some(previous) = last.filter(|previous| *previous >= first) {
            return Err(format!("non-increasing order, previous: {previous}, current: {first}"));
        }
        if first > end {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        let whole = [
            "* * * * *",
            "*/5 1-3 ? jan,Feb MON-fri",
            "@hourly",
            "@every 1h30m",
            "TZ=Etc/UTC 0 0 1 1 0",
            "5/15 * * * *",
        ];
        for schedule in whole {
            assert_eq!(check(schedule), Ok(()), "{schedule}");
        }
        for (schedule, why) in [
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("* * * foo *", "failed to parse int from foo: strconv.Atoi: parsing \"foo\": invalid syntax"),
            ("@every 5", "failed to parse duration @every 5: time: invalid duration \"5\""),
        ] {
            assert_eq!(check(schedule), Err(why.to_owned()), "{schedule}");
        }
    }

    #[test]
    fn zones_are_named_as_they_are_written() {
        for name in ["UTC", "Etc/UTC", "GMT", "Zulu", "EST", "US/Pacific", "Europe/Berlin", "Etc/GMT+1"] {
            assert!(is_zone(name), "{name}");
        }
        for name in ["utc", "Europe/berlin", "europe/Berlin", "Nowhere/Town", "+00:00"] {
            assert!(!is_zone(name), "{name}");
        }
    }

    #[test]
    fn lists_of_indexes_grow() {
        for (list, number) in [("", 0), ("0", 1), ("0,2-4", 4), ("9", 1)] {
            assert_eq!(indexes(list, 10), Ok(number), "{list}");
        }
        for list in ["3,1", "4-2", "10", "a", "1-2-3"] {
            assert!(indexes(list, 10).is_err(), "{list}");
        }
    }
}
