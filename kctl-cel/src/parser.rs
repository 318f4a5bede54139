//! A recursive-descent parser that records positions, and checks names and macros.
//!
//! The parser of the evaluator records no positions, which messages need. It has accepted the expression before, so
//! this parser only reports errors that cel-go finds in addition. Upstream: `cel-go/parser/parser.go`, `macro.go` in
//! the same folder, `cel-go/ext/comprehensions.go`.

use crate::{
    Issue, IssueKind,
    lexer::{Token, tokens},
    names::is_reserved,
    tree::{Expr, Item, Node, qualified_name},
};

/// Macros that are called on a receiver: the name, its number of variables, and its number of arguments including these.
const MACROS: [(&str, usize, &[usize]); 15] = [
    ("all", 1, &[2]),
    ("exists", 1, &[2]),
    ("exists_one", 1, &[2]),
    ("filter", 1, &[2]),
    ("map", 1, &[2, 3]),
    ("sortBy", 1, &[2]),
    ("optMap", 1, &[2]),
    ("optFlatMap", 1, &[2]),
    ("all", 2, &[3]),
    ("exists", 2, &[3]),
    ("existsOne", 2, &[3]),
    ("exists_one", 2, &[3]),
    ("transformList", 2, &[3, 4]),
    ("transformMap", 2, &[3, 4]),
    ("transformMapEntry", 2, &[3, 4]),
];

/// Maximum number of nested brackets and conditional operators. API servers allow 250; each level takes up to 20 kB of the
/// stack in a debug build, and [`with_large_stack`](crate::with_large_stack()) provides 64 MiB.
const NESTING_MAX: usize = 1_000;
/// Maximum number of tokens, and with it of operators in a row: `a && b && c` is a tree as deep as it is long. The embedded
/// API server reads 20,000 bytes of an expression, which are at most as many tokens and the end.
const TOKENS_MAX: usize = 20_001;

/// Returns the tree of an expression, or `None` for syntax that this parser does not know, and for an expression that is
/// too long or too deep.
///
/// # Errors
/// A reserved word is used as an identifier, or the variables of a macro are invalid.
pub(crate) fn parse(text: &str) -> Option<Result<Node, Vec<Issue>>> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, nesting: 0, errors: Vec::new() };
    if parser.tokens.len() > TOKENS_MAX {
        return None;
    }
    debug_assert!(matches!(parser.tokens.last(), Some((_, Token::End))), "`peek` finds a token at the end as well");
    let node = parser.ternary()?;
    if parser.peek() != &Token::End {
        return None;
    }
    Some(if parser.errors.is_empty() { Ok(node) } else { Err(parser.errors) })
}

/// The state of the parser. Each method reads one rule of the grammar (`CEL.g4`), from the current token on.
struct Parser {
    /// Tokens with their positions. Invariant: the last one is [`Token::End`].
    tokens: Vec<(usize, Token)>,
    /// Index of the current token; it may be beyond the last one.
    next: usize,
    /// Number of expressions that are being read, one inside the other. Invariant: at most [`NESTING_MAX`].
    nesting: usize,
    /// Errors so far. They don't stop the parser, so that all are reported at once.
    errors: Vec<Issue>,
}

