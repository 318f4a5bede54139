//! The tokens of an expression, with their positions in characters.
//!
//! The evaluator's parser has accepted the expression before, so escapes and numbers are not validated again.

/// A token, with the value of a literal. White space and comments yield no token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// An identifier or a keyword.
    Name(String),
    /// A name in backticks.
    Quoted(String),
    /// An integer; a minus before it is a separate token.
    Int(u64),
    /// An unsigned integer: `1u`.
    Uint(u64),
    /// A number with a point or an exponent.
    Double(f64),
    /// A string, with its escapes replaced.
    Text(String),
    /// A bytes literal: `b'…'`.
    Bytes(Vec<u8>),
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end of the expression: always the last token.
    End,
}

/// Operators and brackets, longer ones first so that `<=` is not read as `<`.
const OPERATORS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}", "=",
];

/// Returns all tokens with their positions, or `None` if a character starts no token or a string is not closed.
pub(crate) fn tokens(text: &str) -> Option<Vec<(usize, Token)>> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Lexer { letters: &letters, at: 0 };
    let mut found = Vec::new();
    loop {
        reader.skip_blanks();
        let at = reader.at;
        let token = reader.next()?;
        let is_end = token == Token::End;
        found.push((at, token));
        if is_end {
            return Some(found);
        }
    }
}

/// Reads tokens from left to right.
struct Lexer<'a> {
    letters: &'a [char],
    /// Index of the next character.
    at: usize,
}

impl Lexer<'_> {
    /// Returns the character `ahead` positions further, or NUL after the end.
    fn peek(&self, ahead: usize) -> char {
        self.letters.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Skips white space and `//` comments.
    fn skip_blanks(&mut self) {
        loop {
            if self.at < self.letters.len() && self.peek(0).is_whitespace() {
                self.at += 1;
            } else if self.peek(0) == '/' && self.peek(1) == '/' {
                while self.at < self.letters.len() && self.peek(0) != '\n' {
                    self.at += 1;
                }
            } else {
                return;
            }
        }
    }

    /// Reads a token.
    fn next(&mut self) -> Option<Token> {
        let first = self.peek(0);
        if self.at >= self.letters.len() {
            return Some(Token::End);
        }
        if let Some(prefix_len) = self.text_prefix() {
            return self.text(prefix_len);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Some(Token::Name(self.run(|letter| letter.is_ascii_alphanumeric() || letter == '_')));
        }
        if first == '`' {
            self.at += 1;
            let name = self.run(|letter| letter != '`');
            self.at += 1;
            return Some(Token::Quoted(name));
        }
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_ascii_digit()) {
            return self.number();
        }
        let sign = OPERATORS
            .iter()
            .find(|sign| sign.chars().enumerate().all(|(index, character)| self.peek(index) == character))?;
        self.at += sign.len();
        Some(Token::Sign(sign))
    }

    /// Reads characters as long as they belong to the token.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let begin = self.at;
        while self.at < self.letters.len() && belongs(self.peek(0)) {
            self.at += 1;
        }
        self.letters[begin..self.at].iter().collect()
    }

    /// Reads a decimal or hexadecimal integer, an unsigned one (`1u`), or a double.
    fn number(&mut self) -> Option<Token> {
        let begin = self.at;
        let (digits, radix) = if self.peek(0) == '0' && matches!(self.peek(1), 'x' | 'X') {
            self.at += 2;
            (self.run(|letter| letter.is_ascii_hexdigit()), 16)
        } else {
            self.run(|letter| letter.is_ascii_digit());
            let mut is_double = false;
            if self.peek(0) == '.' && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.run(|letter| letter.is_ascii_digit());
                is_double = true;
            }
            let signed = usize::from(matches!(self.peek(1), '+' | '-'));
            if matches!(self.peek(0), 'e' | 'E') && self.peek(1 + signed).is_ascii_digit() {
                self.at += 1 + signed;
                self.run(|letter| letter.is_ascii_digit());
                is_double = true;
            }
            let digits: String = self.letters[begin..self.at].iter().collect();
            if is_double {
                return digits.parse().ok().map(Token::Double);
            }
            (digits, 10)
        };
        let number = u64::from_str_radix(&digits, radix).ok()?;
        if matches!(self.peek(0), 'u' | 'U') {
            self.at += 1;
            return Some(Token::Uint(number));
        }
        Some(Token::Int(number))
    }

    /// Returns the length of the prefix (`r`, `b`, `rb`) of a string literal; `None` if none begins here.
    fn text_prefix(&self) -> Option<usize> {
        let is_quote = |letter: char| matches!(letter, '\'' | '"');
        let is_prefix = |letter: char| matches!(letter, 'r' | 'R' | 'b' | 'B');
        (0..=2).find(|len| is_quote(self.peek(*len)) && (0..*len).all(|index| is_prefix(self.peek(index))))
    }

    /// Reads a string or bytes literal after a prefix of this length.
    fn text(&mut self, prefix_len: usize) -> Option<Token> {
        let has = |one: char| (0..prefix_len).any(|index| self.peek(index).to_ascii_lowercase() == one);
        let (is_raw, is_bytes) = (has('r'), has('b'));
        self.at += prefix_len;
        let quote = self.peek(0);
        let n_quotes = if self.peek(1) == quote && self.peek(2) == quote { 3 } else { 1 };
        self.at += n_quotes;
        let mut text = String::new();
        let mut bytes = Vec::new();
        loop {
            if self.at >= self.letters.len() {
                return None;
            }
            if (0..n_quotes).all(|index| self.peek(index) == quote) {
                self.at += n_quotes;
                return Some(if is_bytes { Token::Bytes(bytes) } else { Token::Text(text) });
            }
            let mut letter = self.peek(0);
            self.at += 1;
            // In bytes, `\xff` and `\377` are one byte, not a character in UTF-8.
            let mut is_byte = false;
            if letter == '\\' && !is_raw {
                is_byte = matches!(self.peek(0), 'x' | 'X' | '0'..='3');
                letter = self.read_escape()?;
            }
            if is_bytes {
                let raw_byte = u8::try_from(u32::from(letter)).ok().filter(|_| is_byte);
                bytes.extend(raw_byte.map_or_else(|| letter.to_string().into_bytes(), |byte| vec![byte]));
            } else {
                text.push(letter);
            }
        }
    }

    /// Returns the character of an escape. The backslash has been read.
    fn read_escape(&mut self) -> Option<char> {
        let letter = self.peek(0);
        self.at += 1;
        let (len, radix) = match letter {
            'a' => return Some('\u{7}'),
            'b' => return Some('\u{8}'),
            'f' => return Some('\u{c}'),
            'n' => return Some('\n'),
            'r' => return Some('\r'),
            't' => return Some('\t'),
            'v' => return Some('\u{b}'),
            'x' | 'X' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='3' => {
                self.at -= 1;
                (3, 8)
            }
            other => return Some(other),
        };
        let digits: String = (0..len).map(|index| self.peek(index)).collect();
        self.at += len;
        u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32)
    }
}
