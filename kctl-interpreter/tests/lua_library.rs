//! The library of scripts, function by function: an expression and the JSON that it becomes, as gopher-lua has it.
#![cfg(feature = "lua")]

use kctl_interpreter::lua::{Inputs, Limits, Pool, Script};
use serde_json::{Value, json};

/// Evaluates `{expression}` as the result of `ReflectStatus`; an error is its text without the function's name.
fn evaluate(pool: &Pool, expression: &str) -> Result<Value, String> {
    let source = format!("function ReflectStatus(o)\n  return {{v = {{{expression}}}}}\nend");
    let script = Script::compile(&source, "ReflectStatus").map_err(|error| error.to_string())?;
    let object = json!({"kind": "Widget"});
    let inputs = Inputs { desired: Some(&object), ..Inputs::default() };
    let status = pool.interpret("InterpretStatus", &script, &inputs);
    status.map(|mut value| value["status"]["v"].take()).map_err(|error| error.to_string())
}

fn check(cases: &[(&str, Value)]) {
    let pool = Pool::new(Limits::default());
    for (expression, expected) in cases {
        assert_eq!(evaluate(&pool, expression).as_ref(), Ok(expected), "{expression}");
    }
}

#[test]
fn base_functions_answer_as_in_gopher_lua() {
    check(&[
        (
            "tostring(nil), tostring(true), tostring(1.5), tostring(2^53)",
            json!(["nil", "true", "1.5", "9007199254740992"]),
        ),
        ("tostring(1/3), tostring(1e21), tostring(-0.0)", json!(["0.3333333333333333", "1e+21", "0"])),
        ("tonumber('12'), tonumber('0x1f'), tonumber('ff', 16), tonumber('1.5')", json!([12, 31, 255, 1.5])),
        ("tostring(tonumber('1e3')), tostring(tonumber('x')), tostring(tonumber({}))", json!(["nil", "nil", "nil"])),
        ("select('#', 1, nil, 3), (select(-1, 1, 2, 3))", json!([3, 3])),
        (
            "type(nil), type(1), type('x'), type({}), type(print)",
            json!(["nil", "number", "string", "table", "function"]),
        ),
        ("pcall(function() return 1, 2 end)", json!([true, 1, 2])),
        ("pcall(error, 'x', 0)", json!([false, "x"])),
        ("pcall(error, {code = 7})", json!([false, {"code": 7}])),
        ("pcall(function() error('boom') end)", json!([false, "<string>:2: boom"])),
        ("pcall(function() assert(false) end)", json!([false, "<string>:2: assertion failed!"])),
        ("pcall(function() assert(nil, 'nope') end)", json!([false, "<string>:2: nope"])),
        ("pcall(nil)", json!([false, "attempt to call a nil value"])),
        (
            "pcall(function() string.upper() end)",
            json!([false, "<string>:2: bad argument #1 to upper (string expected, got nil)"]),
        ),
        (
            "pcall(function() string.sub('x', 'y') end)",
            json!([false, "<string>:2: bad argument #2 to sub (number expected, got string)"]),
        ),
        ("xpcall(function() error('boom', 0) end, function(e) return e .. '!' end)", json!([false, "boom!"])),
        ("xpcall(function() return 'fine' end, print)", json!([true, "fine"])),
        ("pcall(table.sort, {1, 'x'})", json!([false, "attempt to compare string with number"])),
        ("pcall(pcall)", json!([false, "<string>:2: bad argument #1 to pcall (value expected)"])),
        ("select('#', pcall(unpack, {}, 1, 100))", json!([101])),
        ("next({}) == nil, next({5})", json!([true, 1, 5])),
        ("(assert(1, 'unused')), _VERSION", json!([1, "Lua 5.1"])),
        ("type(_G), _G._G == _G, _G.ReflectStatus == ReflectStatus", json!(["table", true, true])),
        ("package.loaded.string == string, type(package.preload.kube)", json!([true, "function"])),
    ]);
}