impl Parser {
    /// Returns the current token.
    fn peek(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)].1
    }

    /// Returns the position of the current token.
    fn position(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].0
    }

    /// Returns the current token and moves on.
    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    /// Skips an operator or bracket. Returns `false` if the next token differs, and does not skip it.
    fn eat(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    /// Returns the current token if it is one of these operators. `in` is an operator that is written as a name.
    fn sign(&self, operators: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Token::Sign(next) => operators.iter().copied().find(|sign| sign == next),
            Token::Name(name) => operators.iter().copied().find(|sign| sign == name),
            _ => None,
        }
    }

    /// Adds an error.
    fn error(&mut self, at: usize, why: String) {
        self.errors.push(Issue { at, kind: IssueKind::Other(why) });
    }

    /// Reads a whole expression, unless it is nested too deep.
    fn ternary(&mut self) -> Option<Node> {
        if self.nesting == NESTING_MAX {
            return None;
        }
        self.nesting += 1;
        debug_assert!(self.nesting <= NESTING_MAX, "deeper expressions are not read");
        let node = self.conditional();
        self.nesting -= 1;
        node
    }

    /// Reads `condition ? one : other`, or an operator expression.
    fn conditional(&mut self) -> Option<Node> {
        let condition = self.binary(0)?;
        let at = self.position();
        if !self.eat("?") {
            return Some(condition);
        }
        let then = self.binary(0)?;
        if !self.eat(":") {
            return None;
        }
        let other = self.ternary()?;
        Some(call(at, "_?_:_", vec![condition, then, other]))
    }

    /// Reads binary operators of a level and above. The weakest bind at level 0; all are left-associative.
    fn binary(&mut self, level: usize) -> Option<Node> {
        /// Operators by precedence (`CEL.g4`), the weakest first.
        const LEVELS: [&[&str]; 5] =
            [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.sign(signs) {
            let at = self.position();
            self.next += 1;
            let right = self.binary(level + 1)?;
            let name = if sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
            left = call(at, &name, vec![left, right]);
        }
        Some(left)
    }

    /// Reads `!` and `-`. An even number of them has no effect.
    fn unary(&mut self) -> Option<Node> {
        let at = self.position();
        let Some(sign) = self.sign(&["!", "-"]) else { return self.member() };
        let mut n_signs = 0;
        while self.eat(sign) {
            n_signs += 1;
        }
        // The sign of a number literal is part of the literal.
        if sign == "-" && n_signs == 1 && matches!(self.peek(), Token::Int(_) | Token::Double(_)) {
            self.next -= 1;
            return self.member();
        }
        let operand = self.member()?;
        if n_signs % 2 == 0 {
            return Some(operand);
        }
        Some(call(at, &format!("{sign}_"), vec![operand]))
    }

    /// Reads an operand with its fields, calls, indexes and constructed objects.
    fn member(&mut self) -> Option<Node> {
        let mut node = self.primary()?;
        loop {
            let at = self.position();
            if self.eat(".") {
                let is_optional = self.eat("?");
                let (field, is_quoted) = match self.take() {
                    Token::Name(name) => (name, false),
                    Token::Quoted(name) => (name, true),
                    _ => return None,
                };
                let call_at = self.position();
                node = if !is_optional && !is_quoted && self.eat("(") {
                    let arguments = self.parse_list(")", Self::ternary)?;
                    self.method(call_at, node, field, arguments)
                } else {
                    Node { at, is: Expr::Select { operand: Box::new(node), field, is_optional } }
                };
            } else if self.eat("[") {
                let name = if self.eat("?") { "_[?_]" } else { "_[_]" };
                let index = self.ternary()?;
                if !self.eat("]") {
                    return None;
                }
                node = call(at, name, vec![node, index]);
            } else if matches!(self.peek(), Token::Sign("{")) && qualified_name(&node).is_some() {
                let name = qualified_name(&node)?;
                self.next += 1;
                node = Node { at, is: Expr::Message { name, fields: self.fields()? } };
            } else {
                return Some(node);
            }
        }
    }

    /// Reads a literal, an identifier, or an expression in parentheses.
    fn primary(&mut self) -> Option<Node> {
        let at = self.position();
        let simple = |is| Some(Node { at, is });
        match self.take() {
            Token::Int(number) => simple(Expr::Int(i64::try_from(number).ok()?)),
            Token::Uint(number) => simple(Expr::Uint(number)),
            Token::Double(number) => simple(Expr::Double(number)),
            Token::Bytes(bytes) => simple(Expr::Bytes(bytes)),
            Token::Text(text) => simple(Expr::Text(text)),
            Token::Sign("-") => match self.take() {
                Token::Int(number) => simple(Expr::Int(0_i64.checked_sub_unsigned(number)?)),
                Token::Double(number) => simple(Expr::Double(-number)),
                _ => None,
            },
            Token::Sign("(") => {
                let inner = self.ternary()?;
                self.eat(")").then_some(inner)
            }
            Token::Sign("[") => {
                let items = self.parse_list("]", |parser| {
                    let is_optional = parser.eat("?");
                    let node = parser.ternary()?;
                    Some(Item { at: node.at, is_optional, node })
                })?;
                simple(Expr::List(items))
            }
            Token::Sign("{") => simple(Expr::Map(self.entries()?)),
            // `.name` is an identifier that no container prefixes.
            Token::Sign(".") => match self.take() {
                Token::Name(name) => self.parse_after_name(at, name),
                _ => None,
            },
            Token::Name(name) => self.parse_after_name(at, name),
            _ => None,
        }
    }

    /// Reads what follows an identifier: a call, `has(…)`, or nothing.
    fn parse_after_name(&mut self, at: usize, name: String) -> Option<Node> {
        match name.as_str() {
            "true" | "false" => return Some(Node { at, is: Expr::Bool }),
            "null" => return Some(Node { at, is: Expr::Null }),
            reserved if is_reserved(reserved) => {
                self.error(at, format!("reserved identifier: {reserved}"));
            }
            _ => {}
        }
        let call_at = self.position();
        if !self.eat("(") {
            return Some(Node { at, is: Expr::Name(name) });
        }
        let mut arguments = self.parse_list(")", Self::ternary)?;
        if name == "has" && arguments.len() == 1 {
            return match arguments.remove(0).is {
                Expr::Select { operand, field, .. } => Some(Node { at: call_at, is: Expr::Has { operand, field } }),
                _ => None,
            };
        }
        Some(Node { at: call_at, is: Expr::Call { target: None, name, arguments } })
    }

    /// Reads parts that commas separate, up to the closing bracket `end`. A comma may follow the last part.
    fn parse_list<T>(&mut self, end: &str, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = Vec::new();
        while !self.eat(end) {
            all.push(read(self)?);
            if !self.eat(",") && !matches!(self.peek(), Token::Sign(next) if *next == end) {
                return None;
            }
        }
        Some(all)
    }

    /// Reads the entries of a map literal, after `{`.
    fn entries(&mut self) -> Option<Vec<(Item, Item)>> {
        self.parse_list("}", |parser| {
            let is_optional = parser.eat("?");
            let key = parser.ternary()?;
            if !parser.eat(":") {
                return None;
            }
            let value = parser.ternary()?;
            let key = Item { at: key.at, is_optional: false, node: key };
            Some((key, Item { at: value.at, is_optional, node: value }))
        })
    }

    /// Reads the fields of a constructed object, after `{`.
    fn fields(&mut self) -> Option<Vec<(String, Item)>> {
        self.parse_list("}", |parser| {
            let is_optional = parser.eat("?");
            let (Token::Name(name) | Token::Quoted(name)) = parser.take() else { return None };
            let at = parser.position();
            if !parser.eat(":") {
                return None;
            }
            let node = parser.ternary()?;
            Some((name, Item { at, is_optional, node }))
        })
    }

    /// Returns a method call, or a macro if name and number of arguments fit one.
    fn method(&mut self, at: usize, target: Node, name: String, mut arguments: Vec<Node>) -> Node {
        let found =
            MACROS.iter().find(|(known, _, n_arguments)| *known == name && n_arguments.contains(&arguments.len()));
        let target = Box::new(target);
        let Some((_, n_declared, _)) = found else {
            return Node { at, is: Expr::Call { target: Some(target), name, arguments } };
        };
        self.errors.extend(naming_error(&target, &name, &arguments[..*n_declared]));
        let declared = arguments.drain(..*n_declared).map(|node| match node.is {
            Expr::Name(name) => name,
            // `naming_error` has reported it, so the tree is dropped.
            _ => String::new(),
        });
        let declared = declared.collect();
        Node { at, is: Expr::Loop { over: target, name, declared, arguments } }
    }
}

