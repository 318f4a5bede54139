//! Hostile scripts: each attempt fails with the error of the limit that it hits, and does not affect the next run.

use std::time::Duration;

use kctl_interpreter::lua::{ErrorClass, Limits, Pool, Script, ScriptInputs};
use serde_json::{Value, json};

/// Returns limits that count steps instead of time. Ordinary tests are far below them, and hostile scripts hit them
/// soon.
fn limits() -> Limits {
    Limits::default().time(Duration::from_secs(60)).steps(3_000_000).memory_bytes(8 << 20)
}

/// Runs `body` as the body of `ReflectStatus(o)`. Returns the status, or the class and message of the error.
fn status(pool: &Pool, body: &str) -> Result<Value, (ErrorClass, String)> {
    let source = format!("function ReflectStatus(o) {body}\nend");
    let describe = |error: kctl_interpreter::lua::ScriptError| (error.class(), error.to_string());
    let script = Script::compile(&source, "ReflectStatus").map_err(describe)?;
    run(pool, &script).map_err(describe)
}

fn run(pool: &Pool, script: &Script) -> Result<Value, kctl_interpreter::lua::ScriptError> {
    let object = json!({"kind": "Widget", "spec": {"replicas": 2}});
    let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
    pool.interpret("InterpretStatus", script, &inputs).map(|mut value| value["status"].take())
}

/// Checks that each attempt fails with an error of its class.
fn check(attempts: &[(&str, ErrorClass)]) {
    let pool = Pool::new(limits());
    for (attempt, class) in attempts {
        match status(&pool, attempt) {
            Err((got, _)) if got == *class => {}
            got => panic!("{attempt}: {got:?}, expected {class:?}"),
        }
    }
}

#[test]
fn step_limit_ends_scripts_that_catch_errors() {
    check(&[
        ("while true do end", ErrorClass::Timeout),
        ("repeat until false", ErrorClass::Timeout),
        ("for i = 1, 1e15 do end", ErrorClass::Timeout),
        ("pcall(function() while true do end end) return {}", ErrorClass::Timeout),
        ("while true do pcall(function() while true do end end) end", ErrorClass::Timeout),
        ("while true do xpcall(function() while true do end end, function(e) return e end) end", ErrorClass::Timeout),
        ("xpcall(function() error('x') end, function(e) while true do end end) return {}", ErrorClass::Timeout),
        ("while true do pcall(pcall, pcall, function() while true do end end) end", ErrorClass::Timeout),
        ("local function f() return pcall(f) end while true do f() end", ErrorClass::Timeout),
        ("while true do pcall(error, {}) end", ErrorClass::Timeout),
        ("while true do pcall(error, 'context deadline exceeded') end", ErrorClass::Timeout),
        ("table.sort({3, 2, 1}, function() while true do end end)", ErrorClass::Timeout),
        (
            "local t = {} for i = 1, 1e4 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end",
            ErrorClass::Timeout,
        ),
        ("local t = {} for i = 1, 1e4 do t[i] = i end while true do table.sort(t) end", ErrorClass::Timeout),
        ("local s = 'x' while true do s = string.sub(s .. s, 1, 400000) end", ErrorClass::Timeout),
        (
            "local s = 'a' for i = 1, 6 do s = s .. s end return {x = string.find(s, '(.-)(.-)(.-)(.-)(.-)(.-)b')}",
            ErrorClass::Timeout,
        ),
        (
            "local s = 'a' for i = 1, 15 do s = s .. s end for m in s:gmatch('a*a*a*b') do end return {}",
            ErrorClass::Timeout,
        ),
        (
            "local s = 'a' for i = 1, 15 do s = s .. s end pcall(string.match, s, 'a*a*a*b') return {}",
            ErrorClass::Timeout,
        ),
        ("while true do string.format('%1000d', 1) end", ErrorClass::Timeout),
        ("while true do os.date('%Y') end", ErrorClass::Timeout),
        (
            "local k = require('kube') while true do pcall(k.accuratePodRequirements, {spec = {containers = {}}}) end",
            ErrorClass::Timeout,
        ),
    ]);
}

#[test]
fn memory_limit_ends_scripts_that_catch_errors() {
    let bomb = "local function bomb() local t = {} for i = 1, 1e9 do t[i] = {i} end end ";
    check(&[
        (&format!("{bomb} bomb()"), ErrorClass::Memory),
        (&format!("{bomb} pcall(bomb) return {{}}"), ErrorClass::Memory),
        (&format!("{bomb} while true do pcall(bomb) end"), ErrorClass::Memory),
        (&format!("{bomb} xpcall(bomb, function(e) return e end) return {{}}"), ErrorClass::Memory),
        ("local s = 'x' while true do s = s .. s end", ErrorClass::Memory),
        ("local s = 'x' pcall(function() while true do s = s .. s end end) return {}", ErrorClass::Memory),
        (
            "local s, t = 'x', {} for i = 1, 19 do s = s .. s end for i = 1, 100 do t[i] = s end return t",
            ErrorClass::Memory,
        ),
    ]);
}

