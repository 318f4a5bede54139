//! Lua 5.1's patterns with a budget: each character that is looked at is a step, so no pattern can hang.
//!
//! Reads a subject and a pattern as bytes and hands on the ends of a match and its captures. It follows the reference
//! manual of Lua 5.1 (section 5.4.1), with `%f`, and the limits of the C library: 32 captures, 200 levels.

const CAPTURES_MAX: usize = 32;

/// Levels of recursion; each quantifier and capture of the pattern is one. It keeps the stack of the thread bounded.
const DEPTH_MAX: usize = 200;

/// Steps that are collected before they are charged.
const STEPS_PER_CHARGE: u64 = 1024;

/// Why a search has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatternError<E> {
    /// The pattern is not one.
    Malformed(&'static str),
    /// The budget is exceeded.
    Stopped(E),
}

/// What a capture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// Bytes of the subject, from and to.
    Span(usize, usize),
    /// A position, from 0: `()`.
    Position(usize),
    /// Begun and not ended.
    Open(usize),
}

/// A match: bytes of the subject, from and to, and the captures.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: Vec<Capture>,
}

/// Finds the first match at or after `start`. `^` anchors only a search, not the steps of `gmatch`.
///
/// # Errors
/// The pattern is malformed, or `charge` refused.
pub(super) fn find<E>(
    subject: &[u8],
    pattern: &[u8],
    start: usize,
    anchors: Anchors,
    charge: impl FnMut(u64) -> Result<(), E>,
) -> Result<Option<Match>, PatternError<E>> {
    let is_anchored = anchors == Anchors::Search && pattern.first() == Some(&b'^');
    let pattern = if is_anchored { &pattern[1..] } else { pattern };
    let mut matcher = Matcher { subject, pattern, captures: Vec::new(), depth: 0, steps: 0, charge };
    for start in start..=subject.len() {
        matcher.captures.clear();
        if let Some(end) = matcher.run(start, 0)? {
            matcher.flush()?;
            let captures = matcher.captures;
            if captures.iter().any(|capture| matches!(capture, Capture::Open(_))) {
                return Err(PatternError::Malformed("unfinished capture"));
            }
            return Ok(Some(Match { start, end, captures }));
        }
        if is_anchored {
            break;
        }
    }
    matcher.flush()?;
    Ok(None)
}

/// Whether a leading `^` is an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchors {
    /// `find` and `match`: it is.
    Search,
    /// `gmatch`: it is a character like any other.
    Iterate,
}

struct Matcher<'a, C> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Capture>,
    depth: usize,
    steps: u64,
    charge: C,
}

type Found<E> = Result<Option<usize>, PatternError<E>>;

