//! Patterns against the manual of Lua 5.1 and against gopher-lua where that differs, their errors and their cost.

use super::{Capture, PatternError, find};

/// Returns the captures, or the whole match if the pattern has no captures, as strings; `@n` is a
/// position from 1.
fn captures(subject: &str, pattern: &str) -> Result<Option<Vec<String>>, PatternError<()>> {
    let found = find(subject.as_bytes(), pattern.as_bytes(), 0, |_| Ok(()))?;
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
            })
            .collect()
    }))
}

#[test]
fn patterns_match_as_in_the_manual() {
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
fn odd_patterns_match_as_in_gopher_lua() {
    for (subject, pattern, expected) in [
        // A range needs a character at both ends: after `%w` it matches nothing, and a hyphen at the end is a literal.
        ("a-b_c", "[%w-_]+", None),
        ("a-b_c.", "[%w-_.]+", Some(vec!["."])),
        ("a-b_c", "[%w_-]+", Some(vec!["a-b_c"])),
        ("m", "[%a-z]", None),
        ("b-9", "[a-c-9]", None),
        ("a-", "[a--]+", Some(vec!["a-"])),
        ("-", "[-a]", Some(vec!["-"])),
        // gopher-lua does not know `%f`.
        ("THE fox", "%f[%a]%a+", Some(vec!["fox"])),
        ("f(x", "%f[(]", Some(vec!["f("])),
        // A `%` item at the end of the pattern that lacks a character matches nothing.
        ("a%", "%", None),
        ("bb", "%b", None),
        ("bxb", "%bx", None),
        ("xax", "%bxx", Some(vec!["xax"])),
        // A quantifier without a class in front of it is a literal.
        ("a*", "*", Some(vec!["*"])),
        ("ab+", "(a)b()+", Some(vec!["a", "@3"])),
        ("(a$)", "(a$)", Some(vec!["a$"])),
        ("a]", "a]", Some(vec!["a]"])),
        ("x%", "x%%", Some(vec!["x%"])),
        ("aa", "()%1", Some(vec!["@1"])),
        ("", "^$", Some(vec![""])),
    ] {
        let expected = expected.map(|texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(captures(subject, pattern), Ok(expected), "{subject:?} {pattern:?}");
    }
}

#[test]
fn malformed_patterns_are_errors() {
    let malformed = |message: &str| Err(PatternError::Malformed(message.to_owned()));
    for (pattern, message) in [
        ("[a", "unexpected EOS at EOS"),
        ("[", "unexpected EOS at EOS"),
        ("[]", "unexpected EOS at EOS"),
        ("[a%", "unexpected EOS at EOS"),
        ("(a", "unfinished capture at EOS"),
        ("(()", "unfinished capture at EOS"),
        ("a)", "invalid ')' at 1"),
        // These errors are reported although the first character already fails to match.
        ("x[", "unexpected EOS at EOS"),
        ("x%0", "invalid capture index at 2"),
        ("%1", "invalid capture index"),
        ("(%1)", "invalid capture index"),
    ] {
        assert_eq!(captures("aaa", pattern), malformed(message), "{pattern:?}");
    }
    assert_eq!(captures("aaa", "x%1"), Ok(None), "a capture that is not reached is not missed");
    assert_eq!(captures("a", &"()".repeat(33)), malformed("too many captures"));
    assert_eq!(captures("a", &"()".repeat(32)).map(|found| found.map(|found| found.len())), Ok(Some(32)));
    assert_eq!(captures("a", &"a?".repeat(300)).map(|_| ()), Ok(()), "an optional item that fails is not a level");
    assert_eq!(captures(&"a".repeat(300), &"a?".repeat(300)), malformed("pattern too complex"));
    assert_eq!(captures("a", &"a".repeat(10_000)), Ok(None));
    assert_eq!(captures("a", &"a".repeat(10_001)), malformed("pattern too complex"));
}

#[test]
fn search_stops_when_its_budget_is_spent() {
    let subject = "a".repeat(40);
    for pattern in ["a*".repeat(20) + "b", "(.-)".repeat(20) + "b", format!("[{}]*b", "x".repeat(5000))] {
        let mut left = 100_000_u64;
        let charge = |steps: u64| {
            left = left.checked_sub(steps).ok_or("spent")?;
            Ok(())
        };
        let found = find(subject.as_bytes(), pattern.as_bytes(), 0, charge);
        assert_eq!(found, Err(PatternError::Stopped("spent")), "{pattern:.20}");
    }
}

#[test]
fn caret_anchors_where_the_search_starts() {
    let found = |start| find(b"aab", b"^a", start, |_| Ok::<(), ()>(()));
    assert_eq!(found(1).map(|found| found.map(|found| (found.start, found.end))), Ok(Some((1, 2))));
    assert_eq!(found(2), Ok(None));
}