#[test]
fn string_functions_answer_as_in_gopher_lua() {
    check(&[
        ("string.byte('A'), string.byte('abc', 2), string.byte('abc', -1)", json!([65, 98, 99])),
        ("string.byte('abc', 1, -1)", json!([97, 98, 99])),
        ("string.char(72, 105)", json!(["Hi"])),
        ("string.find('hello', 'l'), string.find('hello', 'xyz')", json!([3])),
        ("string.find('a.b', '.', 1, true)", json!([2, 2])),
        ("string.find('hello', 'l', -2)", json!([4, 4])),
        ("string.find('key=val', '(%w+)=(%w+)')", json!([1, 7, "key", "val"])),
        ("string.find('hello', '')", json!([1, 0])),
        ("string.match('2024-05-06', '(%d+)-(%d+)-(%d+)')", json!(["2024", "05", "06"])),
        ("string.match('hello', 'l+'), string.match('hello', '()ll()')", json!(["ll", 3, 5])),
        ("select('#', string.match('a', 'b'))", json!([0])),
        (
            "(function() local r = {} for w in ('one two'):gmatch('%a+') do r[#r + 1] = w end return unpack(r) end)()",
            json!(["one", "two"]),
        ),
        (
            "(function() local r = {} for k, v in ('a=1,b=2'):gmatch('(%w)=(%w)') do r[#r + 1] = k .. v end return unpack(r) end)()",
            json!(["a1", "b2"]),
        ),
        ("(function() local n = 0 for _ in ('abc'):gmatch('') do n = n + 1 end return n end)()", json!([4])),
        (
            "string.format('%d-%s-%.2f|%5s|%-5s|%x|%q', 3, 'x', 1.239, 'r', 'l', 255, 'q')",
            json!(["3-x-1.24|    r|l    |ff|\"q\""]),
        ),
        ("string.format('%s %s %s', nil, true, 1.5)", json!(["nil true 1.5"])),
        ("string.format('%d%%', 5), string.format('%d')", json!(["5%", "%!d(MISSING)"])),
        ("string.len('abc'), #'abc'", json!([3, 3])),
        ("string.lower('ABC É'), string.upper('abc é')", json!(["abc é", "ABC É"])),
        ("string.reverse('abc')", json!(["cba"])),
        (
            "string.sub('hello', 2, -2), string.sub('hello', -3), string.sub('hello', 4, 2), ('x'):sub(0)",
            json!(["ell", "llo", "", "x"]),
        ),
        ("('x'):upper(), (5 .. ''):len()", json!(["X", 1])),
    ]);
}

#[test]
fn table_and_math_functions_answer_as_in_gopher_lua() {
    check(&[
        (
            "table.concat({1, 2.5, 'x'}, ', '), table.concat({'a', 'b', 'c'}, '', 2), table.concat({})",
            json!(["1, 2.5, x", "bc", ""]),
        ),
        ("table.concat({'a', 'b', 'c'}, '-', 2, 9), table.concat({'a'}, '', 5)", json!(["b-c", ""])),
        ("(function() local t = {3, 1, 2} table.sort(t) return unpack(t) end)()", json!([1, 2, 3])),
        (
            "(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return unpack(t) end)()",
            json!([3, 2, 1]),
        ),
        (
            "(function() local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) return unpack(t) end)()",
            json!([1, 2, 3, 4]),
        ),
        ("(function() local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), #t end)()", json!([3, 1, 1])),
        ("table.getn({1, 2}), table.maxn({1, 2, [9] = 1})", json!([2, 9])),
        ("math.floor(-1.5), math.ceil(1.2), math.abs(-3), math.max(1, 5, 3), math.min(2, 1)", json!([-2, 2, 3, 5, 1])),
        ("math.fmod(7, 3), math.mod(-7, 3), math.pow(2, 10), math.sqrt(16)", json!([1, 2, 1024, 4])),
        ("math.modf(3.25)", json!([3, 0.25])),
        ("math.huge < 1/0, math.pi > 3", json!([true, true])),
        ("math.random() < 1, math.random(1) == 1, math.random(3, 3) == 3", json!([true, true, true])),
        ("'10' + 5, '0x10' * 2, 10 .. 20, 7 % 3, -7 % 3, 2 ^ 3", json!([15, 32, "1020", 1, 2, 8])),
    ]);
}

/// The count of C wraps around there: an optimized build overwrote its stack.
#[test]
fn no_range_is_too_large_to_be_refused_by_unpack() {
    for range in [
        "-2147483648, 2147483647",
        "0, 2147483647",
        "1, 1e300",
        "-1e300, 1e300",
        "-1/0, 1/0",
        "0/0, 1",
        "1, 8001",
        "'1', '1e9'",
        "4294967296, 6442450943",
    ] {
        let error = evaluate(&Pool::new(Limits::default()), &format!("unpack({{}}, {range})")).unwrap_err();
        assert!(error.contains("too many results to unpack"), "{range}: {error}");
    }
    check(&[
        ("unpack({1, 2, 3}, 2)", json!([2, 3])),
        ("unpack({1, 2, 3}, '1', '2')", json!([1, 2])),
        ("select('#', unpack({1, 2}, 5, 1))", json!([0])),
        ("select('#', unpack({1, 2}, 1e300, -1e300))", json!([0])),
        ("select('#', unpack({}, 1, 100))", json!([100])),
    ]);
}

#[test]
fn a_script_may_jump_forward() {
    let body = "(function() local r = {} for i = 1, 4 do if i % 2 == 0 then goto continue end r[#r + 1] = i ::continue:: end return unpack(r) end)()";
    check(&[(body, json!([1, 3]))]);
}

