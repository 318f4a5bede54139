//! Generates random Lua scripts: plain and hostile, complete and broken.

/// Generates random Lua. Depth and length are bounded, so that most scripts are short.
pub(crate) struct Generator {
    state: u64,
    depth: usize,
}

const FUNCTIONS: &[&str] = &[
    "assert",
    "error",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "xpcall",
    "select",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "print",
    "require",
    "setmetatable",
    "getmetatable",
    "load",
    "rawset",
    "string.byte",
    "string.char",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
    "table.concat",
    "table.getn",
    "table.insert",
    "table.maxn",
    "table.remove",
    "table.sort",
    "math.floor",
    "math.max",
    "math.random",
    "math.randomseed",
    "math.fmod",
    "math.ldexp",
    "math.frexp",
    "math.modf",
    "math.mod",
    "math.pow",
    "math.ceil",
    "os.date",
    "string.gfind",
    "string.dump",
    "require('kube').resourceAdd",
    "require('kube').getResourceQuantity",
    "require('kube').accuratePodRequirements",
    "require('kube').getPodDependencies",
    "package.loaders[1]",
    "package.loadlib",
    "_printregs",
];

const LITERALS: &[&str] = &[
    "nil",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "3",
    "1.5",
    "1e15",
    "-1e308",
    "1/0",
    "0/0",
    "2^53",
    "1e9",
    "{}",
    "{1, 2, 3}",
    "{x = 1}",
    "{1, nil, 3}",
    "''",
    "'x'",
    "'abc'",
    "'10'",
    "'1Gi'",
    "'100m'",
    "'-1'",
    "'%d %s %5.2f %q'",
    "'%999999999d'",
    "'%'",
    "'(.-)%1'",
    "'%b()'",
    "'[a-'",
    "'a*a*a*b'",
    "'^(%w+)=(%d+)$'",
    "'%f[%a]'",
    "'()'",
    "'\\0\\255'",
    "'!%Y-%m-%d'",
    "'*t'",
    "'kube'",
    "'#'",
    "a",
    "b",
    "c",
    "S",
    "T",
    "o",
    "o.spec",
    "o.spec.list",
    "o.spec.missing",
    "string",
    "_G",
    "math.huge",
    "print",
    "function() end",
    "function(...) return ... end",
    "function(x) return x end",
    "{spec = {containers = {{name = 'c', resources = {limits = {cpu = 1}}}}}}",
    "{spec = 1}",
];

const OPERATORS: &[&str] = &["+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", "and", "or"];

/// Statements that attack a limit: endless loops, unbounded growth, or access beyond the inputs.
const HOSTILE: &[&str] = &[
    "while true do end",
    "repeat pcall(error) until false",
    "while true do pcall(function() while true do end end) end",
    "local function f() return f() end f()",
    "local function f() return 1 + f() end f()",
    "local function f() return pcall(f) end f()",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = t end",
    "local t = {} for i = 1, 1e9 do t[i] = tostring(i) end",
    "local t = {} t.t = t T = t",
    "string.find(S .. S .. S, '.-.-.-.-.-.-.-.-b$')",
    "string.match(string.format('%9999s', 'a'), '(a*)*b')",
    "for w in string.gmatch(S, '.-') do end",
    "table.concat(T, S, -1e9, 1e9)",
    "table.sort(T, function() return true end)",
    "table.sort(T, function() error(T) end)",
    "table.insert(T, -2^31, 1)",
    "unpack(T, 1, 1e8)",
    "unpack({}, -2^31, 2^31)",
    "string.char(unpack(T, 1, 250))",
    "tostring(1/0) .. tostring(0/0)",
    "_G.string.find = nil",
    "_G.pairs = function() end",
    "string.sub = string.upper",
    "string.format('%s', setmetatable)",
    "error({error = error})",
    "error()",
    "pcall(pcall, pcall, pcall)",
    "xpcall(error, error)",
    "xpcall(function() error() end, function() while true do end end)",
    "require('os')",
    "package.loaded.os = nil",
    "package.preload.x = function() while true do end end require('x')",
    "os.date(S)",
    "goto done ::done::",
    "o.self = o",
    "for k in pairs(o) do o[k .. 'x'] = o end",
    "next(o, 'nothing')",
    "select(-1)",
    "select('#', unpack(T, 1, 200))",
    "table.insert({}, -2^31, 1)",
    "table.insert(T, 0/0, 1)",
    "table.sort(T, next)",
    "for i = 1, 5000 do T[i] = L end table.sort(T)",
    "for i = 1, 7000 do T[i] = L end print(unpack(T))",
    "for i = 1, 7000 do T[i] = L end string.format('%.1s%.1s%.1s', unpack(T))",
    "for i = 1, 7000 do T[i] = L end pcall(table.concat, T, L)",
    "for i = 1, 7000 do T[i] = L end require('kube').resourceAdd(unpack(T))",
    "string.find(L, '%f[' .. L .. ']y')",
    "string.match(L, string.reverse(L))",
    "for i = 1, 1e9 do a = L .. L .. i end",
    "for i = 1, 1e9 do T[L .. i] = L end",
    "for i = 1, 1e9 do a = L .. 'x' < L .. 'y' end",
    "for i = 1, 1e9 do T[i + 0.5], T[i - 0.5] = i, nil end",
    "for i = 1, 1e9 do pcall(error, L .. i) end",
    "for i = 1, 1e9 do local t = {} for k = 1, 500 do t = {t} end end",
    "string.__index = function(s, k) return s[k] end pcall(function() return S.x end)",
    "string.__index = S pcall(function() return S.x end)",
    "string.__tostring = function(s) return tostring(s) end pcall(tostring, S)",
    "string.__add = function(a, b) return a + b end pcall(function() return S + 1 end)",
    "string.__lt = 1 string.__concat = S string.__call = S pcall(S)",
    "string.__eq, string.__unm, string.__len, string.__mode, string.__gc = error, error, error, 'kv', error",
    "package.loaders = nil pcall(require, 'x')",
    "package.loaders[1] = function(name) return require(name .. 'x') end pcall(require, 'x')",
    "o.spec.self, o.spec.list = o.spec, {o.spec.list, nil, o.spec.list}",
    "local function f(...) return f(1, ...) end f()",
    "local function f(e) error(e .. L) end xpcall(function() f('x') end, f)",
    "local f = function() end for i = 1, 150 do local g = f f = function() return g(), g end end f()",
    "os.date(string.rep and L or S, -2^63)",
    "os.time({year = 1e308, month = -1e308, day = 0/0, hour = 1/0, min = 2^63, sec = -2^63})",
];

