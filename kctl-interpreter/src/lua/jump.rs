//! Rewrites `goto`, which gopher-lua has and Lua 5.1 lacks, as loops that run once.
//!
//! `goto continue … ::continue::` becomes `repeat … break … until true`. Scripts only use jumps forward out of blocks.
//! A source with other jumps (backward, out of an inner loop, across one another) is not rewritten, and Lua reports the
//! first of them as a syntax error. Line numbers do not change.

use std::borrow::Cow;

use super::tokens::{Edit, Token, apply, tokens};

/// Rewrites the jumps of a source. A source without jumps, or with jumps that can't be rewritten, is returned
/// unchanged.
pub(super) fn rewrite(source: &str) -> Cow<'_, str> {
    // Most sources have no jumps, and are not even scanned.
    if !source.contains("goto") {
        return Cow::Borrowed(source);
    }
    let Some(scan) = Scan::new(source) else { return Cow::Borrowed(source) };
    match scan.regions() {
        Some(regions) if !regions.is_empty() && are_independent(&regions) => {
            Cow::Owned(scan.rewrite_regions(source, &regions))
        }
        _ => Cow::Borrowed(source),
    }
}

/// Maximum nesting of blocks, the same as in Lua itself.
const DEPTH_MAX: usize = 200;

/// Maximum number of jumps, labels and breaks: pairing them takes quadratic time.
const JUMP_TOKENS_MAX: usize = 2000;

/// A block that is open: what opened it, where, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    kind: Kind,
    start: usize,
    id: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `for` or `while` before its `do`.
    Header,
    /// The body of a loop.
    Loop,
    /// The body of `repeat`. Its condition can use the locals of the body.
    Repeat,
    Function,
    /// `if` or `do`.
    Plain,
}

impl Kind {
    /// Returns `true` if a `break` in the block does not leave it, or if no jump can leave it.
    fn is_barrier(self) -> bool {
        matches!(self, Self::Loop | Self::Repeat | Self::Function)
    }
}

/// A `goto`, a label or a `break`: where it is and the blocks around it, the outermost first.
struct JumpToken<'a> {
    start: usize,
    end: usize,
    name: &'a str,
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Scan<'a> {
    gotos: Vec<JumpToken<'a>>,
    labels: Vec<JumpToken<'a>>,
    breaks: Vec<JumpToken<'a>>,
}

/// The text that becomes the body of a loop: from the statement with the first jump to the label.
struct Region<'a> {
    start: usize,
    label: &'a JumpToken<'a>,
}

/// The block of the whole source.
const MAIN: Block = Block { kind: Kind::Function, start: 0, id: 0 };

impl<'a> Scan<'a> {
    /// Scans a source. Returns `None` if it exceeds a bound.
    fn new(source: &'a str) -> Option<Self> {
        let (mut scan, mut blocks, mut n_blocks) = (Self::default(), vec![MAIN], 1);
        let mut tokens = tokens(source).peekable();
        while let Some(token) = tokens.next() {
            let Token { start, mut end, text } = token;
            let kind = match text {
                "for" | "while" => Some(Kind::Header),
                "repeat" => Some(Kind::Repeat),
                "function" => Some(Kind::Function),
                "if" => Some(Kind::Plain),
                "do" => match blocks.last_mut() {
                    Some(block) if block.kind == Kind::Header => {
                        block.kind = Kind::Loop;
                        None
                    }
                    _ => Some(Kind::Plain),
                },
                _ => None,
            };
            if let Some(kind) = kind {
                blocks.push(Block { kind, start, id: n_blocks });
                n_blocks += 1;
            }
            if matches!(text, "end" | "until") && blocks.len() > 1 {
                blocks.pop();
            }
            let (found, name) = match text {
                "break" => (&mut scan.breaks, text),
                "goto" => match tokens.next_if(Token::is_name) {
                    Some(label) => {
                        end = label.end;
                        (&mut scan.gotos, label.text)
                    }
                    None => continue,
                },
                text if text.starts_with("::") => (&mut scan.labels, text.trim_matches(':').trim()),
                _ => continue,
            };
            found.push(JumpToken { start, end, name, blocks: blocks.clone() });
            if blocks.len() > DEPTH_MAX || scan.n_jump_tokens() > JUMP_TOKENS_MAX {
                return None;
            }
        }
        Some(scan)
    }

    fn n_jump_tokens(&self) -> usize {
        self.gotos.len() + self.labels.len() + self.breaks.len()
    }

    /// Returns a region for each label with a `goto`, or `None` if a jump has no region.
    fn regions(&self) -> Option<Vec<Region<'_>>> {
        let mut regions: Vec<Region<'_>> = Vec::new();
        for jump in &self.gotos {
            let is_target = |label: &&JumpToken<'_>| {
                label.name == jump.name && label.start > jump.start && jump.blocks.starts_with(&label.blocks)
            };
            let label = self.labels.iter().find(is_target)?;
            let inner = &jump.blocks[label.blocks.len()..];
            if inner.iter().any(|block| block.kind.is_barrier()) {
                return None;
            }
            let start = inner.first().map_or(jump.start, |block| block.start);
            match regions.iter_mut().find(|region| region.label.start == label.start) {
                Some(region) => region.start = region.start.min(start),
                None => regions.push(Region { start, label }),
            }
        }
        Some(regions)
    }

    fn rewrite_regions(&self, source: &str, regions: &[Region<'_>]) -> String {
        let mut edits: Vec<Edit> = Vec::new();
        for (idx, region) in regions.iter().enumerate() {
            let flag = format!("goto_{idx}_broke");
            let breaks: Vec<&JumpToken<'_>> = self.breaks.iter().filter(|token| region.contains_break(token)).collect();
            let (before, after) = if breaks.is_empty() {
                ("repeat ".to_owned(), "until true ".to_owned())
            } else {
                (format!("local {flag} repeat "), format!("until true if {flag} then break end "))
            };
            edits.push((region.start, region.start, before));
            edits.push((region.label.start, region.label.end, after));
            edits.extend(breaks.iter().map(|token| (token.start, token.end, format!("do {flag} = true break end"))));
        }
        edits.extend(self.gotos.iter().map(|jump| (jump.start, jump.end, "do break end".to_owned())));
        // Removes labels without a `goto`.
        let unused = self.labels.iter().filter(|label| regions.iter().all(|region| region.label.start != label.start));
        edits.extend(unused.map(|label| (label.start, label.end, String::new())));
        apply(source, edits)
    }
}