#[test]
fn keys_are_visited_in_the_order_in_which_they_were_set() {
    let visit = |body: &str| {
        format!("(function() {body} local r = {{}} for k in pairs(t) do r[#r + 1] = k end return unpack(r) end)()")
    };
    for (body, expected) in [
        ("local t = {} t.z = 1 t.a = 2 t.m = 3", json!(["z", "a", "m"])),
        ("local t = {zeta = 1, alpha = 2, mid = 3, [1] = 'x'} t.beta = 4", json!([1, "zeta", "alpha", "mid", "beta"])),
        ("local t = {b = 1, a = 2, c = 3} t.b = nil t.a = nil t.b = 4", json!(["b", "c"])),
        (
            "local t = {} for _, k in ipairs({'Created', 'Succeeded', 'Failed', 'Created'}) do t[k] = k end",
            json!(["Created", "Succeeded", "Failed"]),
        ),
        ("local t = {y = 1, ['x-x'] = 2, a = 3}", json!(["y", "a", "x-x"])),
        ("local t = {10, 20} t[3] = 30 t.k = 1 table.insert(t, 40)", json!([1, 2, 3, 4, "k"])),
        ("local t = {c = 1, b = 2, a = 3} for k in pairs(t) do t[k] = nil end t.d = 1", json!(["d"])),
    ] {
        check(&[(&visit(body), expected)]);
    }
    let pool = Pool::new(Limits::default());
    let error = evaluate(&pool, "(function() local t = {} t[o.missing] = 1 end)()").unwrap_err();
    assert_eq!(error, "script of ReflectStatus, line 2: table index is nil");
}

#[test]
fn times_are_utc() {
    check(&[
        ("os.time({year = 2024, month = 2, day = 29, hour = 12, min = 30, sec = 15})", json!([1_709_209_815])),
        ("os.time({year = 1970, month = 1, day = 1})", json!([43200])),
        ("os.date('!%Y-%m-%dT%H:%M:%SZ', 1709209815)", json!(["2024-02-29T12:30:15Z"])),
        ("os.date('!%I %p %j %%', 1709209815)", json!(["12 PM %j %"])),
        ("os.date('*t', 86400).day, os.date('*t', 86400).wday, os.date('*t', 86400).isdst", json!([2, 6, false])),
        ("os.time() > 1700000000, type(os.date())", json!([true, "string"])),
    ]);
}

#[test]
fn the_kube_library_answers_as_in_karmada() {
    check(&[
        (
            "require('kube').resourceAdd('1', '500m'), require('kube').resourceAdd(), require('kube').resourceAdd(nil, '1Ki')",
            json!(["1500m", "0", "1Ki"]),
        ),
        (
            "require('kube').getResourceQuantity('1Gi'), require('kube').getResourceQuantity(nil)",
            json!([1_073_741_824, 0]),
        ),
        (
            "require('kube').accuratePodRequirements({spec = {containers = {{name = 'c', resources = {limits = {cpu = 2, memory = '1Gi'}}}}}})",
            json!([{"resourceRequest": {"cpu": "2", "memory": "1Gi"}}]),
        ),
        ("tostring(require('kube').accuratePodRequirements({}))", json!(["nil"])),
        (
            "require('kube').getPodDependencies({spec = {serviceAccountName = 'sa'}}, nil)",
            json!([[{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "default", "name": "sa"}]]),
        ),
        ("tostring(require('kube').getPodDependencies({}, 'x'))", json!(["nil"])),
    ]);
}

#[test]
fn mistakes_in_calls_name_the_line_and_the_function() {
    let pool = Pool::new(Limits::default());
    for (expression, expected) in [
        ("string.rep('x', 2)", "The Lua function string.rep is not supported"),
        ("require('json')", "module json not found:"),
        ("require('kube').resourceAdd(1)", "bad argument #1 to resourceAdd (string expected, got number)"),
        ("require('kube').resourceAdd('1x')", "cannot parse '1x' as a quantity"),
        ("require('kube').getResourceQuantity('-1')", "-1 is negative"),
        (
            "require('kube').getPodDependencies({}, true)",
            "bad argument #2 to getPodDependencies (string expected, got boolean)",
        ),
        ("require('kube').accuratePodRequirements({spec = {containers = 'x'}})", "the pod template is none"),
        ("pairs(nil)", "bad argument #1 to pairs (table expected, got nil)"),
        ("table.insert({}, 'x', 1)", "bad argument #2 to insert (number expected, got string)"),
        ("table.insert({})", "wrong number of arguments to insert"),
        ("table.sort({1, 'x'})", "attempt to compare"),
        ("table.sort({3, 2, 1}, 'x')", "bad argument #2 to 'sort' (function expected, got string)"),
        ("math.mod({}, 1)", "attempt to perform arithmetic"),
        ("table.concat({{}})", "invalid value (table) at index 1 in table for concat"),
        ("o.a.b", "attempt to index field 'a' (a nil value)"),
        ("string.find('x', '[')", "malformed pattern (missing ']')"),
    ] {
        let error = evaluate(&pool, expression).unwrap_err();
        assert!(error.starts_with("script of ReflectStatus, line 2: ") && error.contains(expected), "{error}");
    }
}
