//! Reads an expression: words come in, the tree goes out, or what is wrong with names and macros.
//!
//! The parser of the evaluator hands out no places, which messages have. It has accepted the text before: what is wrong here is
//! what only the real server refuses. Upstream: `cel-go/parser/parser.go`, `macro.go` beside it, `cel-go/ext/comprehensions.go`.

use crate::{
    Issue, Why,
    names::is_reserved,
    token::{Token, words},
    tree::{Item, Node, Part, qualified},
};

/// Macros of a target: the name, how many names it declares, and how many arguments it has, these included.
const MACROS: [(&str, usize, usize); 20] = [
    ("all", 1, 2),
    ("exists", 1, 2),
    ("exists_one", 1, 2),
    ("filter", 1, 2),
    ("map", 1, 2),
    ("map", 1, 3),
    ("sortBy", 1, 2),
    ("optMap", 1, 2),
    ("optFlatMap", 1, 2),
    ("all", 2, 3),
    ("exists", 2, 3),
    ("existsOne", 2, 3),
    ("exists_one", 2, 3),
    ("transformList", 2, 3),
    ("transformList", 2, 4),
    ("transformMap", 2, 3),
    ("transformMap", 2, 4),
    ("transformMapEntry", 2, 3),
    ("transformMapEntry", 2, 4),
    ("transformMapEntry", 2, 5),
];

/// The tree of an expression; none where this parser does not know it.
///
/// # Errors
/// What only the real server refuses.
pub(crate) fn parse(text: &str) -> Option<Result<Node, Vec<Issue>>> {
    let mut parser = Parser { words: words(text)?, next: 0, refused: Vec::new() };
    let node = parser.ternary()?;
    if parser.peek() != &Token::End {
        return None;
    }
    Some(if parser.refused.is_empty() { Ok(node) } else { Err(parser.refused) })
}

