//! Parts of times, in UTC or in another zone. Upstream: `cel-go`, `common/types/timestamp.go`.

use chrono::{DateTime, Datelike, FixedOffset, Timelike};
use jiff::{Timestamp, tz::TimeZone};
use kube_cel::cel::Value as Cel;

use super::Said;

/// What a function says of a time; none if it is another function.
pub(super) fn called(name: &str, time: &DateTime<FixedOffset>, arguments: &[Cel]) -> Option<Said> {
    let of: fn(&DateTime<FixedOffset>) -> u32 = match name {
        "getFullYear" => |time| time.year().unsigned_abs(),
        "getMonth" => |time| time.month0(),
        "getDayOfYear" => |time| time.ordinal0(),
        "getDayOfMonth" => |time| time.day0(),
        "getDate" => |time| time.day(),
        "getDayOfWeek" => |time| time.weekday().num_days_from_sunday(),
        "getHours" => |time| time.hour(),
        "getMinutes" => |time| time.minute(),
        "getSeconds" => |time| time.second(),
        "getMilliseconds" => |time| time.timestamp_subsec_millis(),
        _ => return None,
    };
    let offset = match arguments {
        [] => Ok(0),
        [Cel::String(zone)] => offset(zone, time.timestamp()),
        _ => return None,
    };
    Some(offset.map(|seconds| {
        let zone = FixedOffset::east_opt(seconds).unwrap_or(*time.offset());
        Cel::Int(of(&time.with_timezone(&zone)).into())
    }))
}

/// The seconds that the clock of a zone is before UTC: of hours and minutes, or of the name of a zone.
fn offset(zone: &str, at: i64) -> Result<i32, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        if zone.is_empty() {
            return Ok(0);
        }
        let unknown = |_| format!("unknown time zone {zone}");
        let at = Timestamp::from_second(at).unwrap_or_default();
        return TimeZone::get(zone).map(|zone| zone.to_offset(at).seconds()).map_err(unknown);
    };
    let number = |text: &str| {
        let wrong = || format!("strconv.Atoi: parsing {}: invalid syntax", crate::go::quote(text));
        text.parse::<i32>().ok().filter(|number| number.abs() < 10_000).ok_or_else(wrong)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Ok(60 * (hours * 60 + if zone.starts_with('-') { -minutes } else { minutes }))
}
