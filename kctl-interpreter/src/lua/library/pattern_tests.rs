//! Patterns against the manual of Lua 5.1, their errors and their cost.

use super::{Anchors, Capture, PatternError, find};

/// Returns the captures, or the whole match where there are none, as text; `@n` is a position from 1.
fn captures(subject: &str, pattern: &str) -> Result<Option<Vec<String>>, PatternError<()>> {
    let found = find(subject.as_bytes(), pattern.as_bytes(), 0, Anchors::Search, |_| Ok(()))?;
    Ok(found.map(|found| {
        let mut captures = found.captures;
        if captures.is_empty() {
            captures.push(Capture::Span(found.start, found.end));
        }
        captures
            .into_iter()
            .map(|capture| match capture {
                Capture::Span(from, to) => subject[from..to].to_owned(),
                Capture::Position(at) => format!("@{}", at + 1),
                Capture::Open(_) => "open".to_owned(),
            })
            .collect()
    }))
}

#[test]
fn patterns_match_as_the_manual_says() {
    for (subject, pattern, expected) in [
        ("hello", "l+", Some(vec!["ll"])),
        ("hello", "xyz", None),
        ("hello", "", Some(vec![""])),
        ("key = value", "(%w+)%s*=%s*(%w+)", Some(vec!["key", "value"])),
        ("hello", "^h", Some(vec!["h"])),
        ("hello", "^e", None),
        ("hello", "o$", Some(vec!["o"])),
        ("a$b", "a$b", Some(vec!["a$b"])),
        ("hello", "()ll()", Some(vec!["@3", "@5"])),
        ("f(a(b)c)d", "%b()", Some(vec!["(a(b)c)"])),
        ("THE (quick) fox", "%f[%a]%a+%f[%A]", Some(vec!["THE"])),
        ("abc123", "[^%d]+", Some(vec!["abc"])),
        ("x-y", "[a%-z]+", Some(vec!["-"])),
        ("x]y", "[]]", Some(vec!["]"])),
        ("a-", "[a-]+", Some(vec!["a-"])),
        ("\"it's\"", "([\"'])(.-)%1", Some(vec!["\"", "it's"])),
        ("aXb", "%u", Some(vec!["X"])),
        ("abc", "a?b?c?d?", Some(vec!["abc"])),
        ("<<a>>", "<(.-)>", Some(vec!["<a"])),
        ("  trim  ", "^%s*(.-)%s*$", Some(vec!["trim"])),
        ("100m", "^(%d+)m?$", Some(vec!["100"])),
        ("aaa", "a-b", None),
        ("a.b", "a%.b", Some(vec!["a.b"])),
        ("ab", "(a)(b)?", None),
        ("abab", "(ab)%1", Some(vec!["ab"])),
        ("ac", "(a)(b?)c", Some(vec!["a", ""])),
        ("a\u{b}b", "%s", Some(vec!["\u{b}"])),
    ] {
        let expected = expected.map(|texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(captures(subject, pattern), Ok(expected), "{subject:?} {pattern:?}");
    }
}

#[test]
fn malformed_patterns_are_errors() {
    for (pattern, message) in [
        ("%", "malformed pattern (ends with '%')"),
        ("[a", "malformed pattern (missing ']')"),
        ("[", "malformed pattern (missing ']')"),
        ("[]", "malformed pattern (missing ']')"),
        ("[a%", "malformed pattern (missing ']')"),
        ("%b", "unbalanced pattern"),
        ("%ba", "unbalanced pattern"),
        ("%f", "missing '[' after '%f' in pattern"),
        ("(a", "unfinished capture"),
        ("a)", "invalid pattern capture"),
        ("%1", "invalid capture index"),
        ("%0", "invalid capture index"),
        ("(%1)", "invalid capture index"),
    ] {
        assert_eq!(captures("aaa", pattern), Err(PatternError::Malformed(message)), "{pattern:?}");
    }
    assert_eq!(captures("a", &"()".repeat(33)), Err(PatternError::Malformed("too many captures")));
    assert_eq!(captures("a", &"a?".repeat(300)).map(|_| ()), Ok(()), "an optional item that fails is no level");
    assert_eq!(captures(&"a".repeat(300), &"a?".repeat(300)), Err(PatternError::Malformed("pattern too complex")));
}

#[test]
fn a_search_stops_when_its_budget_is_spent() {
    let subject = "a".repeat(40);
    for pattern in ["a*".repeat(20) + "b", "(.-)".repeat(20) + "b", format!("[{}]*b", "x".repeat(5000))] {
        let mut left = 100_000_u64;
        let charge = |steps: u64| {
            left = left.checked_sub(steps).ok_or("spent")?;
            Ok(())
        };
        let found = find(subject.as_bytes(), pattern.as_bytes(), 0, Anchors::Search, charge);
        assert_eq!(found, Err(PatternError::Stopped("spent")), "{pattern:.20}");
    }
}

#[test]
fn a_caret_is_a_character_for_the_steps_of_gmatch() {
    let found = find(b"a^b", b"^b", 0, Anchors::Iterate, |_| Ok::<(), ()>(()));
    assert_eq!(found.map(|found| found.map(|found| (found.start, found.end))), Ok(Some((1, 3))));
}
