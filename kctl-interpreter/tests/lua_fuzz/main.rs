//! Runs thousands of random scripts, many of them hostile: none crashes or hangs the process or changes the result of
//! another script.
//!
//! The generator is seeded, so every machine runs the same scripts. The scripts of the first test end by a limit of
//! steps; scripts of the second test may also end by a limit of time, so its numbers of answers and errors vary.
#![cfg(feature = "lua")]

mod generator;

use std::time::Duration;

use generator::Generator;

use kctl_interpreter::lua::{ErrorClass, Limits, Pool, Script, ScriptInputs};
use serde_json::{Value, json};

const N_SCRIPTS: u64 = 2000;

/// Number of scripts between two runs of the probe script.
const PROBE_INTERVAL: u64 = 50;

#[test]
fn random_scripts_neither_crash_nor_hang_nor_leak() {
    let limits = Limits::default().time(Duration::from_secs(60)).steps(10_000).memory_bytes(4 << 20);
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
            // A run stops up to some hundred steps after its limit, and its memory use includes garbage of the previous
            // run. So only one of the two runs may hit a limit.
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

/// Number of scripts in the run with mutations. `LUA_FUZZ_SCRIPTS` overrides it, and `LUA_FUZZ_SEED` sets the first
/// seed.
const N_MUTATED: u64 = 3000;
/// Maximum growth of the process's memory after the first tenth of the run. The pool of Lua states is bounded.
const GROWTH_MAX: u64 = 96 << 20;
/// Maximum CPU time of a script in a build without optimization. The script's own limit is 5 ms; copying and freeing up
/// to 4 MiB of Lua memory takes longer.
const RUN_TIMEOUT: Duration = Duration::from_millis(500);

#[test]
fn hostile_scripts_neither_crash_hang_nor_leak() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("it is a number"));
    let (first, n_scripts) =
        (number("LUA_FUZZ_SEED").unwrap_or(1 << 32), number("LUA_FUZZ_SCRIPTS").unwrap_or(N_MUTATED));
    let limits = Limits::default().time(Duration::from_millis(5)).steps(50_000).memory_bytes(4 << 20);
    let pool = Pool::new(limits);
    let (mut n_answers, mut n_errors, mut n_rejected, mut held) = (0_u64, 0_u64, 0_u64, None);
    let (mut longest, mut longest_seed) = (Duration::ZERO, first);
    for seed in first..first + n_scripts {
        let source = Generator::new(seed).mutate_script();
        let start = thread_time();
        match Script::compile(&source, "ReflectStatus") {
            Err(_) => n_rejected += 1,
            Ok(script) if run(&pool, &script).is_ok() => n_answers += 1,
            Ok(_) => n_errors += 1,
        }
        let took = thread_time().saturating_sub(start);
        if took > longest {
            (longest, longest_seed) = (took, seed);
        }
        assert!(took < RUN_TIMEOUT, "seed {seed} took {took:?}\n{source}");
        if seed == first + n_scripts / 10 {
            held = resident();
        }
    }
    let growth = resident().zip(held).map_or(0, |(now, held)| now.saturating_sub(held));
    eprintln!(
        "{n_scripts} scripts: {n_answers} answers, {n_errors} errors, {n_rejected} do not compile; the longest took {longest:?} (seed {longest_seed}), {growth} bytes more are held"
    );
    assert!(growth < GROWTH_MAX, "{growth} bytes");
    let least = n_scripts / 50;
    assert!(n_answers > least && n_errors > least && n_rejected > least, "{n_answers}, {n_errors}, {n_rejected}");
}

/// Returns the resident memory of the process in bytes; `None` on systems without `/proc`.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns the CPU time of this thread, because wall-clock time grows on a loaded machine. Returns zero on systems
/// without `/proc`.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// Returns `true` if the value contains the memory address of a table.
fn has_address(value: &Value) -> bool {
    value.to_string().contains("0x")
}

fn run(pool: &Pool, script: &Script) -> Result<Value, ErrorClass> {
    let object = json!({"kind": "Widget", "spec": {"replicas": 2, "list": [1, "x", {"k": []}], "s": "text"}});
    let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
    pool.interpret("InterpretStatus", script, &inputs).map_err(|error| error.class())
}