impl Region<'_> {
    /// Returns `true` if the region lies between a `break` and the loop that it leaves.
    fn contains_break(&self, token: &JumpToken<'_>) -> bool {
        (self.start..self.label.start).contains(&token.start)
            && token.blocks.starts_with(&self.label.blocks)
            && !token.blocks[self.label.blocks.len()..].iter().any(|block| block.kind.is_barrier())
    }
}

/// Returns `true` unless a region contains another region without a loop or function in between. A `break` in the inner
/// region would then leave only one of the two loops that replace them.
fn are_independent(regions: &[Region<'_>]) -> bool {
    regions.iter().enumerate().all(|(idx, outer)| {
        regions.iter().enumerate().all(|(other, inner)| {
            let is_apart = inner.label.start < outer.start || inner.start > outer.label.start;
            let is_inside = inner.start >= outer.start && inner.label.start < outer.label.start;
            let between = inner.label.blocks.get(outer.label.blocks.len()..).unwrap_or_default();
            idx == other
                || is_apart
                || (is_inside && between.iter().any(|block| block.kind.is_barrier()))
                || (outer.start >= inner.start && outer.label.start < inner.label.start)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    fn run(body: &str) -> String {
        let source =
            format!("local t = {{}} local function add(x) t[#t + 1] = x end {body} return table.concat(t, ' ')");
        let rewritten = rewrite(&source);
        let lua = mlua::Lua::new();
        lua.load(&*rewritten).eval().unwrap_or_else(|error| format!("{error}\n{rewritten}"))
    }

    #[test]
    fn jumps_forward_do_what_they_say() {
        for (body, expected) in [
            ("for i = 1, 4 do if i % 2 == 0 then goto continue end add(i) ::continue:: end", "1 3"),
            ("for i = 1, 9 do if i == 2 then goto next end if i == 4 then break end add(i) ::next:: end", "1 3"),
            (
                "local i = 0 while i < 4 do i = i + 1 if i == 2 then if true then goto c end end add(i) :: c :: end",
                "1 3 4",
            ),
            (
                "for i = 1, 2 do for j = 1, 3 do if j == 2 then goto continue end add(i .. j) ::continue:: end end",
                "11 13 21 23",
            ),
            (
                "for i = 1, 2 do if i == 1 then goto c end for j = 1, 2 do if j == 1 then goto c end add(j) ::c:: end ::c:: end",
                "2",
            ),
            ("for _, x in ipairs({1, 2}) do local y = x if y == 1 then goto c end add(y) ::c:: end", "2"),
            ("do if true then goto done end add('no') ::done:: end add('after')", "after"),
            ("add(1) goto out add(2) ::out:: add(3)", "1 3"),
            ("for i = 1, 2 do (function() if i == 1 then goto e end add(i) ::e:: end)() end", "2"),
            ("for i = 1, 3 do if i == 1 then goto c end if i == 2 then goto c end add(i) ::c:: end", "3"),
            (
                "local s = 'goto x' -- goto y\n add(s) --[[ goto z ]] add([==[::a::]==]) for i = 1, 2 do goto c add(i) ::c:: end",
                "goto x ::a::",
            ),
            ("local o = {['goto'] = 1, x = 'a\\'b goto'} for i = 1, 1 do goto c ::c:: end add(o.x)", "a'b goto"),
            ("::unused:: for i = 1, 1 do goto c add(1) ::c:: end add(2)", "2"),
        ] {
            assert_eq!(run(body), expected, "{body}");
        }
    }

    #[test]
    fn other_jumps_remain_syntax_errors() {
        for body in [
            "::top:: if x then goto top end",
            "for i = 1, 2 do for j = 1, 2 do goto outer end ::outer:: end",
            "goto nowhere",
            "for i = 1, 2 do if i == 1 then goto a end if i == 2 then goto b end ::a:: add(i) ::b:: end",
            "(function() goto out end)() ::out::",
        ] {
            assert_eq!(rewrite(body), body);
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let source = "for i = 1, 2 do\n  goto\n  c\n  ::c\n  ::\nend\nerror('here')";
        let error = mlua::Lua::new().load(&*rewrite(source)).set_name("=s").exec().unwrap_err().to_string();
        assert!(error.contains("s:7: here"), "{error}");
    }

    #[test]
    fn source_beyond_the_bounds_is_not_rewritten() {
        let jump = "for i = 1, 2 do goto c add(i) ::c:: end ";
        assert_ne!(rewrite(&jump.repeat(900)), jump.repeat(900));
        assert_eq!(rewrite(&jump.repeat(1001)), jump.repeat(1001));
        let deep = format!("{} {jump} {}", "do ".repeat(300), "end ".repeat(300));
        assert_eq!(rewrite(&deep), deep);
    }

    #[test]
    fn source_without_jumps_is_not_rewritten() {
        for source in ["return 1", "local goto_x = 1", "goto = 1", "", "x = 'goto'", "[[", "--[[ goto", "'goto"] {
            assert_eq!(rewrite(source), source);
        }
    }
}
