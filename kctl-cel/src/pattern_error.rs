//! Go's error message for an invalid regular expression.
//!
//! Upstream: `regexp/syntax/parse.go` of Go. It covers the errors that one scan without a parse tree can find.

/// Maximum count of a repetition.
const REPEAT_MAX: u32 = 1000;
/// Letters and digits with a meaning after a backslash. Others are an error, and punctuation is a literal.
const ESCAPES: &str = "AaBbCDdEfnPpQrSstvWwxz01234567";

/// Returns Go's message for an invalid pattern. API servers put it into validation errors of `pattern` and `matches`.
///
/// Call it only if [`pattern`](crate::pattern()) rejects the pattern: for a valid one the message is meaningless.
///
/// ```
/// assert_eq!(kctl_cel::why_no_pattern("[a"), "error parsing regexp: missing closing ]: `[a`");
/// ```
#[must_use]
pub fn why(pattern: &str) -> String {
    let error = Scanner { pattern, at: 0 }.whole().err().unwrap_or_else(|| format!("`{pattern}`"));
    format!("error parsing regexp: {error}")
}

/// Reads a pattern from left to right, up to its first error.
struct Scanner<'a> {
    pattern: &'a str,
    /// Number of bytes that have been read.
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the unread part.
    fn rest(&self) -> &'a str {
        &self.pattern[self.at..]
    }

    /// Reads a character.
    fn next(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Reads the whole pattern.
    fn whole(&mut self) -> Result<(), String> {
        let (mut depth, mut can_repeat, mut repeated) = (0_usize, false, None);
        loop {
            let begin = self.at;
            let Some(letter) = self.next() else { break };
            let is_repeat = "*+?".contains(letter) || (letter == '{' && self.count(begin)?);
            match letter {
                '\\' => self.escape(begin)?,
                '[' => self.class(begin)?,
                '(' => {
                    self.flags(begin)?;
                    depth += 1;
                }
                ')' if depth == 0 => return Err(format!("unexpected ): `{}`", self.pattern)),
                ')' => depth -= 1,
                _ => {}
            }
            if is_repeat {
                self.at += usize::from(self.rest().starts_with('?'));
                if let Some(first) = repeated {
                    return Err(format!("invalid nested repetition operator: `{}`", &self.pattern[first..self.at]));
                }
                if !can_repeat {
                    let operator = &self.pattern[begin..self.at];
                    return Err(format!("missing argument to repetition operator: `{operator}`"));
                }
            }
            repeated = is_repeat.then_some(begin);
            can_repeat = !"(|".contains(letter);
        }
        if depth > 0 { Err(format!("missing closing ): `{}`", self.pattern)) } else { Ok(()) }
    }

    /// Reads a count such as `{2,5}`. Returns `false` if the brace is a literal.
    fn count(&mut self, begin: usize) -> Result<bool, String> {
        let Some((inside, _)) = self.rest().split_once('}') else { return Ok(false) };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return Ok(false);
        }
        self.at += inside.len() + 1;
        let [least, most] = [least, most].map(|text| text.parse().unwrap_or(u32::MAX));
        let is_open = inside.ends_with(',');
        if least > REPEAT_MAX || (!is_open && (most > REPEAT_MAX || most < least)) {
            return Err(format!("invalid repeat count: `{}`", &self.pattern[begin..self.at]));
        }
        Ok(true)
    }

    /// Reads an escape, whose backslash was read.
    fn escape(&mut self, begin: usize) -> Result<(), String> {
        match self.next() {
            None => Err("trailing backslash at end of expression: ``".to_owned()),
            Some('Q') => {
                let literal = self.rest().find("\\E").map_or(self.rest().len(), |end| end + 2);
                self.at += literal;
                Ok(())
            }
            Some(letter) if letter.is_ascii_alphanumeric() && !ESCAPES.contains(letter) => {
                Err(format!("invalid escape sequence: `{}`", &self.pattern[begin..self.at]))
            }
            Some(_) => Ok(()),
        }
    }

    /// Reads flags or a name behind `(?`; does nothing for a plain group.
    fn flags(&mut self, begin: usize) -> Result<(), String> {
        if !self.rest().starts_with('?') {
            return Ok(());
        }
        self.at += 1;
        let name = self.rest().strip_prefix("P<").or_else(|| self.rest().strip_prefix('<'));
        if let Some(name) = name {
            let Some((name, rest)) = name.split_once('>') else {
                return Err(format!("invalid named capture: `{}`", &self.pattern[begin..]));
            };
            self.at = self.pattern.len() - rest.len();
            let is_name = !name.is_empty() && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
            let group = &self.pattern[begin..self.at];
            return if is_name { Ok(()) } else { Err(format!("invalid named capture: `{group}`")) };
        }
        loop {
            match self.next() {
                None => return Err(format!("missing closing ): `{}`", self.pattern)),
                Some(':') => return Ok(()),
                Some(')') => {
                    // The caller reads it again, as the end of the group.
                    self.at -= 1;
                    return Ok(());
                }
                Some('i' | 'm' | 's' | 'U' | '-') => {}
                Some(_) => {
                    return Err(format!("invalid or unsupported Perl syntax: `{}`", &self.pattern[begin..self.at]));
                }
            }
        }
    }

    /// Reads a character class, whose bracket was read.
    fn class(&mut self, begin: usize) -> Result<(), String> {
        self.at += usize::from(self.rest().starts_with('^'));
        let mut is_first = true;
        loop {
            if self.rest().starts_with("[:")
                && let Some(end) = self.rest().find(":]")
            {
                self.at += end + 2;
                is_first = false;
                continue;
            }
            let low_at = self.at;
            let low = match self.next() {
                None => return Err(format!("missing closing ]: `{}`", &self.pattern[begin..])),
                Some(']') if !is_first => return Ok(()),
                Some(letter) => letter,
            };
            is_first = false;
            if low == '\\' {
                self.escape(low_at)?;
            }
            let after = self.rest().strip_prefix('-');
            let Some(high) = after.and_then(|after| after.chars().next()).filter(|high| *high != ']') else { continue };
            self.at += 1 + high.len_utf8();
            if high == '\\' {
                self.escape(self.at - 1)?;
            } else if low != '\\' && high < low {
                return Err(format!("invalid character class range: `{}`", &self.pattern[low_at..self.at]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of Go 1.26.
    #[test]
    fn errors_are_those_of_go() {
        for (pattern, error) in [
            ("(", "missing closing ): `(`"),
            ("a(b", "missing closing ): `a(b`"),
            ("a)", "unexpected ): `a)`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("x[a-", "missing closing ]: `[a-`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("(|+?)", "missing argument to repetition operator: `+?`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("\\y", "invalid escape sequence: `\\y`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?P<a", "invalid named capture: `(?P<a`"),
            ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
            ("(?<!a)", "invalid named capture: `(?<!a)`"),
            ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ] {
            assert_eq!(why(pattern), format!("error parsing regexp: {error}"), "{pattern}");
        }
    }
}