/// Returns a call without a receiver.
fn call(at: usize, name: &str, arguments: Vec<Node>) -> Node {
    Node { at, is: Expr::Call { target: None, name: name.into(), arguments } }
}

/// Returns the first error in the variables of a macro, or in the receiver of `sortBy`.
fn naming_error(target: &Node, name: &str, declared: &[Node]) -> Option<Issue> {
    let issue = |at, why: String| Some(Issue { at, kind: IssueKind::Other(why) });
    let mut names: Vec<&str> = Vec::new();
    for node in declared {
        match &node.is {
            Expr::Name(name) if name == "__result__" => {
                return issue(node.at, "iteration variable overwrites accumulator variable".into());
            }
            Expr::Name(name) if names.contains(&name.as_str()) => {
                return issue(node.at, format!("duplicate variable name: {name}"));
            }
            Expr::Name(name) if !is_reserved(name) => names.push(name),
            _ => {
                return issue(
                    node.at,
                    match name {
                        "optMap" | "optFlatMap" => format!("{name}() variable name must be a simple identifier"),
                        "sortBy" | "map" | "filter" => "argument is not an identifier".into(),
                        _ => "argument must be a simple name".into(),
                    },
                );
            }
        }
    }
    let is_list = matches!(
        target.is,
        Expr::List(_) | Expr::Name(_) | Expr::Loop { .. } | Expr::Call { .. } | Expr::Select { .. }
    );
    let kinds = "a list, identifier, comprehension, call or select expression";
    if name == "sortBy" && !is_list { issue(target.at, format!("sortBy can only be applied to {kinds}")) } else { None }
}
