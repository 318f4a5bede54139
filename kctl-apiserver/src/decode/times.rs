//! Times as Go reads them (`Parse` of `time/format.go`): what it does not take, and what it says of that.

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// With seconds, and a fraction where there is one.
    Seconds,
    /// With six digits behind the seconds.
    Micros,
}

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// What is wrong with a text, as a part of it: what is left of the text, and what was to come there.
enum Wrong<'a> {
    Part(&'a str, &'static str),
    Range(&'static str),
    Extra(&'a str),
}

/// Nothing for a time.
pub(super) fn problem(text: &str, layout: Layout) -> Option<String> {
    let value = quoted(text);
    Some(match read(text, layout).err()? {
        Wrong::Part(rest, part) => {
            let layout = if layout == Layout::Micros { MICROS } else { SECONDS };
            format!("parsing time {value} as \"{layout}\": cannot parse {} as \"{part}\"", quoted(rest))
        }
        Wrong::Range(what) => format!("parsing time {value}: {what} out of range"),
        Wrong::Extra(rest) => format!("parsing time {value}: extra text: {}", quoted(rest)),
    })
}

fn read(text: &str, layout: Layout) -> Result<(), Wrong<'_>> {
    let (year, rest) = digits(text, 4).ok_or(Wrong::Part(text, "2006"))?;
    let (month, rest) = ranged(skip(rest, "-")?, "01", 1..=12, "month")?;
    let rest = skip(rest, "-")?;
    let (day, rest) = digits(rest, 2).ok_or(Wrong::Part(rest, "02"))?;
    let rest = skip(rest, "T")?;
    // Of all parts the hour alone may have one digit.
    let hour = digits(rest, 2).or_else(|| digits(rest, 1)).ok_or(Wrong::Part(rest, "15"))?;
    let rest = if hour.0 < 24 { hour.1 } else { return Err(Wrong::Range("hour")) };
    let (_, rest) = ranged(skip(rest, ":")?, "04", 0..=59, "minute")?;
    let (_, rest) = ranged(skip(rest, ":")?, "05", 0..=59, "second")?;
    let rest = zone(fraction(rest, layout)?)?;
    if !rest.is_empty() {
        return Err(Wrong::Extra(rest));
    }
    if (1..=days(year, month)).contains(&day) { Ok(()) } else { Err(Wrong::Range("day")) }
}

/// A number of so many digits, and what is behind it.
fn digits(text: &str, n_digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(n_digits)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| (number.parse().unwrap_or_default(), rest))
}

fn ranged<'a>(
    text: &'a str,
    part: &'static str,
    range: std::ops::RangeInclusive<u32>,
    what: &'static str,
) -> Result<(u32, &'a str), Wrong<'a>> {
    match digits(text, 2) {
        None => Err(Wrong::Part(text, part)),
        Some((number, _)) if !range.contains(&number) => Err(Wrong::Range(what)),
        Some(read) => Ok(read),
    }
}

fn skip<'a>(text: &'a str, mark: &'static str) -> Result<&'a str, Wrong<'a>> {
    text.strip_prefix(mark).ok_or(Wrong::Part(text, mark))
}

fn fraction(text: &str, layout: Layout) -> Result<&str, Wrong<'_>> {
    let after = text.strip_prefix(['.', ',']);
    match layout {
        Layout::Micros => {
            let read = after.and_then(|after| digits(after, 6));
            read.map(|(_, rest)| rest).ok_or(Wrong::Part(text, ".000000"))
        }
        Layout::Seconds => Ok(match after.map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit())) {
            // A mark with no digit behind it is none of a fraction.
            Some(rest) if rest.len() + 1 < text.len() => rest,
            _ => text,
        }),
    }
}

fn zone(text: &str) -> Result<&str, Wrong<'_>> {
    const PART: &str = "Z07:00";
    if let Some(rest) = text.strip_prefix('Z') {
        return Ok(rest);
    }
    let wrong = || Wrong::Part(text, PART);
    let (hours, rest) = text.strip_prefix(['+', '-']).and_then(|rest| digits(rest, 2)).ok_or_else(wrong)?;
    let (minutes, rest) = rest.strip_prefix(':').and_then(|rest| digits(rest, 2)).ok_or_else(wrong)?;
    match (hours, minutes) {
        (25.., _) => Err(Wrong::Range("time zone offset hour")),
        (_, 61..) => Err(Wrong::Range("time zone offset minute")),
        _ => Ok(rest),
    }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Quotes text as the package of times does: byte by byte where it is not plain.
fn quoted(text: &str) -> String {
    let mut shown = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => shown.extend(['\\', c]),
            ' '..='\u{7f}' => shown.push(c),
            _ => c.to_string().bytes().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}"))),
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, why: &str) {
        assert_eq!(problem(text, Layout::Seconds).as_deref(), Some(format!("parsing time {why}").as_str()), "{text}");
    }

    #[test]
    fn times_are_read_as_go_reads_them() {
        for text in ["2020-01-01T00:00:00Z", "2020-02-29T23:59:59.5+01:00", "2020-01-01T00:00:00,5Z"] {
            assert_eq!(problem(text, Layout::Seconds), None, "{text}");
        }
        let whole = "2020-01-01T00:00:00.000001Z";
        assert_eq!(problem(whole, Layout::Micros), None);
        for text in ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.1Z", "2020-01-01T00:00:00.123456789Z"] {
            assert!(problem(text, Layout::Micros).is_some(), "{text}");
        }
    }

    #[test]
    fn the_place_that_is_wrong_is_named() {
        let part = |text: &str, rest: &str, part: &str| {
            check(text, &format!("\"{text}\" as \"{SECONDS}\": cannot parse \"{rest}\" as \"{part}\""));
        };
        part("x", "x", "2006");
        part("2020-01-01", "", "T");
        part("2020-01-01T", "", "15");
        part("2020-01-01T00:00", "", ":");
        part("2020-01-01T00:00:00", "", "Z07:00");
        part("20200-01-01T00:00:00Z", "0-01-01T00:00:00Z", "-");
        part("2020-1-1T00:00:00Z", "1-1T00:00:00Z", "01");
        part("2020-01-01T00:00:00+0100", "+0100", "Z07:00");
        check("2020-13-01T00:00:00Z", "\"2020-13-01T00:00:00Z\": month out of range");
        check("2020-02-30T00:00:00Z", "\"2020-02-30T00:00:00Z\": day out of range");
        check("2020-01-01T25:00:00Z", "\"2020-01-01T25:00:00Z\": hour out of range");
        check("2020-01-01T00:00:00Zx", "\"2020-01-01T00:00:00Zx\": extra text: \"x\"");
        check("é", &format!(r#""\xc3\xa9" as "{SECONDS}": cannot parse "\xc3\xa9" as "2006""#));
    }
}