#[test]
fn script_mistakes_have_their_error_class() {
    check(&[
        ("local function f(n) return 1 + f(n + 1) end return {n = f(1)}", ErrorClass::Runtime),
        ("local function f() return pcall(f) end f() error('after')", ErrorClass::Runtime),
        ("local function f() pcall(f) end f() error('after')", ErrorClass::Runtime),
        ("return {pcall(unpack, {}, 1, 1e8)}, error('after')", ErrorClass::Runtime),
        ("return {unpack({}, 1, 1e8)}", ErrorClass::Runtime),
        ("local s = 'x' for i = 1, 21 do s = s .. s end return {string.upper(s)}", ErrorClass::Runtime),
        (
            "local s, t = 'x', {} for i = 1, 18 do s = s .. s end for i = 1, 30 do t[i] = s end return {table.concat(t)}",
            ErrorClass::Runtime,
        ),
        ("return {string.rep('x', 1e9)}", ErrorClass::Runtime),
        ("return {string.gsub('x', 'x', 'y')}", ErrorClass::Runtime),
        ("error({code = 1})", ErrorClass::Runtime),
        ("error(nil)", ErrorClass::Runtime),
        ("error(setmetatable({}, {__tostring = function() while true do end end}))", ErrorClass::Runtime),
        ("local t = {} for i = 1, 300 do t = {t} end return t", ErrorClass::WrongResult),
        ("return {f = function() end}", ErrorClass::WrongResult),
    ]);
}

#[test]
fn format_rejects_strings_that_the_library_rejects() {
    let pool = Pool::new(limits());
    // Half of the limit and a bit.
    let long = "local s = '\\1' for i = 1, 19 do s = s .. s end";
    for (format, is_read) in [("'%.1s', s", true), ("'%.1s', s .. s", false), ("'%q', s .. s", false)] {
        let answer = status(&pool, &format!("{long} return {{ n = #string.format({format}) }}"));
        let expected = "exceeds the maximum of 1000000 for the string library";
        let is_rejected = answer.as_ref().is_err_and(|(_class, text)| text.contains(expected));
        assert_eq!((answer.is_ok(), is_rejected), (is_read, !is_read), "{format}: {answer:?}");
    }
}

#[test]
fn object_without_kind_is_named_but_not_shown() {
    let script = Script::compile("function Retain(d, o) d.kind = nil return d end", "Retain").unwrap();
    let metadata = json!({ "namespace": "shop", "name": "db" });
    let secret = json!({ "kind": "Secret", "metadata": metadata, "data": { "password": "czNjcmV0" } });
    let inputs = ScriptInputs { desired: Some(&secret), observed: Some(&secret), ..ScriptInputs::default() };
    let error = Pool::new(limits()).interpret("Retain", &script, &inputs).unwrap_err().to_string();
    assert!(error.contains("Secret shop/db: return the object with its `kind`"), "{error}");
    assert!(!error.contains("czNjcmV0"), "{error}");
}

#[test]
fn thousands_of_arguments_and_results_are_bounded() {
    let pool = Pool::new(limits());
    let many = "local t = {} for i = 1, 7000 do t[i] = {i} end ";
    for (body, expected) in [
        ("print(unpack(t)) return {x = 1}", json!({"x": 1})),
        ("string.format('%s', unpack(t)) return {x = 1}", json!({"x": 1})),
        ("return {n = select('#', pcall(string.char, unpack(t)))}", json!({"n": 2})),
        ("return {n = select('#', pcall(unpack, t))}", json!({"n": 7001})),
        ("local f = function() print(unpack(t)) end for i = 1, 20 do f() end return {x = 1}", json!({"x": 1})),
        ("return {n = #t}, unpack(t)", json!({"n": 7000})),
        ("t[1] = nil return {n = #t, l = {unpack(t, 2, 5)}}", json!({"n": 7000, "l": [[2], [3], [4], [5]]})),
    ] {
        assert_eq!(status(&pool, &format!("{many}{body}")), Ok(expected), "{body}");
    }
    let status = status(&pool, &format!("{many} return t"));
    assert_eq!(status.map(|status| status.as_array().map(Vec::len)), Ok(Some(7000)));
}

#[test]
fn time_limit_ends_a_script() {
    let pool = Pool::new(limits().time(Duration::ZERO));
    let (class, text) = status(&pool, "while true do end").unwrap_err();
    assert_eq!(class, ErrorClass::Timeout);
    assert!(text.ends_with("context deadline exceeded, a script may run for 0ns: loop over less"), "{text}");
}

#[test]
fn limit_errors_name_the_line_that_ran() {
    let pool = Pool::new(limits());
    for body in
        ["\nwhile true do end", "\nwhile true do table.insert({}, 1, 2) end", "\nwhile true do string.upper('x') end"]
    {
        let (_, text) = status(&pool, body).unwrap_err();
        assert!(text.starts_with("script of ReflectStatus, line 2: "), "{text}");
    }
}