struct Parser {
    words: Vec<(usize, Token)>,
    next: usize,
    refused: Vec<Issue>,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.words[self.next.min(self.words.len() - 1)].1
    }

    fn at(&self) -> usize {
        self.words[self.next.min(self.words.len() - 1)].0
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn sign(&self, of: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Token::Sign(next) => of.iter().copied().find(|sign| sign == next),
            Token::Name(name) => of.iter().copied().find(|sign| sign == name),
            _ => None,
        }
    }

    fn refuse(&mut self, at: usize, why: String) {
        self.refused.push(Issue { at, why: Why::Other(why) });
    }

    fn ternary(&mut self) -> Option<Node> {
        let condition = self.binary(0)?;
        let at = self.at();
        if !self.takes("?") {
            return Some(condition);
        }
        let one = self.binary(0)?;
        if !self.takes(":") {
            return None;
        }
        let other = self.ternary()?;
        Some(call(at, "_?_:_", vec![condition, one, other]))
    }

    /// Operators by how weakly they bind.
    fn binary(&mut self, level: usize) -> Option<Node> {
        const LEVELS: [&[&str]; 5] =
            [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.sign(signs) {
            let at = self.at();
            self.next += 1;
            let right = self.binary(level + 1)?;
            let name = if sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
            left = call(at, &name, vec![left, right]);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Node> {
        let at = self.at();
        let Some(sign) = self.sign(&["!", "-"]) else { return self.member() };
        let mut n_signs = 0;
        while self.takes(sign) {
            n_signs += 1;
        }
        // The sign of a number is a part of it.
        if sign == "-" && n_signs == 1 && matches!(self.peek(), Token::Int(_) | Token::Double(_)) {
            self.next -= 1;
            return self.member();
        }
        let of = self.member()?;
        if n_signs % 2 == 0 {
            return Some(of);
        }
        Some(call(at, &format!("{sign}_"), vec![of]))
    }

    fn member(&mut self) -> Option<Node> {
        let mut node = self.primary()?;
        loop {
            let at = self.at();
            if self.takes(".") {
                let is_optional = self.takes("?");
                let name_at = self.at();
                let field = match self.take() {
                    Token::Name(name) => name,
                    Token::Quoted(name) => {
                        self.refuse(name_at, "unsupported syntax: '`'".into());
                        name
                    }
                    _ => return None,
                };
                let call_at = self.at();
                node = if !is_optional && self.takes("(") {
                    let arguments = self.arguments(")")?;
                    self.method(call_at, node, field, arguments)
                } else {
                    Node { at, is: Part::Select { of: Box::new(node), field, is_optional } }
                };
            } else if self.takes("[") {
                let name = if self.takes("?") { "_[?_]" } else { "_[_]" };
                let index = self.ternary()?;
                if !self.takes("]") {
                    return None;
                }
                node = call(at, name, vec![node, index]);
            } else if matches!(self.peek(), Token::Sign("{")) && qualified(&node).is_some() {
                let name = qualified(&node)?;
                self.next += 1;
                node = Node { at, is: Part::Message { name, fields: self.fields()? } };
            } else {
                return Some(node);
            }
        }
    }

    fn primary(&mut self) -> Option<Node> {
        let at = self.at();
        let simple = |is| Some(Node { at, is });
        match self.take() {
            Token::Int(number) => simple(Part::Int(i64::try_from(number).ok()?)),
            Token::Uint(number) => simple(Part::Uint(number)),
            Token::Double(number) => simple(Part::Double(number)),
            Token::Bytes(bytes) => simple(Part::Bytes(bytes)),
            Token::Text(text) => simple(Part::Text(text)),
            Token::Sign("-") => match self.take() {
                Token::Int(number) => simple(Part::Int(0_i64.checked_sub_unsigned(number)?)),
                Token::Double(number) => simple(Part::Double(-number)),
                _ => None,
            },
            Token::Sign("(") => {
                let inner = self.ternary()?;
                self.takes(")").then_some(inner)
            }
            Token::Sign("[") => {
                let mut items = Vec::new();
                while !self.takes("]") {
                    let is_optional = self.takes("?");
                    let node = self.ternary()?;
                    items.push(Item { at: node.at, is_optional, node });
                    if !self.takes(",") && !matches!(self.peek(), Token::Sign("]")) {
                        return None;
                    }
                }
                simple(Part::List(items))
            }
            Token::Sign("{") => {
                let is = Part::Map(self.entries()?);
                simple(is)
            }
            // A name from the root.
            Token::Sign(".") => match self.take() {
                Token::Name(name) => self.named(at, name),
                _ => None,
            },
            Token::Name(name) => self.named(at, name),
            _ => None,
        }
    }

    fn named(&mut self, at: usize, name: String) -> Option<Node> {
        match name.as_str() {
            "true" | "false" => return Some(Node { at, is: Part::Bool }),
            "null" => return Some(Node { at, is: Part::Null }),
            reserved if is_reserved(reserved) => {
                self.refuse(at, format!("reserved identifier: {reserved}"));
            }
            _ => {}
        }
        let call_at = self.at();
        if !self.takes("(") {
            return Some(Node { at, is: Part::Name(name) });
        }
        let mut arguments = self.arguments(")")?;
        if name == "has" && arguments.len() == 1 {
            return match arguments.remove(0).is {
                Part::Select { of, field, .. } => Some(Node { at: call_at, is: Part::Has { of, field } }),
                _ => None,
            };
        }
        Some(Node { at: call_at, is: Part::Call { target: None, name, arguments } })
    }

    fn arguments(&mut self, end: &str) -> Option<Vec<Node>> {
        let mut all = Vec::new();
        while !self.takes(end) {
            all.push(self.ternary()?);
            if !self.takes(",") && !matches!(self.peek(), Token::Sign(next) if *next == end) {
                return None;
            }
        }
        Some(all)
    }

    fn entries(&mut self) -> Option<Vec<(Item, Item)>> {
        let mut all = Vec::new();
        while !self.takes("}") {
            let is_optional = self.takes("?");
            let key = self.ternary()?;
            if !self.takes(":") {
                return None;
            }
            let value = self.ternary()?;
            let key = Item { at: key.at, is_optional: false, node: key };
            all.push((key, Item { at: value.at, is_optional, node: value }));
            if !self.takes(",") && !matches!(self.peek(), Token::Sign("}")) {
                return None;
            }
        }
        Some(all)
    }

    fn fields(&mut self) -> Option<Vec<(String, Item)>> {
        let mut all = Vec::new();
        while !self.takes("}") {
            let is_optional = self.takes("?");
            let name_at = self.at();
            let name = match self.take() {
                Token::Name(name) => name,
                Token::Quoted(name) => {
                    self.refuse(name_at, "unsupported syntax: '`'".into());
                    name
                }
                _ => return None,
            };
            let at = self.at();
            if !self.takes(":") {
                return None;
            }
            let node = self.ternary()?;
            all.push((name, Item { at, is_optional, node }));
            if !self.takes(",") && !matches!(self.peek(), Token::Sign("}")) {
                return None;
            }
        }
        Some(all)
    }

    /// A call with a target, or the macro that it is.
    fn method(&mut self, at: usize, target: Node, name: String, mut arguments: Vec<Node>) -> Node {
        let found = MACROS.iter().find(|(known, _, n_arguments)| *known == name && *n_arguments == arguments.len());
        let target = Box::new(target);
        let Some((_, n_declared, _)) = found else {
            return Node { at, is: Part::Call { target: Some(target), name, arguments } };
        };
        self.refused.extend(misnamed(&target, &name, &arguments[..*n_declared]));
        let declared = arguments.drain(..*n_declared).map(|node| match node.is {
            Part::Name(name) => name,
            // It is refused, and never looked at.
            _ => String::new(),
        });
        let declared = declared.collect();
        Node { at, is: Part::Loop { over: target, name, declared, arguments } }
    }
}

fn call(at: usize, name: &str, arguments: Vec<Node>) -> Node {
    Node { at, is: Part::Call { target: None, name: name.into(), arguments } }
}

/// What is wrong with the names that a macro declares, and with what it goes through.
fn misnamed(target: &Node, name: &str, declared: &[Node]) -> Option<Issue> {
    let issue = |at, why: String| Some(Issue { at, why: Why::Other(why) });
    let mut known: Vec<&str> = Vec::new();
    for node in declared {
        match &node.is {
            Part::Name(name) if name == "__result__" => {
                return issue(node.at, "iteration variable overwrites accumulator variable".into());
            }
            Part::Name(name) if known.contains(&name.as_str()) => {
                return issue(node.at, format!("duplicate variable name: {name}"));
            }
            Part::Name(name) if !is_reserved(name) => known.push(name),
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
        Part::List(_) | Part::Name(_) | Part::Loop { .. } | Part::Call { .. } | Part::Select { .. }
    );
    let kinds = "a list, identifier, comprehension, call or select expression";
    if name == "sortBy" && !is_list { issue(target.at, format!("sortBy can only be applied to {kinds}")) } else { None }
}
