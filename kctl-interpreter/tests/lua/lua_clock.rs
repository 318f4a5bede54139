//! Scripts that try to evade the time limit: a single instruction or C function runs for long without a call of the
//! debug hook.
//!
//! Steps are not limited here, as in production, so only the time and memory limits can end a run. The test measures
//! the CPU time of the thread, because wall-clock time grows on a loaded machine.
#![cfg(target_os = "linux")]

use std::time::Duration;

use kctl_interpreter::lua::{Limits, Pool, Script, ScriptInputs};
use serde_json::json;

/// Time limit of a run.
const LIMIT: Duration = Duration::from_millis(250);

/// Longest time that a run may take past its limit, in a build without optimization. Attempts that evaded the limit
/// took seconds or minutes.
const OVERSHOOT_MAX: Duration = Duration::from_millis(1500);

/// Creates strings and lists as large as a run can hold.
const LARGE: &str = "local s, n = 'x', 0 while #s < 500000 do s = s .. s end
    local long = s .. s .. s .. s
    local list, same = {}, {} for i = 1, 5000 do list[i] = i same[i] = long end ";

/// Scripts that once evaded the limit, or could have.
const ATTEMPTS: &[(&str, &str)] = &[
    ("moving elements that are not there", "table.insert({}, -2^31, 1)"),
    ("moving from a position that is not a number", "table.insert(list, 0/0, 1)"),
    ("moving from an infinite position", "table.insert(list, -1/0, 1) table.insert(list, 1/0, 1)"),
    ("comparing long strings that are equal", "table.sort(same)"),
    (
        "comparing with a function of C",
        "local t = {} t[t] = t for i = 1, 5000 do same[i] = t end table.sort(same, next)",
    ),
    ("comparing with a function that is never content", "table.sort(list, function() return true end)"),
    ("a frontier with a long set", "string.find(s, '%f[' .. string.sub(s, 1, 400000) .. ']y')"),
    ("sets that are long", "string.find(s, '[' .. string.sub(s, 1, 400000) .. ']*y')"),
    ("printing one string thousands of times", "print(unpack(same))"),
    ("formatting one string thousands of times", "string.format(table.concat(list, '%.1s'), unpack(same))"),
    ("joining one string thousands of times", "pcall(table.concat, same)"),
    (
        "adding numbers in words",
        "local zeros = ('0'):format() for i = 1, 20 do zeros = zeros .. zeros end for i = 1, 1e9 do n = n + zeros end",
    ),
    ("copies of long strings", "for i = 1, 1e9 do n = long .. i end"),
    ("comparisons of long strings", "local other = long .. 'y' for i = 1, 1e9 do n = long .. '' < other end"),
    ("keys that are long", "local t = {} for i = 1, 1e9 do t[long .. i % 2] = i end"),
    ("thousands of results", "for i = 1, 1e9 do n = {unpack(list)} end"),
    (
        "thousands of arguments",
        "local function f(...) return select('#', ...) end for i = 1, 1e9 do n = f(unpack(list)) end",
    ),
    (
        "searching what was removed",
        "local t = {} for i = 1, 1e5 do t['k' .. i] = 1 end for k in pairs(t) do t[k] = nil end for i = 1, 1e9 do next(t) end",
    ),
    (
        "tables that are rebuilt at each key",
        "local t = {} for i = 1, 65536 do t[i + 0.5] = 1 end for i = 1, 1e9 do t[i + 0.5] = nil t[i + 65536.5] = 1 end",
    ),
    (
        "methods of strings that call themselves",
        "string.__index = function(s, k) return s[k] end for i = 1, 1e9 do pcall(function() return s.x end) end",
    ),
    (
        "a `__tostring` that calls itself",
        "string.__tostring = function(s) return tostring(s) end for i = 1, 1e9 do pcall(tostring, s) end",
    ),
    (
        "additions of strings that call themselves",
        "string.__add = function(a, b) return a + b end for i = 1, 1e9 do pcall(function() return s + 1 end) end",
    ),
    ("errors with long messages", "for i = 1, 1e9 do pcall(error, long) end"),
    ("errors in errors", "local function f(e) error(e) end for i = 1, 1e9 do xpcall(function() f(long) end, f) end"),
    ("levels of calls", "local function f(n) return 1 + f(n) end for i = 1, 1e9 do pcall(f, 1) end"),
    ("tables of tables", "for i = 1, 1e9 do local t = {} for k = 1, 1000 do t = {t} end end"),
    ("dates with long formats", "for i = 1, 1e9 do pcall(os.date, s) end"),
    (
        "quantities with many digits",
        "local k = require('kube') local t = {} for i = 1, 7000 do t[i] = string.sub(s, 1, 9999) end pcall(k.resourceAdd, unpack(t)) local ones = ('1'):format() for i = 1, 18 do ones = ones .. ones end pcall(k.resourceAdd, ones, ones) pcall(k.getResourceQuantity, ones .. 'e' .. ones)",
    ),
    (
        "templates with many containers",
        "local k, c = require('kube'), {} for i = 1, 20000 do c[i] = {name = 'c' .. i, resources = {limits = {cpu = '1'}}} end for i = 1, 1e9 do pcall(k.accuratePodRequirements, {spec = {containers = c}}) end",
    ),
    (
        "modules that load themselves",
        "package.loaders[1] = function(name) return require(name .. 'x') end for i = 1, 1e9 do pcall(require, 'x') end",
    ),
    ("numbers in bases", "tonumber(long, 36) tonumber(long)"),
    ("cases of long strings", "for i = 1, 1e9 do n = s:upper():lower():reverse() end"),
];

#[test]
fn no_attempt_outruns_the_clock() {
    let pool = Pool::new(Limits::default().time(LIMIT));
    let object = json!({"kind": "Widget"});
    let mut slow = Vec::new();
    for (name, attempt) in ATTEMPTS {
        let source = format!("function ReflectStatus(o) {LARGE} {attempt} return {{x = 1}} end");
        let script = Script::compile(&source, "ReflectStatus").expect("the attempt is Lua");
        let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
        let start = thread_time();
        let result = pool.interpret("InterpretStatus", &script, &inputs);
        let took = thread_time().saturating_sub(start);
        eprintln!("{took:>12.3?} {name}: {:?}", result.map_err(|error| error.to_string()));
        if took > LIMIT + OVERSHOOT_MAX {
            slow.push((name, took));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// Returns the CPU time of this thread.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the system counts it");
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first field is a number"))
}
