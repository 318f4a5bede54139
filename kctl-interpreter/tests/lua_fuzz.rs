//! Thousands of random scripts, many of them hostile: none crashes or hangs the process, none changes another's answer.
//!
//! The generator is seeded and the limit is one of steps, so every machine runs the same scripts to the same ends.
#![cfg(feature = "lua")]

use std::time::Duration;

use kctl_interpreter::lua::{ErrorClass, Inputs, Limits, Pool, Script};
use serde_json::{Value, json};

const N_SCRIPTS: u64 = 2000;

/// Scripts between two looks at the probe.
const PROBE_INTERVAL: u64 = 50;

#[test]
fn random_scripts_neither_crash_nor_hang_nor_leak() {
    let limits = Limits { time: Duration::from_secs(60), steps: 10_000, memory_bytes: 4 << 20 };
    let pool = Pool::new(limits);
    let probe_source = "function ReflectStatus(o)
        n = (n or 0) + 1
        local sum = require('kube').resourceAdd('1', '500m')
        return {n = n, upper = ('x'):upper(), sum = sum, found = string.match('a=1', '%w+=(%d+)'), keys = o.spec.list}
      end";
    let probe = Script::compile(probe_source, "ReflectStatus").expect("the probe is Lua");
    let expected = run(&pool, &probe);
    assert!(expected.is_ok());
    let mut n_ok = 0;
    for seed in 0..N_SCRIPTS {
        let source = Generator::new(seed).script();
        let Ok(script) = Script::compile(&source, "ReflectStatus") else { continue };
        let first = run(&pool, &script);
        n_ok += usize::from(first.is_ok());
        let second = run(&pool, &script);
        let is_same = match (&first, &second) {
            (Ok(first), Ok(second)) => first == second || has_address(first),
            // A run stops within some hundred steps of its limit, and how much garbage it meets is the last one's.
            (Err(ErrorClass::Timeout | ErrorClass::Memory), _) | (_, Err(ErrorClass::Timeout | ErrorClass::Memory)) => {
                true
            }
            (first, second) => first == second,
        };
        assert!(is_same, "seed {seed}: {first:?} then {second:?}\n{source}");
        if seed % PROBE_INTERVAL == 0 {
            assert_eq!(run(&pool, &probe), expected, "after seed {seed}:\n{source}");
        }
    }
    assert!(n_ok > 100, "{n_ok} scripts gave an answer: the generator makes nothing but errors");
}

/// Scripts of the run with mutations; `LUA_FUZZ_SCRIPTS` asks for more, `LUA_FUZZ_SEED` for others.
const N_MUTATED: u64 = 3000;
/// How much more memory the process may hold after a run than after its first part: states wait in a pool of bounded size.
const GROWTH_MAX: u64 = 96 << 20;
/// No script takes longer, whatever the load of the machine: its own limit is 5 ms.
const RUN_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn hostile_and_broken_scripts_neither_crash_nor_hang_nor_leak() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("it is a number"));
    let (first, n_scripts) =
        (number("LUA_FUZZ_SEED").unwrap_or(1 << 32), number("LUA_FUZZ_SCRIPTS").unwrap_or(N_MUTATED));
    let limits = Limits { time: Duration::from_millis(5), steps: 50_000, memory_bytes: 4 << 20 };
    let pool = Pool::new(limits);
    let (mut n_answers, mut n_errors, mut n_refused, mut held) = (0_u64, 0_u64, 0_u64, None);
    let mut longest = Duration::ZERO;
    for seed in first..first + n_scripts {
        let source = Generator::new(seed).mutated();
        let start = tokio::time::Instant::now();
        match Script::compile(&source, "ReflectStatus") {
            Err(_) => n_refused += 1,
            Ok(script) if run(&pool, &script).is_ok() => n_answers += 1,
            Ok(_) => n_errors += 1,
        }
        longest = longest.max(start.elapsed());
        assert!(start.elapsed() < RUN_WITHIN, "seed {seed} took {:?}\n{source}", start.elapsed());
        if seed == first + n_scripts / 10 {
            held = resident();
        }
    }
    let growth = resident().zip(held).map_or(0, |(now, held)| now.saturating_sub(held));
    eprintln!(
        "{n_scripts} scripts: {n_answers} answers, {n_errors} errors, {n_refused} do not compile; the longest took {longest:?}, {growth} bytes more are held"
    );
    assert!(growth < GROWTH_MAX, "{growth} bytes");
    let least = n_scripts / 50;
    assert!(n_answers > least && n_errors > least && n_refused > least, "{n_answers}, {n_errors}, {n_refused}");
}

/// The bytes that the process holds, where the system says so.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns whether the value shows where a table is in memory.
fn has_address(value: &Value) -> bool {
    value.to_string().contains("0x")
}

fn run(pool: &Pool, script: &Script) -> Result<Value, ErrorClass> {
    let object = json!({"kind": "Widget", "spec": {"replicas": 2, "list": [1, "x", {"k": []}], "s": "text"}});
    let inputs = Inputs { desired: Some(&object), ..Inputs::default() };
    pool.interpret("InterpretStatus", script, &inputs).map_err(|error| error.class())
}

/// Writes random Lua. Depth and length are bounded, so that most scripts are short.
struct Generator {
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
    "os.date",
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

/// What a script does that wants to harm: without an end, without a bound, or past what was given to it.
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
];

/// What stands anywhere in a broken script.
const TOKENS: &[&str] = &[
    "end", "do", "function", "local", "return", "if", "then", "else", "for", "in", "while", "repeat", "until", "not",
    "goto", "::x::", "(", ")", "((((((((", "{", "}", "{{{{{{{{", "[", "]", "[[", "]]", "[==[", "--", "--[[", "'", "\"",
    "\\", ";", ",", "...", "..", "=", "==", "~=", "#", "-", "0x", "1e", "1e999", "\0", "\u{7f}", "\u{fffd}", "\x1bLua",
];

impl Generator {
    /// A script with something hostile in half of the cases, and something broken in half of them.
    fn mutated(&mut self) -> String {
        let mut script = self.script();
        if self.below(2) == 0 {
            let hostile = self.pick(HOSTILE);
            script = script.replacen("do return", &format!("{hostile} do return"), 1);
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

    fn new(seed: u64) -> Self {
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

    fn script(&mut self) -> String {
        let (mut body, mut result) = (self.block(), self.expression());
        // Most random calls are mistakes: half of the scripts catch theirs and give an answer.
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
        // Some scripts are torn, so that the parser has its share.
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
