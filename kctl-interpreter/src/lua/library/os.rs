//! `os.time` and `os.date`, the harmless part of the library, which Karmada opens alone
//! (`pkg/util/lifted/lua/oslib_safe.go`). Local time is UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use mlua::{MultiValue, Value};

use super::Library;
use super::args::{Args, as_number, single_result};
use crate::lua::number;

/// Adds both functions.
pub(super) fn register(library: &Library<'_>) -> mlua::Result<()> {
    library.add("os.time", time)?;
    library.add("os.date", date)
}

/// Seconds of a day without leap seconds.
const SECONDS_PER_DAY: i64 = 86_400;

/// The greatest distance from 1970 for which dates are computed, in seconds: some 200,000 years.
const SECONDS_MAX: i64 = 6_000_000_000_000;

/// The greatest field of a date. In seconds, that many years still fit into 64 bits.
const FIELD_MAX: i64 = 100_000_000_000;

/// Returns the seconds since 1970 of the wall clock.
fn now() -> i64 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// `os.time(table)`: returns seconds since 1970; without a table, of now. An absent hour is 12, as
/// in C.
fn time(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let seconds = if args.values.is_empty() {
        now()
    } else {
        let table = args.table(1)?;
        let field = |name: &str, default: i64| -> mlua::Result<i64> {
            let number = as_number(&table.raw_get(name)?);
            Ok(number.map_or(default, |number| number::truncate(number).clamp(-FIELD_MAX, FIELD_MAX)))
        };
        let days = days_from_civil(field("year", -1)?, field("month", -1)?, field("day", -1)?);
        days * SECONDS_PER_DAY + field("hour", 12)? * 3600 + field("min", 0)? * 60 + field("sec", 0)?
    };
    #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
    Ok(single_result(Value::Number(seconds as f64)))
}

/// Returns the days since 1970 of a date of the Gregorian calendar. Months beyond a year carry
/// over.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1;
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = ((months - 2).div_euclid(12), (months - 2).rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The fields of a moment in UTC.
struct Moment {
    /// The year of the Gregorian calendar.
    year: i64,
    /// The month, from 1.
    month: i64,
    /// The day of the month, from 1.
    day: i64,
    /// The hour, from 0.
    hour: i64,
    /// The minute, from 0.
    minute: i64,
    /// The second, from 0.
    second: i64,
    /// The day of the week, from 0 for Sunday.
    weekday: i64,
}

impl Moment {
    /// Returns the fields of seconds since 1970, clamped to [`SECONDS_MAX`].
    fn from_seconds(seconds: i64) -> Self {
        let seconds = seconds.clamp(-SECONDS_MAX, SECONDS_MAX);
        let (days, rest) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7),
        }
    }

    /// Returns the replacement of `%verb`; `None` for an unknown verb. The table is gopher-lua's,
    /// whose `%a` is `mon` on every day.
    fn field(&self, verb: char) -> Option<String> {
        let Self { year, month, day, hour, minute, second, weekday } = self;
        let hour_12 = (hour + 11) % 12 + 1;
        let month_name = MONTHS[usize::try_from(month - 1).unwrap_or_default()];
        let short_year = year.rem_euclid(100);
        Some(match verb {
            'a' => "mon".to_owned(),
            'A' => WEEKDAYS[usize::try_from(*weekday).unwrap_or_default()].to_owned(),
            'b' => month_name[..3].to_owned(),
            'B' => month_name.to_owned(),
            'c' => format!("{day:02} {} {short_year:02} {hour:02}:{minute:02} UTC", &month_name[..3]),
            'd' => format!("{day:02}"),
            'F' => format!("{year:04}-{month:02}-{day:02}"),
            'H' => format!("{hour:02}"),
            'I' => format!("{hour_12:02}"),
            'm' => format!("{month:02}"),
            'M' => format!("{minute:02}"),
            'p' => if *hour < 12 { "AM" } else { "PM" }.to_owned(),
            'P' => if *hour < 12 { "am" } else { "pm" }.to_owned(),
            'S' => format!("{second:02}"),
            'w' => weekday.to_string(),
            'x' => format!("{hour:02}/{minute:02}/{second:02}"),
            'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'y' => format!("{short_year:02}"),
            'Y' => format!("{year:04}"),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            _ => return None,
        })
    }
}

/// English names of the days of the week.
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `os.date(format, seconds)`: returns a string, or for `*t` a table. Unknown verbs are left as they are.
fn date(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let format = if args.values.is_empty() { "%c".to_owned() } else { args.bounded_string(1)?.to_string_lossy() };
    let format = format.trim_start_matches('!');
    let seconds = if args.values.len() > 1 { args.int(2)? } else { now() };
    let moment = Moment::from_seconds(seconds);
    if format.starts_with("*t") {
        return fields(args, &moment);
    }
    let mut text = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        match (char, chars.as_str().chars().next()) {
            ('%', Some(verb)) => {
                chars.next();
                match moment.field(verb) {
                    Some(field) => text.push_str(&field),
                    None if verb == '%' => text.push('%'),
                    None => text.extend(['%', verb]),
                }
            }
            _ => text.push(char),
        }
    }
    args.text(&text)
}

/// Returns the table of `*t`.
fn fields(args: &Args<'_>, moment: &Moment) -> mlua::Result<MultiValue> {
    let table = args.lua.create_table()?;
    for (name, value) in [
        ("year", moment.year),
        ("month", moment.month),
        ("day", moment.day),
        ("hour", moment.hour),
        ("min", moment.minute),
        ("sec", moment.second),
        ("wday", moment.weekday + 1),
        // gopher-lua leaves the day of the year at 0.
        ("yday", 0),
    ] {
        table.raw_set(name, value)?;
    }
    table.raw_set("isdst", false)?;
    Ok(single_result(Value::Table(table)))
}

#[cfg(test)]
mod tests {
    use super::{Moment, days_from_civil};

    #[test]
    fn dates_and_seconds_are_each_others_inverse() {
        for seconds in (-5_000_000_000_i64..20_000_000_000).step_by(86_400 * 13 + 3601) {
            let moment = Moment::from_seconds(seconds);
            let days = days_from_civil(moment.year, moment.month, moment.day);
            assert_eq!(days * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second, seconds);
        }
    }

    #[test]
    fn month_beyond_the_year_carries_over() {
        assert_eq!(days_from_civil(2023, 14, 1), days_from_civil(2024, 2, 1));
        assert_eq!(days_from_civil(2024, 2, 30), days_from_civil(2024, 3, 1));
        assert_eq!(days_from_civil(1970, 1, 1), 0);
    }
}