impl<E, C: FnMut(u64) -> Result<(), E>> Matcher<'_, C> {
    fn step(&mut self, steps: usize) -> Result<(), PatternError<E>> {
        self.steps += steps as u64;
        if self.steps < STEPS_PER_CHARGE { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), PatternError<E>> {
        (self.charge)(std::mem::take(&mut self.steps)).map_err(PatternError::Stopped)
    }

    /// Returns the pattern's byte, 0 behind its end: in Lua 5.1 a zero byte ends a pattern.
    fn at(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    fn run(&mut self, s: usize, p: usize) -> Found<E> {
        if self.depth >= DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex"));
        }
        self.depth += 1;
        let found = self.run_level(s, p);
        self.depth -= 1;
        found
    }

    fn run_level(&mut self, mut s: usize, mut p: usize) -> Found<E> {
        loop {
            self.step(1)?;
            match (self.at(p), self.at(p + 1)) {
                (0, _) if p >= self.pattern.len() => return Ok(Some(s)),
                (b'(', b')') => return self.start_capture(s, p + 2, Capture::Position(s)),
                (b'(', _) => return self.start_capture(s, p + 1, Capture::Open(s)),
                (b')', _) => return self.end_capture(s, p + 1),
                (b'%', b'b') => match self.balance(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', b'f') => {
                    let set = p + 2;
                    if self.at(set) != b'[' {
                        return Err(PatternError::Malformed("missing '[' after '%f' in pattern"));
                    }
                    let end = self.class_end(set)?;
                    self.step(end - set)?;
                    let before = if s == 0 { 0 } else { self.subject[s - 1] };
                    let here = self.subject.get(s).copied().unwrap_or(0);
                    if self.in_set(before, set, end - 1) || !self.in_set(here, set, end - 1) {
                        return Ok(None);
                    }
                    p = end;
                }
                (b'%', digit) if digit.is_ascii_digit() => match self.back_reference(s, digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                (b'$', _) if p + 1 == self.pattern.len() => return Ok((s == self.subject.len()).then_some(s)),
                _ => match self.single(s, p)? {
                    Single::Next(next_s, next_p) => (s, p) = (next_s, next_p),
                    Single::Done(found) => return Ok(found),
                },
            }
        }
    }

    /// Matches one class with its quantifier.
    fn single(&mut self, s: usize, p: usize) -> Result<Single, PatternError<E>> {
        let end = self.class_end(p)?;
        self.step(end - p)?;
        let is_match = self.matches(s, p, end);
        Ok(match self.at(end) {
            b'?' => {
                if is_match && let Some(found) = self.run(s + 1, end + 1)? {
                    return Ok(Single::Done(Some(found)));
                }
                Single::Next(s, end + 1)
            }
            b'*' => Single::Done(self.longest(s, p, end)?),
            b'+' if is_match => Single::Done(self.longest(s + 1, p, end)?),
            b'-' => Single::Done(self.shortest(s, p, end)?),
            b'+' => Single::Done(None),
            _ if is_match => Single::Next(s + 1, end),
            _ => Single::Done(None),
        })
    }

    fn longest(&mut self, s: usize, p: usize, end: usize) -> Found<E> {
        let mut n = 0;
        while self.matches(s + n, p, end) {
            self.step(end - p)?;
            n += 1;
        }
        for n in (0..=n).rev() {
            if let Some(found) = self.run(s + n, end + 1)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn shortest(&mut self, mut s: usize, p: usize, end: usize) -> Found<E> {
        loop {
            if let Some(found) = self.run(s, end + 1)? {
                return Ok(Some(found));
            }
            self.step(end - p)?;
            if !self.matches(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn start_capture(&mut self, s: usize, p: usize, capture: Capture) -> Found<E> {
        if self.captures.len() >= CAPTURES_MAX {
            return Err(PatternError::Malformed("too many captures"));
        }
        self.captures.push(capture);
        let n = self.captures.len();
        let found = self.run(s, p)?;
        if found.is_none() {
            self.captures.truncate(n - 1);
        }
        Ok(found)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Found<E> {
        let open = self.captures.iter().rposition(|capture| matches!(capture, Capture::Open(_)));
        let Some(idx) = open else { return Err(PatternError::Malformed("invalid pattern capture")) };
        let Capture::Open(start) = self.captures[idx] else { return Ok(None) };
        self.captures[idx] = Capture::Span(start, s);
        let found = self.run(s, p)?;
        if found.is_none() {
            self.captures[idx] = Capture::Open(start);
        }
        Ok(found)
    }

    fn balance(&mut self, s: usize, p: usize) -> Found<E> {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(PatternError::Malformed("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1;
        for idx in s + 1..self.subject.len() {
            self.step(1)?;
            let byte = self.subject[idx];
            if byte == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(idx + 1));
                }
            } else if byte == open {
                level += 1;
            }
        }
        Ok(None)
    }

    fn back_reference(&mut self, s: usize, digit: u8) -> Found<E> {
        let idx = usize::from(digit).checked_sub(usize::from(b'1'));
        let Some(&Capture::Span(from, to)) = idx.and_then(|idx| self.captures.get(idx)) else {
            return Err(PatternError::Malformed("invalid capture index"));
        };
        self.step(to - from)?;
        let is_same = self.subject[s..].starts_with(&self.subject[from..to]);
        Ok(is_same.then_some(s + to - from))
    }

    /// Returns where the class at `p` ends.
    fn class_end(&self, p: usize) -> Result<usize, PatternError<E>> {
        match self.at(p) {
            b'%' if p + 1 >= self.pattern.len() => Err(PatternError::Malformed("malformed pattern (ends with '%')")),
            b'%' => Ok(p + 2),
            b'[' => {
                let mut p = p + 1;
                if self.at(p) == b'^' {
                    p += 1;
                }
                loop {
                    if p >= self.pattern.len() {
                        return Err(PatternError::Malformed("malformed pattern (missing ']')"));
                    }
                    p += if self.at(p) == b'%' && p + 1 < self.pattern.len() { 2 } else { 1 };
                    if self.at(p) == b']' {
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    fn matches(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(s) else { return false };
        match self.at(p) {
            b'.' => true,
            b'%' => in_class(byte, self.at(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Returns whether the byte is in the set from `p`, its `[`, to `last`, its `]`.
    fn in_set(&self, byte: u8, p: usize, last: usize) -> bool {
        let is_negated = self.at(p + 1) == b'^';
        let mut p = if is_negated { p + 2 } else { p + 1 };
        while p < last {
            let (is_member, next) = if self.at(p) == b'%' {
                (in_class(byte, self.at(p + 1)), p + 2)
            } else if self.at(p + 1) == b'-' && p + 2 < last {
                ((self.at(p)..=self.at(p + 2)).contains(&byte), p + 3)
            } else {
                (self.at(p) == byte, p + 1)
            };
            if is_member {
                return !is_negated;
            }
            p = next;
        }
        is_negated
    }
}

enum Single {
    Next(usize, usize),
    Done(Option<usize>),
}

/// Returns whether the byte is in class `%class`, in the C locale.
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

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