#[test]
fn functions_outside_of_the_sandbox_are_absent() {
    let pool = Pool::new(limits());
    for name in
        ["io", "debug", "coroutine", "channel", "os.execute", "os.exit", "os.getenv", "os.remove", "table.foreach"]
    {
        assert_eq!(status(&pool, &format!("return {{t = type({name})}}")), Ok(json!({"t": "nil"})), "{name}");
    }
    for name in [
        "collectgarbage",
        "dofile",
        "getfenv",
        "getmetatable",
        "load",
        "loadfile",
        "loadstring",
        "module",
        "newproxy",
        "rawequal",
        "rawget",
        "rawset",
        "setfenv",
        "setmetatable",
    ] {
        let (class, text) = status(&pool, &format!("{name}('x')")).unwrap_err();
        assert_eq!(class, ErrorClass::Runtime);
        let expected = format!("call function {name} is not supported in karmada customized resourceinterpreter.");
        assert!(text.ends_with(&expected), "{text}");
    }
    for attempt in ["package.loadlib('x', 'y')", "require('os.execute')", "string.dump(print)"] {
        assert_eq!(status(&pool, attempt).unwrap_err().0, ErrorClass::Runtime, "{attempt}");
    }
}

#[test]
fn bytecode_is_a_syntax_error() {
    for source in ["\u{1b}Lua", "\u{1b}LuaQ\0\u{1}\u{4}\u{4}\u{4}\u{8}\0"] {
        assert_eq!(Script::compile(source, "F").unwrap_err().class(), ErrorClass::Syntax);
    }
}

#[test]
fn runs_do_not_affect_later_runs() {
    let pool = Pool::new(limits());
    for (changes, probe) in [
        ("counter = (counter or 0) + 1", "counter == 1"),
        ("_G.leaked = true", "_G.leaked and not rawequal_seen"),
        ("string.upper = function() return 'bad' end", "true"),
        ("string.__index = function() return function() return 'bad' end end", "true"),
        ("table.concat, math.floor, pairs = nil, nil, nil", "true"),
        ("package.loaded.kube = {resourceAdd = function() return 'bad' end}", "true"),
        ("package.preload.kube = nil", "true"),
        ("require('kube').resourceAdd = nil", "true"),
        ("string.__add = function() return 1 end", "true"),
        ("math.randomseed(7)", "true"),
        (
            "for _, library in ipairs({string, table, math, os, require('kube'), package, package.loaded, _G}) do
               for name in next, library do library[name] = function() return 'bad' end end
             end",
            "true",
        ),
        // A local variable hides the operand that is inserted into `..`, so the script can use it alone.
        (
            "local dots = kctl_dots
             local kctl_dots = ''
             seen.held = select(2, pcall(function() return 'held: ' .. dots end))
             local _ = dots .. 'leaked'",
            "true",
        ),
        ("o.spec.extra = {1, {2}} o.spec.replicas = 'bad' o.kind = nil", "true"),
    ] {
        // The script records the state before it makes its changes, so a second run would see changes that leaked from
        // the first.
        let source = format!(
            "function ReflectStatus(o)
               local seen = {{upper = ('x'):upper(), n = table.concat({{1, 2}}), f = math.floor(1.5), k = type(pairs),
                 sum = require('kube').resourceAdd('1', '1'), add = pcall(function() return 'a' + 'b' end),
                 random = math.random(1000), leaked = leaked, counter = counter, time = type(os.time()), object = {{}}}}
               for name, value in pairs(o.spec or {{}}) do seen.object[name] = value end
               seen.kind = o.kind
               {changes}
               seen.probe = {probe}
               return seen
             end"
        );
        let script = Script::compile(&source, "ReflectStatus").expect("the source is Lua");
        let first = run(&pool, &script).expect(changes);
        assert_eq!(run(&pool, &script).as_ref(), Ok(&first), "{changes}");
        assert_eq!(first["upper"], "X");
    }
}

#[test]
fn script_works_again_after_it_hit_a_limit() {
    let pool = Pool::new(limits());
    let source = "function InterpretHealth(o) while o.spec.hang do end return true end";
    let script = Script::compile(source, "InterpretHealth").expect("the source is Lua");
    let health = |hang: bool| {
        let object = json!({"kind": "Widget", "spec": {"hang": hang}});
        pool.interpret("InterpretHealth", &script, &ScriptInputs { observed: Some(&object), ..ScriptInputs::default() })
    };
    assert_eq!(health(true).unwrap_err().class(), ErrorClass::Timeout);
    assert_eq!(health(false), Ok(json!({"healthy": true})));
}

#[test]
fn threads_share_a_pool() {
    let pool = Pool::new(limits());
    let source = "n = (n or 0) + 1 function ReflectStatus(o) return {n = n} end";
    let script = Script::compile(source, "ReflectStatus").expect("the source is Lua");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(run(&pool, &script), Ok(json!({"n": 1})));
                }
            });
        }
    });
}
