//! Lua's patterns with a budget: each character that is examined is a step, so that no pattern can
//! hang.
//!
//! Subject and pattern are bytes. The result is the range of a match and its captures. The module
//! `parse` defines the patterns.

mod parse;

use parse::{Class, Pattern, Repeat, Step};

/// The maximum depth of recursion. Each quantifier of the pattern is one level, so the stack of the thread is bounded.
const DEPTH_MAX: usize = 200;

/// Steps that are collected before they are charged.
const STEPS_PER_CHARGE: u64 = 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatternError<E> {
    /// The pattern is invalid.
    Malformed(String),
    /// The budget is exceeded.
    Stopped(E),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// Bytes of the subject, from and to.
    Span(usize, usize),
    /// An offset of the subject, for `()`.
    Position(usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The offset of its first byte.
    pub(super) start: usize,
    /// The offset after its last byte.
    pub(super) end: usize,
    /// The captures, in the order of their opening parentheses.
    pub(super) captures: Vec<Capture>,
}

/// Finds the first match at or after `start`. A pattern with `^` is only tried at `start`.
///
/// # Errors
/// The pattern is malformed, or `charge` returned an error.
pub(super) fn find<E>(
    subject: &[u8],
    pattern: &[u8],
    start: usize,
    charge: impl FnMut(u64) -> Result<(), E>,
) -> Result<Option<Match>, PatternError<E>> {
    let parsed = parse::parse(pattern).map_err(PatternError::Malformed)?;
    let captures = vec![Capture::Position(0); parsed.n_captures];
    let mut matcher = Matcher { subject, pattern: &parsed, captures, depth: 0, steps: 0, charge };
    matcher.step(pattern.len())?;
    for start in start..=subject.len() {
        if let Some(end) = matcher.run(start, 0)? {
            matcher.charge_steps()?;
            return Ok(Some(Match { start, end, captures: matcher.captures }));
        }
        if parsed.at_start {
            break;
        }
    }
    matcher.charge_steps()?;
    Ok(None)
}

/// One search: the subject, the pattern and the state of backtracking.
struct Matcher<'a, C> {
    subject: &'a [u8],
    pattern: &'a Pattern,
    /// A successful path through the pattern sets all captures, so it overwrites what a failed path
    /// has left.
    captures: Vec<Capture>,
    depth: usize,
    steps: u64,
    charge: C,
}

type Found<E> = Result<Option<usize>, PatternError<E>>;

impl<E, C: FnMut(u64) -> Result<(), E>> Matcher<'_, C> {
    /// Counts steps, and charges them once enough are collected.
    fn step(&mut self, steps: usize) -> Result<(), PatternError<E>> {
        self.steps += steps as u64;
        if self.steps < STEPS_PER_CHARGE { Ok(()) } else { self.charge_steps() }
    }

    fn charge_steps(&mut self) -> Result<(), PatternError<E>> {
        (self.charge)(std::mem::take(&mut self.steps)).map_err(PatternError::Stopped)
    }

    /// Matches the rest of a pattern one level deeper.
    fn run(&mut self, s: usize, p: usize) -> Found<E> {
        if self.depth >= DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex".to_owned()));
        }
        self.depth += 1;
        let found = self.run_level(s, p);
        self.depth -= 1;
        found
    }

    /// Matches the steps of the pattern from `p` at the byte `s` of the subject, and returns the
    /// end of the match.
    fn run_level(&mut self, mut s: usize, p: usize) -> Found<E> {
        let pattern = self.pattern;
        for (p, step) in pattern.steps.iter().enumerate().skip(p) {
            self.step(1)?;
            let next = match step {
                Step::One(class) => self.match_byte(s, class)?,
                Step::Repeat(class, Repeat::Optional) => {
                    if let Some(next) = self.match_byte(s, class)?
                        && let Some(end) = self.run(next, p + 1)?
                    {
                        return Ok(Some(end));
                    }
                    Some(s)
                }
                Step::Repeat(class, Repeat::Shortest) => return self.match_shortest(s, class, p + 1),
                Step::Repeat(class, Repeat::Longest(least)) => return self.match_longest(s, class, *least, p + 1),
                Step::Open(capture) => {
                    self.captures[*capture] = Capture::Span(s, s);
                    Some(s)
                }
                Step::Close(capture) => {
                    if let Capture::Span(_, to) = &mut self.captures[*capture] {
                        *to = s;
                    }
                    Some(s)
                }
                Step::Position(capture) => {
                    self.captures[*capture] = Capture::Position(s);
                    Some(s)
                }
                Step::Balance(open, close) => self.match_balanced(s, *open, *close)?,
                Step::Again(capture) => self.match_back_reference(s, *capture)?,
            };
            let Some(next) = next else { return Ok(None) };
            s = next;
        }
        Ok((!pattern.at_end || s == self.subject.len()).then_some(s))
    }

    fn match_byte(&mut self, s: usize, class: &Class) -> Found<E> {
        self.step(class.cost())?;
        Ok(self.subject.get(s).is_some_and(|byte| class.has(*byte)).then_some(s + 1))
    }

    /// Matches `*` and `+`: as many bytes as possible first, then fewer.
    fn match_longest(&mut self, s: usize, class: &Class, least: usize, p: usize) -> Found<E> {
        let mut n = 0;
        while self.match_byte(s + n, class)?.is_some() {
            n += 1;
        }
        for n in (least..=n).rev() {
            if let Some(end) = self.run(s + n, p)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Matches `-`: as few bytes as possible first, then more.
    fn match_shortest(&mut self, mut s: usize, class: &Class, p: usize) -> Found<E> {
        loop {
            if let Some(end) = self.run(s, p)? {
                return Ok(Some(end));
            }
            match self.match_byte(s, class)? {
                Some(next) => s = next,
                None => return Ok(None),
            }
        }
    }

    /// Matches `%b`: from an opening byte to its closing one.
    fn match_balanced(&mut self, s: usize, open: Option<u8>, close: Option<u8>) -> Found<E> {
        let Some(first) = self.subject.get(s).copied().filter(|first| Some(*first) == open) else { return Ok(None) };
        let mut level = 1;
        for idx in s + 1..self.subject.len() {
            self.step(1)?;
            let byte = self.subject[idx];
            if Some(byte) == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(idx + 1));
                }
            } else if byte == first {
                level += 1;
            }
        }
        Ok(None)
    }

    /// Matches the bytes of an earlier capture once more.
    fn match_back_reference(&mut self, s: usize, capture: Option<usize>) -> Found<E> {
        let (from, to) = match capture.map(|capture| self.captures[capture]) {
            Some(Capture::Span(from, to)) => (from, to),
            // A position capture is empty, so it always matches.
            Some(Capture::Position(_)) => return Ok(Some(s)),
            None => return Err(PatternError::Malformed("invalid capture index".to_owned())),
        };
        self.step(to - from)?;
        let is_same = self.subject[s..].starts_with(&self.subject[from..to]);
        Ok(is_same.then_some(s + to - from))
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
