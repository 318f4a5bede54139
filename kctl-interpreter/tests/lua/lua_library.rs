//! The Lua library, function by function: each expression and the JSON of its result in gopher-lua.

use kctl_interpreter::lua::{Limits, Pool, Script, ScriptInputs};
use serde_json::{Value, json};

/// Evaluates `{expression}` as the result of `ReflectStatus`. An error is returned as its message.
fn evaluate(pool: &Pool, expression: &str) -> Result<Value, String> {
    let source = format!("function ReflectStatus(o)\n  return {{v = {{{expression}}}}}\nend");
    let script = Script::compile(&source, "ReflectStatus").map_err(|error| error.to_string())?;
    let object = json!({"kind": "Widget"});
    let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
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
fn concatenation_writes_numbers_as_gopher_lua_does() {
    check(&[
        ("1/3 .. '', 0.1 + 0.2 .. '|' .. 1e15", json!(["0.3333333333333333", "0.30000000000000004|1000000000000000"])),
        (
            "2^53 .. '', -2^62 .. ',' .. 1e21, -0.0 .. ''",
            json!(["9007199254740992", "-4611686018427387904,1e+21", "0"]),
        ),
        ("1 .. 2, 1.5 .. .5, 1234567.5 .. 'x'", json!(["12", "1.50.5", "1.2345675e+06x"])),
        (
            "1/0 .. '', -1/0 .. '', 0/0 .. '', 1e100 .. '', 1e-7 .. ''",
            json!(["+Inf", "-Inf", "NaN", "1e+100", "1e-07"]),
        ),
        ("'a' .. 1 + 2 .. 'b' == 'a3b', 'x' .. -2^2, #('a' .. 1) .. ''", json!([true, "x-4", "2"])),
        ("(function(...) return ..... 'x' end)(0.1)", json!(["0.1x"])),
        ("pcall(function() return 'a' .. nil end)", json!([false, "<string>:2: attempt to concatenate a nil value"])),
        ("pcall(function() return {} .. 'a' end)", json!([false, "<string>:2: attempt to concatenate a table value"])),
        (
            "pcall(function() return 'a' .. true .. 'b' end)",
            json!([false, "<string>:2: attempt to concatenate a boolean value"]),
        ),
        // A failed concatenation does not affect the next one.
        ("pcall(function() return nil .. 'old' end), 1 .. '', 'a' .. 'b'", json!([false, "1", "ab"])),
        ("pcall(function() return 'x' .. kctl_dots end), 'a' .. 'b'", json!([false, "ab"])),
        (
            "pcall(function() kctl_dots.x = 1 end), pcall(table.insert, kctl_dots, 1)",
            json!([false, false, "<string>:2: bad argument #1 to insert (table expected, got userdata)"]),
        ),
    ]);
}

/// Lua's parser allows two hundred nested levels. With more than a hundred concatenations in a row the source is not
/// rewritten, so its numbers are formatted as in C Lua.
#[test]
fn many_concatenations_in_a_row_still_run() {
    let pool = Pool::new(Limits::default());
    for (n, first) in [(90, "0.3333333333333333"), (150, "0.33333333333333")] {
        let expression = format!("1/3 .. {} ''", "'x' .. ".repeat(n));
        assert_eq!(evaluate(&pool, &expression), Ok(json!([format!("{first}{}", "x".repeat(n))])), "{n}");
    }
}

/// Compares with gopher-lua 1.1.2 and gopher-json, whose result is decoded from JSON again as in Karmada. Numbers are
/// doubles, formatted as in Go.
#[test]
fn number_formatting_matches_gopher_lua() {
    check(&[
        (
            "2.0, 4/2, 1e3, 2^53, 2^62, -2^62, 1e-6, 1/3, 0.1+0.2, 123456789.5, 1e15+0.5",
            json!([
                2,
                2,
                1000,
                9_007_199_254_740_992_i64,
                4_611_686_018_427_388_000_i64,
                -4_611_686_018_427_388_000_i64,
                0.000_001,
                0.333_333_333_333_333_3,
                0.300_000_000_000_000_04,
                123_456_789.5,
                1_000_000_000_000_000.5
            ]),
        ),
        ("1e18, 9007199254740993", json!([1_000_000_000_000_000_000_i64, 9_007_199_254_740_992_i64])),
        ("2^63, -2^63, 1e20, 1e21", json!([9_223_372_036_854_775_808.0, -9_223_372_036_854_775_808.0, 1e20, 1e21])),
        (
            "tostring(2.0), tostring(4/2), tostring(1e15), tostring(1e20), tostring(2^63), tostring(1e-5), tostring(1e100)",
            json!(["2", "2", "1000000000000000", "1e+20", "9.223372036854776e+18", "1e-05", "1e+100"]),
        ),
        (
            "tostring(1e19), tostring(9007199254740993), tostring(1e18), tostring(123456.5), tostring(1234567.5)",
            json!(["1e+19", "9007199254740992", "1000000000000000000", "123456.5", "1.2345675e+06"]),
        ),
        (
            "2.0 .. '', 1e20 .. '', 0.5 .. '', 4/2 .. 'x', 12345678901234 .. ''",
            json!(["2", "1e+20", "0.5", "2x", "12345678901234"]),
        ),
        ("{['a' .. 2.0] = 1, ['a' .. 0.5] = 2}", json!([{ "a2": 1, "a0.5": 2 }])),
        (
            "string.format('%d', 2.0), string.format('%s', 2.0), string.format('%g', 2.0), string.format('%.2f', 2)",
            json!(["2", "2", "2", "2.00"]),
        ),
        (
            "string.format('%s', 1e20), string.format('%s', 0.1), string.format('%d', 2.7), string.format('%5d|%-5d|%05d', 2, 2, 2)",
            json!(["1e+20", "0.1", "2", "    2|2    |00002"]),
        ),
        (
            "tonumber('2.0'), tonumber('0x10'), tonumber('10', 2), tonumber('2.50'), '10' + 5, '3' * '4', 10 .. 20",
            json!([2, 16, 2, 2.5, 15, 12, "1020"]),
        ),
        ("math.floor(2.7), math.ceil(2.1), 7 % 3, -7 % 3, 7.5 % 2, 2^0.5", json!([2, 3, 1, 2, 1.5, 2.0_f64.sqrt()])),
        (
            "table.concat({1, 2.0, 3.5, 1e20}, ','), table.concat({1e6, 1e5 + 0.5, 1e-4, 1e-5}, ' ')",
            json!(["1,2,3.5,1e+20", "1000000 100000.5 0.0001 1e-05"]),
        ),
    ]);
}

/// A whole number that an object has as `2.0` is returned as `2`.
#[test]
fn numbers_of_objects_come_back_without_a_point() {
    let pool = Pool::new(Limits::default());
    let object = json!({ "kind": "Widget", "spec": { "replicas": 2.0, "ratio": 0.5 }, "status": { "ready": 2.0 } });
    let items =
        json!([{ "clusterName": "a", "status": { "ready": 1.0 } }, { "clusterName": "b", "status": { "ready": 2 } }]);
    let cases = [
        (
            "InterpretReplica",
            "GetReplicas",
            "(o) return o.spec.replicas, { resourceRequest = { cpu = o.spec.replicas, ['example.com/x'] = '' .. o.spec.replicas } }",
            json!({ "replica": 2, "requires": { "resourceRequest": { "cpu": "2", "example.com/x": "2" } } }),
        ),
        (
            "ReviseReplica",
            "ReviseReplica",
            "(o, n) o.spec.replicas = n * 1.0 return o",
            json!({ "revised": { "kind": "Widget", "spec": { "replicas": 4, "ratio": 0.5 }, "status": { "ready": 2 } } }),
        ),
        (
            "AggregateStatus",
            "AggregateStatus",
            "(o, items) local n = 0 for _, item in ipairs(items) do n = n + item.status.ready end
             return { kind = o.kind, status = { ready = n, text = 'of ' .. n, half = n / 2 } }",
            json!({ "aggregatedStatus": { "kind": "Widget", "status": { "ready": 3, "text": "of 3", "half": 1.5 } } }),
        ),
        (
            "InterpretStatus",
            "ReflectStatus",
            "(o) return { ready = o.status.ready }",
            json!({ "status": { "ready": 2 } }),
        ),
    ];
    for (operation, function, body, expected) in cases {
        let script = Script::compile(&format!("function {function}{body} end"), function).unwrap();
        let inputs = ScriptInputs {
            desired: Some(&object),
            status_items: Some(&items),
            replicas: Some(4),
            ..ScriptInputs::default()
        };
        let answer = pool.interpret(operation, &script, &inputs).unwrap();
        assert_eq!(answer.to_string(), expected.to_string(), "{operation}");
    }
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
fn table_and_math_functions_match_gopher_lua() {
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
        (
            "(function() local t = {1, 3} table.insert(t, 2.9, 2) table.insert(t, 9, 9) return #t, t[2], t[9] end)()",
            json!([3, 2, 9]),
        ),
        // C Lua truncates positions of more than 31 bits, so that some elements would land far in front of the list.
        (
            "(function() local t = {1} for n, at in ipairs({1e15, -1e15, 2^31 + 1}) do table.insert(t, at, n) end
              return #t, t[1e15], t[-1e15], t[2^31 + 1] end)()",
            json!([1, 1, 2, 3]),
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

/// The element count overflows a C `int` for these ranges. An optimized build overwrote its stack.
#[test]
fn unpack_rejects_every_range_that_is_too_large() {
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
fn scripts_may_jump_forward() {
    let body = "(function() local r = {} for i = 1, 4 do if i % 2 == 0 then goto continue end r[#r + 1] = i ::continue:: end return unpack(r) end)()";
    check(&[(body, json!([1, 3]))]);
}

#[test]
fn keys_are_visited_in_insertion_order() {
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
fn kube_library_answers_as_in_karmada() {
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
fn lua_call_errors_name_line_and_function() {
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
        ("require('kube').accuratePodRequirements({spec = {containers = 'x'}})", "the pod template is invalid"),
        ("pairs(nil)", "bad argument #1 to pairs (table expected, got nil)"),
        ("table.insert({}, 'x', 1)", "bad argument #2 to insert (number expected, got string)"),
        ("table.insert({})", "wrong number of arguments to insert"),
        ("table.sort({1, 'x'})", "attempt to compare"),
        ("table.sort({3, 2, 1}, 'x')", "bad argument #2 to 'sort' (function expected, got string)"),
        ("math.mod({}, 1)", "attempt to perform arithmetic"),
        ("table.concat({{}})", "invalid value (table) at index 1 in table for concat"),
        ("o.a.b", "attempt to index field 'a' (a nil value)"),
        ("string.find('x', '[')", "unexpected EOS at EOS"),
        ("string.find('x', 'a)')", "invalid ')' at 1"),
        ("table.concat({1, 2}, 3)", "bad argument #2 to concat (string expected, got number)"),
        ("xpcall(print, nil)", "bad argument #2 to xpcall (function expected, got nil)"),
    ] {
        let error = evaluate(&pool, expression).unwrap_err();
        assert!(error.starts_with("script of ReflectStatus, line 2: ") && error.contains(expected), "{error}");
    }
}
