//! An expression as a tree whose nodes know their places, with macros as they were written: reads words, hands on the tree.
//!
//! The parser of the evaluator hands out no places, which messages have. It has accepted the text before: what is wrong here is
//! what only the real server refuses.

use super::token::{Token, words};

#[derive(Debug)]
pub(super) struct Node {
    /// Where messages about it point, in letters from the beginning.
    pub(super) at: usize,
    pub(super) is: Part,
}

#[derive(Debug)]
pub(super) enum Part {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text(String),
    Bytes,
    Name(String),
    Select {
        of: Box<Node>,
        field: String,
        is_optional: bool,
    },
    Has {
        of: Box<Node>,
        field: String,
    },
    Call {
        target: Option<Box<Node>>,
        name: String,
        arguments: Vec<Node>,
    },
    List(Vec<Item>),
    Map(Vec<(Item, Item)>),
    Message {
        name: String,
        fields: Vec<(String, Item)>,
    },
    /// A macro with the names that it declares.
    Loop {
        over: Box<Node>,
        name: String,
        declared: Vec<String>,
        arguments: Vec<Node>,
    },
}

/// What may be left out, and where messages about it point.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) at: usize,
    pub(super) is_optional: bool,
    pub(super) node: Node,
}

/// Something that the real server refuses before it looks at types.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) at: usize,
    pub(super) why: String,
}

/// Words that are no names (`cel-go/parser/parser.go`).
const RESERVED: [&str; 15] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
];

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
pub(super) fn parse(text: &str) -> Option<Result<Node, Vec<Refused>>> {
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
    refused: Vec<Refused>,
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
        self.refused.push(Refused { at, why });
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
        // The sign of a number is a part of it, and the last one: where it stands decides nothing.
        let is_number = sign == "-" && matches!(self.peek(), Token::Int | Token::Double);
        let of = self.member()?;
        if n_signs % 2 == 0 || is_number {
            return Some(if is_number && matches!(of.is, Part::Int | Part::Double) {
                Node { at, is: of.is }
            } else {
                of
            });
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
                    method(call_at, node, field, arguments)
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
            } else if matches!(self.peek(), Token::Sign("{")) && is_name_of_message(&node) {
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
            Token::Int => simple(Part::Int),
            Token::Uint => simple(Part::Uint),
            Token::Double => simple(Part::Double),
            Token::Bytes => simple(Part::Bytes),
            Token::Text(text) => simple(Part::Text(text)),
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
            reserved if RESERVED.contains(&reserved) => {
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
            let (Token::Name(name) | Token::Quoted(name)) = self.take() else { return None };
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
}

fn call(at: usize, name: &str, arguments: Vec<Node>) -> Node {
    Node { at, is: Part::Call { target: None, name: name.into(), arguments } }
}

/// A call with a target, or the macro that it is.
fn method(at: usize, target: Node, name: String, mut arguments: Vec<Node>) -> Node {
    let found = MACROS.iter().find(|(known, n_declared, n_arguments)| {
        let are_names = |node: &Node| matches!(node.is, Part::Name(_));
        *known == name && *n_arguments == arguments.len() && arguments[..*n_declared].iter().all(are_names)
    });
    let target = Box::new(target);
    let Some((_, n_declared, _)) = found else {
        return Node { at, is: Part::Call { target: Some(target), name, arguments } };
    };
    let declared = arguments.drain(..*n_declared).filter_map(|node| match node.is {
        Part::Name(name) => Some(name),
        _ => None,
    });
    let declared = declared.collect();
    Node { at, is: Part::Loop { over: target, name, declared, arguments } }
}

fn is_name_of_message(node: &Node) -> bool {
    qualified(node).is_some()
}

/// `a.b.c`, where a node is that.
pub(super) fn qualified(node: &Node) -> Option<String> {
    match &node.is {
        Part::Name(name) => Some(name.clone()),
        Part::Select { of, field, is_optional: false } => Some(format!("{}.{field}", qualified(of)?)),
        _ => None,
    }
}