/// Numbers and strings at the limits of types in C and Rust.
const EXTREMES: &[&str] = &[
    "0/0",
    "1/0",
    "-1/0",
    "-0",
    "0.5",
    "-1",
    "255",
    "256",
    "2^24",
    "2^31 - 1",
    "2^31",
    "-2^31",
    "-2^31 - 1",
    "2^32",
    "2^53 + 1",
    "2^63",
    "-2^63",
    "2^64",
    "1e308",
    "-1e308",
    "5e-324",
    "math.huge",
    "-math.huge",
    "''",
    "L",
    "L .. L",
    "'\\0'",
    "'%'",
    "'%s%s%s%s%s%s%s%s'",
    "'%999999999.999999999s'",
    "'%-+ #01000.1000f'",
    "'%.999f'",
    "'%q'",
    "'%b'",
    "'%f'",
    "'%1'",
    "'(()'",
    "'[^]'",
    "'[%'",
    "'.-.-.-.-.-x'",
    "'1' .. L",
    "'0x' .. L",
    "'1e999999999'",
    "'-1e-999999999Ki'",
    "'9223372036854775808'",
    "'*t'",
    "'!%c%c%c'",
    "{}",
    "T",
    "o",
    "print",
    "error",
    "nil",
];

/// Tokens that can occur anywhere in a broken script.
const TOKENS: &[&str] = &[
    "end", "do", "function", "local", "return", "if", "then", "else", "for", "in", "while", "repeat", "until", "not",
    "goto", "::x::", "(", ")", "((((((((", "{", "}", "{{{{{{{{", "[", "]", "[[", "]]", "[==[", "--", "--[[", "'", "\"",
    "\\", ";", ",", "...", "..", "=", "==", "~=", "#", "-", "0x", "1e", "1e999", "\0", "\u{7f}", "\u{fffd}", "\x1bLua",
];

