//! Parts of times, in UTC or in another zone, and arithmetic with times. Upstream: `cel-go`, `common/types/timestamp.go` and
//! `common/types/overflow.go`.
//!
//! Accessors take an optional time zone; without one they are in UTC, regardless of the offset in the
//! timestamp's string.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, TimeDelta, Timelike};
use jiff::{Timestamp, tz::TimeZone};
use kctl_apimachinery::time::SECONDS;
use kube_cel::cel::Value as Cel;

use super::{EvalResult, OVERFLOW};

/// Adds or subtracts durations and timestamps; `None` for other operand types. Durations are bounded to 64-bit
/// nanoseconds, as in `cel-go`.
///
/// The difference of timestamps is a duration, and a timestamp minus a duration is a timestamp. Both overflow with an
/// error.
pub(super) fn arithmetic(name: &str, left: &Cel, right: &Cel) -> Option<EvalResult> {
    let length = |nanoseconds: Option<i64>| {
        nanoseconds.map(|nanoseconds| Cel::Duration(TimeDelta::nanoseconds(nanoseconds))).ok_or_else(|| OVERFLOW.into())
    };
    Some(match (name, left, right) {
        ("_+_" | "_-_", Cel::Duration(left), Cel::Duration(right)) => {
            let both = left.num_nanoseconds().zip(right.num_nanoseconds());
            let arithmetic = if name == "_+_" { i64::checked_add } else { i64::checked_sub };
            length(both.and_then(|(left, right)| arithmetic(left, right)))
        }
        ("_+_", Cel::Duration(length), Cel::Timestamp(time)) | ("_+_", Cel::Timestamp(time), Cel::Duration(length)) => {
            check_range(time.checked_add_signed(*length))
        }
        ("_-_", Cel::Timestamp(time), Cel::Duration(length)) => check_range(time.checked_sub_signed(*length)),
        ("_-_", Cel::Timestamp(left), Cel::Timestamp(right)) => {
            length(left.signed_duration_since(right).num_nanoseconds())
        }
        _ => return None,
    })
}

/// Returns a shifted timestamp, or the overflow error if it leaves the years 1 to 9999 or what chrono can represent.
fn check_range(time: Option<DateTime<FixedOffset>>) -> EvalResult {
    let time = time.filter(|time| SECONDS.contains(&time.timestamp()));
    time.map(Cel::Timestamp).ok_or_else(|| OVERFLOW.into())
}

/// Returns the result of a timestamp accessor such as `getHours`; `None` for other functions.
///
/// Months, days of the year and `getDayOfMonth` start at 0, `getDate` at 1. Sunday is the first day
/// of the week, with the number 0.
pub(super) fn call(name: &str, time: &DateTime<FixedOffset>, arguments: &[Cel]) -> Option<EvalResult> {
    let component: fn(&NaiveDateTime) -> u32 = match name {
        "getFullYear" => |time| time.year().unsigned_abs(),
        "getMonth" => |time| time.month0(),
        "getDayOfYear" => |time| time.ordinal0(),
        "getDayOfMonth" => |time| time.day0(),
        "getDate" => |time| time.day(),
        "getDayOfWeek" => |time| time.weekday().num_days_from_sunday(),
        "getHours" => |time| time.hour(),
        "getMinutes" => |time| time.minute(),
        "getSeconds" => |time| time.second(),
        "getMilliseconds" => |time| time.nanosecond() / 1_000_000,
        _ => return None,
    };
    let offset = match arguments {
        [] => Ok(0),
        [Cel::String(zone)] => offset(zone, time.timestamp()),
        _ => return None,
    };
    Some(offset.map(|seconds| {
        // An offset may exceed a day; at the bounds of chrono the time is left in UTC.
        let time = time.naive_utc();
        let local = time.checked_add_signed(TimeDelta::seconds(seconds.into())).unwrap_or(time);
        Cel::Int(component(&local).into())
    }))
}

/// Returns the UTC offset of a time zone in seconds at the Unix time `time`. The zone is an offset such as `02:00`,
/// whose minutes take the sign of the hours, or an IANA name.
fn offset(zone: &str, time: i64) -> EvalResult<i32> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        // `Local` is UTC, as on hosts that run API servers.
        if matches!(zone, "" | "UTC" | "Local") {
            return Ok(0);
        }
        // Zone names are case-sensitive, because Go looks them up as file names: `utc` is unknown. jiff ignores case.
        let found = TimeZone::get(zone).ok().filter(|found| found.iana_name() == Some(zone));
        let time = Timestamp::from_second(time).unwrap_or_default();
        return found
            .map(|zone| zone.to_offset(time).seconds())
            .ok_or_else(|| format!("unknown time zone {zone:?}").into());
    };
    let number = |text: &str| {
        let invalid = || format!("time zone must be a name or an offset such as 02:00, found {zone:?}");
        text.parse::<i32>().ok().filter(|number| number.abs() < 10_000).ok_or_else(invalid)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Ok(60 * (hours * 60 + if zone.starts_with('-') { -minutes } else { minutes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_names_are_case_sensitive() {
        for (zone, expected) in [
            ("Europe/Berlin", Some(3600)),
            ("europe/berlin", None),
            ("EUROPE/BERLIN", None),
            ("Etc/UTC", Some(0)),
            ("utc", None),
            ("UTC", Some(0)),
            ("-02:30", Some(-9000)),
        ] {
            assert_eq!(offset(zone, 0).ok(), expected, "{zone}");
        }
    }
}
