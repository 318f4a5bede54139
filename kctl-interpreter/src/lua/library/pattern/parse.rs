//! Parses a pattern into steps, as gopher-lua does (`parsePattern` in `pm/pm.go`).
//!
//! It differs from the C library for odd patterns:
//!
//! - `%f` is the letter `f`.
//! - A range that does not begin and end with a character, such as in `[%w-_]`, has no members.
//! - Every error of a pattern is reported before anything is matched.

/// The maximum number of steps of a pattern, which each take some tens of bytes.
const STEPS_MAX: usize = 10_000;

/// The maximum number of captures of a pattern, as in the C library.
const CAPTURES_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// Set if it begins with `^`.
    pub(super) at_start: bool,
    /// Set if it ends with `$`.
    pub(super) at_end: bool,
    /// The steps, in the order in which they match.
    pub(super) steps: Vec<Step>,
    pub(super) n_captures: usize,
}

#[derive(Debug)]
pub(super) enum Step {
    /// Matches one byte.
    One(Class),
    /// Matches a number of bytes of a class.
    Repeat(Class, Repeat),
    /// Begins the capture with this index.
    Open(usize),
    /// Ends the capture with this index.
    Close(usize),
    /// Captures the current position.
    Position(usize),
    /// `%b` with its opening and closing byte; `None` if the pattern ends before.
    Balance(Option<u8>, Option<u8>),
    /// Matches the bytes of a capture; `None` if the capture is not closed at this point.
    Again(Option<usize>),
}

/// The quantifier of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// `?`
    Optional,
    /// `*`, and `+` with 1: the minimum number of bytes.
    Longest(usize),
    /// `-`
    Shortest,
}

/// A set of bytes.
#[derive(Debug)]
pub(super) enum Class {
    /// `.`: every byte.
    Any,
    /// One byte.
    Byte(u8),
    /// `%` and a letter. A letter without a class is itself, and `None` is the end of the pattern,
    /// which matches nothing.
    Named(Option<u8>),
    /// A range in a set, both ends included.
    Range(u8, u8),
    /// `[…]`, or `[^…]` if it is negated.
    Set { is_negated: bool, members: Vec<Class> },
    /// A malformed range, which has no members.
    Nothing,
}

impl Class {
    pub(super) fn has(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Byte(expected) => *expected == byte,
            Self::Named(name) => name.is_some_and(|name| in_class(byte, name)),
            Self::Range(from, to) => (*from..=*to).contains(&byte),
            Self::Set { is_negated, members } => members.iter().any(|member| member.has(byte)) != *is_negated,
            Self::Nothing => false,
        }
    }

    /// Returns the cost of [`Class::has`], in steps.
    pub(super) fn cost(&self) -> usize {
        if let Self::Set { members, .. } = self { 1 + members.len() } else { 1 }
    }
}

/// Returns `true` if the byte is in the class `%class`, in the C locale. An upper-case letter is
/// the complement.
fn in_class(byte: u8, class: u8) -> bool {
    let is_member = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_member != class.is_ascii_uppercase()
}

/// Parses a pattern.
///
/// # Errors
/// The problem and its position, in the words of gopher-lua.
pub(super) fn parse(text: &[u8]) -> Result<Pattern, String> {
    let mut pattern = Pattern::default();
    let mut rest = Rest { text, at: 0 };
    pattern.at_start = rest.skip(b'^');
    let mut open: Vec<usize> = Vec::new();
    while let Some(byte) = rest.next() {
        if pattern.steps.len() >= STEPS_MAX {
            return Err("pattern too complex".to_owned());
        }
        let step = match byte {
            b'(' => {
                let capture = pattern.capture()?;
                if rest.skip(b')') {
                    Step::Position(capture)
                } else {
                    open.push(capture);
                    Step::Open(capture)
                }
            }
            b')' => Step::Close(open.pop().ok_or_else(|| rest.error("invalid ')'"))?),
            b'%' => parse_escape(&mut rest, &open, pattern.n_captures)?,
            b'*' | b'+' | b'-' | b'?' => pattern.parse_quantifier(byte),
            b'$' if open.is_empty() && rest.is_at_end() => {
                pattern.at_end = true;
                continue;
            }
            b'.' => Step::One(Class::Any),
            b'[' => Step::One(parse_set(&mut rest)?),
            byte => Step::One(Class::Byte(byte)),
        };
        pattern.steps.push(step);
    }
    if open.is_empty() { Ok(pattern) } else { Err("unfinished capture at EOS".to_owned()) }
}

impl Pattern {
    /// Returns the index of a new capture.
    fn capture(&mut self) -> Result<usize, String> {
        if self.n_captures >= CAPTURES_MAX {
            return Err("too many captures".to_owned());
        }
        self.n_captures += 1;
        Ok(self.n_captures - 1)
    }

    /// Returns the step of a quantifier, which takes the class in front of it. Without one it is an
    /// ordinary character.
    fn parse_quantifier(&mut self, quantifier: u8) -> Step {
        let repeat = match quantifier {
            b'*' => Repeat::Longest(0),
            b'+' => Repeat::Longest(1),
            b'-' => Repeat::Shortest,
            _ => Repeat::Optional,
        };
        match self.steps.pop() {
            Some(Step::One(class)) => return Step::Repeat(class, repeat),
            Some(other) => self.steps.push(other),
            None => {}
        }
        Step::One(Class::Byte(quantifier))
    }
}

/// Parses the part after a `%` outside of a set.
fn parse_escape(rest: &mut Rest<'_>, open: &[usize], n_captures: usize) -> Result<Step, String> {
    Ok(match rest.next() {
        Some(b'0') => return Err(rest.error("invalid capture index")),
        Some(digit @ b'1'..=b'9') => {
            let capture = usize::from(digit - b'1');
            Step::Again((capture < n_captures && !open.contains(&capture)).then_some(capture))
        }
        Some(b'b') => Step::Balance(rest.next(), rest.next()),
        name => Step::One(Class::Named(name)),
    })
}

/// Parses a set after its `[`.
fn parse_set(rest: &mut Rest<'_>) -> Result<Class, String> {
    let is_negated = rest.skip(b'^');
    let mut members: Vec<Class> = Vec::new();
    let mut is_range = false;
    loop {
        let member = match rest.next() {
            None => return Err("unexpected EOS at EOS".to_owned()),
            Some(b']') if !members.is_empty() => break,
            Some(b'-') if !members.is_empty() => {
                is_range = true;
                continue;
            }
            Some(b'%') => Class::Named(rest.next()),
            Some(byte) => Class::Byte(byte),
        };
        if is_range && let Some(first) = members.pop() {
            members.push(match (first, member) {
                (Class::Byte(from), Class::Byte(to)) => Class::Range(from, to),
                _ => Class::Nothing,
            });
        } else {
            members.push(member);
        }
        is_range = false;
    }
    if is_range {
        members.push(Class::Byte(b'-'));
    }
    Ok(Class::Set { is_negated, members })
}

/// The unread part of a pattern.
struct Rest<'a> {
    text: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Advances if the next byte is this one, and returns `true` then.
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Returns `true` if everything is read.
    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Returns an error at the byte that was read last.
    fn error(&self, problem: &str) -> String {
        format!("{problem} at {}", self.at.saturating_sub(1))
    }
}
