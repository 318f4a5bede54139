//! Parts of times, in UTC or in another zone, and arithmetic with times. Upstream: `cel-go`, `common/types/timestamp.go` and
//! `common/types/overflow.go`.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, TimeDelta, Timelike};
use jiff::{Timestamp, tz::TimeZone};
use kube_cel::cel::Value as Cel;

use super::{OVERFLOW, Said, operators};

/// The seconds since 1970 of the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// What is added to or taken from times; none of other values.
pub(super) fn arithmetic(name: &str, one: &Cel, other: &Cel) -> Option<Said> {
    let length = |nanoseconds: Option<i64>| {
        nanoseconds.map(|nanoseconds| Cel::Duration(TimeDelta::nanoseconds(nanoseconds))).ok_or(OVERFLOW.to_owned())
    };
    Some(match (name, one, other) {
        ("_+_" | "_-_", Cel::Duration(one), Cel::Duration(other)) => {
            let both = one.num_nanoseconds().zip(other.num_nanoseconds());
            length(both.and_then(|(one, other)| match operators::of_integers(name, one, other) {
                Ok(Cel::Int(nanoseconds)) => Some(nanoseconds),
                _ => None,
            }))
        }
        ("_+_", Cel::Duration(length), Cel::Timestamp(time)) | ("_+_", Cel::Timestamp(time), Cel::Duration(length)) => {
            moved(time.checked_add_signed(*length))
        }
        ("_-_", Cel::Timestamp(time), Cel::Duration(length)) => moved(time.checked_sub_signed(*length)),
        ("_-_", Cel::Timestamp(one), Cel::Timestamp(other)) => {
            length(one.signed_duration_since(other).num_nanoseconds())
        }
        _ => return None,
    })
}

fn moved(time: Option<DateTime<FixedOffset>>) -> Said {
    let time = time.filter(|time| SECONDS.contains(&time.timestamp()));
    time.map(Cel::Timestamp).ok_or(OVERFLOW.to_owned())
}

/// What a function says of a time; none if it is another function.
pub(super) fn called(name: &str, time: &DateTime<FixedOffset>, arguments: &[Cel]) -> Option<Said> {
    let of: fn(&NaiveDateTime) -> u32 = match name {
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
        // The clock of a zone may be more than a day before that of UTC.
        let time = time.naive_utc();
        let local = time.checked_add_signed(TimeDelta::seconds(seconds.into())).unwrap_or(time);
        Cel::Int(of(&local).into())
    }))
}

/// The seconds that the clock of a zone is before UTC: of hours and minutes, or of the name of a zone.
fn offset(zone: &str, at: i64) -> Result<i32, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        // That of the machine is UTC's, as on machines that run API servers.
        if matches!(zone, "" | "UTC" | "Local") {
            return Ok(0);
        }
        // Names of zones are those of files: `utc` is unknown.
        let found = TimeZone::get(zone).ok().filter(|_| !zone.eq_ignore_ascii_case("UTC"));
        let at = Timestamp::from_second(at).unwrap_or_default();
        return found.map(|zone| zone.to_offset(at).seconds()).ok_or_else(|| format!("unknown time zone {zone:?}"));
    };
    let number = |text: &str| {
        let invalid = || format!("time zone must be a name or an offset such as 02:00, found {zone:?}");
        text.parse::<i32>().ok().filter(|number| number.abs() < 10_000).ok_or_else(invalid)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Ok(60 * (hours * 60 + if zone.starts_with('-') { -minutes } else { minutes }))
}