impl Generator {
    /// Returns a script that contains hostile statements in three of four cases, and is broken in one of two.
    pub(crate) fn mutate_script(&mut self) -> String {
        let mut script = self.script();
        let hostile = match self.below(4) {
            0 => String::new(),
            1 => self.pick(HOSTILE).to_owned(),
            2 => (0..=self.below(4)).map(|_| self.extreme_call()).collect::<Vec<_>>().join("; "),
            _ => format!("{}; {}", self.extreme_call(), self.pick(HOSTILE)),
        };
        if !hostile.is_empty() {
            let long = format!("local L = S while #L < {} do L = L .. L end", 1 << self.below(20));
            script = script.replacen("do return", &format!("{long} {hostile} do return"), 1);
        }
        if self.below(2) == 0 {
            return script;
        }
        for _ in 0..=self.below(3) {
            let mut parts: Vec<&str> = script.split_inclusive([' ', '(', ',', '\n']).collect();
            if parts.is_empty() {
                break;
            }
            let at = self.below(parts.len());
            match self.below(6) {
                0 => parts.truncate(at),
                1 => _ = parts.remove(at),
                2 => parts.insert(at, self.pick(TOKENS)),
                3 => parts[at] = self.pick(TOKENS),
                4 => {
                    let other = self.below(parts.len());
                    parts.swap(at, other);
                }
                _ => {
                    let (n, part) = (1 << self.below(9), parts[at]);
                    parts.splice(at..at, std::iter::repeat_n(part, n));
                }
            }
            script = parts.concat();
        }
        script
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, depth: 0 }
    }

    /// Returns a number below `n`, by xorshift.
    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap_or(0) % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    pub(crate) fn script(&mut self) -> String {
        let (mut body, mut result) = (self.block(), self.expression());
        // Most random calls fail. Half of the scripts catch the error, so that they return a result.
        if self.below(2) == 0 {
            body = format!("pcall(function() {body} end)");
            result = format!("{{(pcall(function() return {result} end)), type(a), #T}}");
        }
        let mut script = format!(
            "local a, b, c, S, T = 1, {{}}, 'x', 'ab', {{}}
             for i = 1, 12 do S = S .. S T[i] = i end
             function ReflectStatus(o, ...)
               {body}
               do return {{r = {result}}} end
             end"
        );
        // Some scripts are truncated, so that the parser is tested as well.
        if self.below(8) == 0 {
            let at = self.below(script.len());
            script.truncate((0..=at).rev().find(|at| script.is_char_boundary(*at)).unwrap_or(0));
        }
        script
    }

    fn block(&mut self) -> String {
        let n = self.below(4) + 1;
        (0..n).map(|_| self.statement()).collect::<Vec<_>>().join("\n")
    }

    fn statement(&mut self) -> String {
        self.depth += 1;
        let (variable, expression) = (
            self.pick(&["a", "b", "c", "g", "o.spec", "T[1]", "string.upper", "table.concat", "_G.pairs"]),
            self.expression(),
        );
        let statement = match self.below(if self.depth > 4 { 4 } else { 14 }) {
            0 | 1 => format!("{variable} = {expression}"),
            2 => format!("local {} = {expression}", self.pick(&["a", "b", "c", "x"])),
            3 => self.call(),
            4 => format!("if {expression} then {} else {} end", self.block(), self.block()),
            5 => format!("while {expression} do {} end", self.block()),
            6 => format!("for i = 1, {} do {} end", self.expression(), self.block()),
            7 => format!("for k, v in pairs({expression}) do {} end", self.block()),
            8 => format!("for m in ({expression}):gmatch({}) do {} end", self.expression(), self.block()),
            9 => format!("a, b = pcall(function() {} end)", self.block()),
            10 => format!("c = {{xpcall(function() {} end, function(e) {} end)}}", self.block(), self.block()),
            11 => format!("local function f(...) {} return f(...) end a = pcall(f, {expression})", self.block()),
            12 => format!("for i = 1, 3 do if {expression} then goto c end {} ::c:: end", self.block()),
            _ => format!("b = {{pcall(unpack, T, {expression}, {})}}", self.expression()),
        };
        self.depth -= 1;
        statement
    }

    fn call(&mut self) -> String {
        let n_args = self.below(4);
        let args = (0..n_args).map(|_| self.expression()).collect::<Vec<_>>().join(", ");
        let function = self.pick(FUNCTIONS);
        match (self.below(3), n_args) {
            (0, 0) => format!("pcall({function})"),
            (0, _) => format!("pcall({function}, {args})"),
            _ => format!("{function}({args})"),
        }
    }

    /// Returns a call of a library function with extreme arguments.
    fn extreme_call(&mut self) -> String {
        let args: Vec<&str> = (0..self.below(5)).map(|_| self.pick(EXTREMES)).collect();
        let args = args.join(", ");
        // `os.time` is not in `FUNCTIONS`, because a random script must return the same result twice.
        let function = if self.below(FUNCTIONS.len()) == 0 { "os.time" } else { self.pick(FUNCTIONS) };
        match self.below(3) {
            0 => format!("{function}({args})"),
            1 => format!("a = {{pcall(function() return {function}({args}) end)}}"),
            _ => format!("for i = 1, 1e9 do pcall(function() b = {function}({args}) end) end"),
        }
    }

    fn expression(&mut self) -> String {
        self.depth += 1;
        let expression = match self.below(if self.depth > 5 { 3 } else { 9 }) {
            0..=2 => self.pick(LITERALS).to_owned(),
            3 | 4 => self.call(),
            5 => format!("({} {} {})", self.expression(), self.pick(OPERATORS), self.expression()),
            6 => format!("{{{}, {}}}", self.expression(), self.call()),
            7 => format!(
                "({}):{}({})",
                self.expression(),
                self.pick(&["upper", "sub", "find", "match", "byte", "format", "rep"]),
                self.expression()
            ),
            _ => format!("{}{}", self.pick(&["#", "-", "not "]), self.pick(&["a", "b", "c", "S", "T", "o"])),
        };
        self.depth -= 1;
        expression
    }
}
