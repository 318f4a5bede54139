//! Comprehensions: the macros over lists and maps, with one or two variables.
//!
//! The parser expands `all`, `exists`, `exists_one`, `map` and `filter` with one variable to a fold. Running the fold
//! literally would copy its list in each step; instead the macro is recognized by its shape, and a plain loop runs.
//!
//! Iterations are bounded by the sizes of lists and maps, which exist in memory already. Nested loops multiply, which
//! the cost estimate of the expression bounds.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr},
    objects::{Key, Map},
};

use super::{
    EvalResult, Evaluator, NO_OVERLOAD, key_of,
    operators::{Logic, combine_logical, order},
    type_name,
};

/// The loop variables of one iteration, with their values.
type Round<'a> = Vec<(&'a str, Cel)>;

/// Makes the entries of a map from one iteration and its result.
type EntriesFn<'a> = fn(&Round<'a>, Cel) -> EvalResult<Vec<(Key, Cel)>>;

impl<'a> Evaluator<'a> {
    /// Runs `does` with additional variables in scope.
    ///
    /// The variables are removed again even if `does` returns an error. Inner variables shadow outer ones
    /// of the same name.
    pub(super) fn with<T>(&mut self, variables: &[(&'a str, Cel)], does: impl FnOnce(&mut Self) -> T) -> T {
        let n_before = self.bound.len();
        self.bound.extend(variables.iter().cloned());
        let done = does(self);
        self.bound.truncate(n_before);
        done
    }

    /// Evaluates a one-variable macro. The parser has expanded it to a fold; the macro is recognized by the fold's
    /// step.
    ///
    /// The parser makes no other folds, so another shape has no overload.
    pub(super) fn comprehension(&mut self, inner: &'a ComprehensionExpr) -> EvalResult {
        let Expr::Call(step) = &inner.loop_step.expr else { return Err(NO_OVERLOAD.into()) };
        let rounds = self.iterations(&inner.iter_range, &[inner.iter_var.as_str()])?;
        match (step.func_name.as_str(), step.args.as_slice()) {
            ("_&&_", [_, test]) => self.all(&rounds, test, Logic::And),
            ("_||_", [_, test]) => self.all(&rounds, test, Logic::Or),
            ("_?_:_", [test, _, _]) if matches!(inner.accu_init.expr, Expr::Literal(_)) => {
                self.exists_one(rounds, test)
            }
            ("_?_:_", [test, added, _]) => {
                self.build_list(rounds, Some(test), appended_item(added).ok_or(NO_OVERLOAD)?)
            }
            ("_+_", _) => self.build_list(rounds, None, appended_item(&inner.loop_step).ok_or(NO_OVERLOAD)?),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates a macro that the parser does not expand; `None` if the call is another function.
    ///
    /// These are two-variable macros and `sortBy`. A receiver is needed; the loop variables must be
    /// identifiers. The index is an integer for lists, and the key for maps.
    pub(super) fn macros(&mut self, call: &'a CallExpr) -> Option<EvalResult> {
        let target = call.target.as_deref()?;
        let name = call.func_name.as_str();
        if let ("sortBy", [Expr::Ident(variable), _]) = (name, exprs(&call.args).as_slice()) {
            return Some(
                self.iterations(target, &[variable]).and_then(|rounds| self.sort_by_key(rounds, &call.args[1])),
            );
        }
        let [first, second, rest @ ..] = call.args.as_slice() else { return None };
        let is_known = matches!(
            (name, rest.len()),
            ("all" | "exists" | "existsOne" | "exists_one", 1)
                | ("transformList" | "transformMap" | "transformMapEntry", 1 | 2)
        );
        let (Expr::Ident(first), Expr::Ident(second), true) = (&first.expr, &second.expr, is_known) else {
            return None;
        };
        Some(self.iterations(target, &[first, second]).and_then(|rounds| self.pairs(name, rounds, rest)))
    }

    /// Evaluates a two-variable macro. `rest` has the filter, if there is one, and the value.
    fn pairs(&mut self, name: &str, rounds: Vec<Round<'a>>, rest: &'a [IdedExpr]) -> EvalResult {
        let (test, value) = match rest {
            [test, value] => (Some(test), value),
            [value] => (None, value),
            _ => return Err(NO_OVERLOAD.into()),
        };
        match name {
            "all" => self.all(&rounds, value, Logic::And),
            "exists" => self.all(&rounds, value, Logic::Or),
            "existsOne" | "exists_one" => self.exists_one(rounds, value),
            "transformList" => self.build_list(rounds, test, value),
            "transformMapEntry" => self.transform_map(rounds, test, value, |_, map| entries_of(&map)),
            _ => self.transform_map(rounds, test, value, entry_with_key),
        }
    }

    /// Evaluates the range and returns the variables of each iteration. A one-variable macro over a map sees the keys.
    /// Maps are iterated in the order of their keys.
    fn iterations(&mut self, range: &'a IdedExpr, names: &[&'a str]) -> EvalResult<Vec<Round<'a>>> {
        let range = self.evaluate(range)?;
        let round = |key: Cel, value: &Cel| match names {
            [name] => vec![(*name, if matches!(range, Cel::Map(_)) { key } else { value.clone() })],
            [first, second, ..] => vec![(*first, key), (*second, value.clone())],
            [] => Vec::new(),
        };
        match &range {
            Cel::List(items) => Ok((0..).zip(items.iter()).map(|(index, item)| round(Cel::Int(index), item)).collect()),
            Cel::Map(map) if type_name(&range) == "map" => {
                let mut entries: Vec<(&Key, &Cel)> = map.map.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                Ok(entries.into_iter().map(|(key, value)| round(key.clone().into(), value)).collect())
            }
            other => Err(format!("must be a list or a map, found {}", type_name(other)).into()),
        }
    }

    /// Evaluates `all` or `exists`. The first error is returned only if no iteration decides the result.
    fn all(&mut self, rounds: &[Round<'a>], test: &'a IdedExpr, logic: Logic) -> EvalResult {
        combine_logical(logic, rounds.iter().map(|round| self.with(round, |evaluator| evaluator.evaluate(test))))
    }

    /// Evaluates a predicate with the variables of an iteration; a result other than a bool has no overload.
    fn test(&mut self, round: &Round<'a>, test: &'a IdedExpr) -> EvalResult<bool> {
        match self.with(round, |evaluator| evaluator.evaluate(test))? {
            Cel::Bool(value) => Ok(value),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates `exists_one`. An error makes the result an error, also after a second match.
    fn exists_one(&mut self, rounds: Vec<Round<'a>>, test: &'a IdedExpr) -> EvalResult {
        let mut n_found = 0;
        for round in rounds {
            n_found += usize::from(self.test(&round, test)?);
        }
        Ok(Cel::Bool(n_found == 1))
    }

    /// Returns the list of `value` over the iterations that pass `test`.
    fn build_list(&mut self, rounds: Vec<Round<'a>>, test: Option<&'a IdedExpr>, value: &'a IdedExpr) -> EvalResult {
        let mut items = Vec::new();
        for round in rounds {
            if test.map_or(Ok(true), |test| self.test(&round, test))? {
                items.push(self.with(&round, |evaluator| evaluator.evaluate(value))?);
            }
        }
        Ok(Cel::List(Arc::new(items)))
    }

    /// Returns a map of the entries that `entries` makes of each iteration and its result. A key that occurs twice is
    /// an error.
    fn transform_map(
        &mut self,
        rounds: Vec<Round<'a>>,
        test: Option<&'a IdedExpr>,
        value: &'a IdedExpr,
        entries: EntriesFn<'a>,
    ) -> EvalResult {
        let mut made: HashMap<Key, Cel> = HashMap::new();
        for round in rounds {
            if !test.map_or(Ok(true), |test| self.test(&round, test))? {
                continue;
            }
            let value = self.with(&round, |evaluator| evaluator.evaluate(value))?;
            for (key, value) in entries(&round, value)? {
                if made.insert(key, value).is_some() {
                    return Err("a key occurs twice in the map".into());
                }
            }
        }
        Ok(Cel::Map(Map { map: Arc::new(made) }))
    }

    /// Evaluates `sortBy`: returns the items in the order of their keys. It is an error if the keys are not of one
    /// type, or if two neighbouring keys cannot be compared. Numbers of different types have no total order, and a sort
    /// may panic without one: 2^53 and 2^53 + 1 both equal the double 2^53.
    fn sort_by_key(&mut self, rounds: Vec<Round<'a>>, key: &'a IdedExpr) -> EvalResult {
        let mut pairs: Vec<(Cel, Cel)> = Vec::new();
        for round in rounds {
            let key = self.with(&round, |evaluator| evaluator.evaluate(key))?;
            pairs.extend(round.into_iter().map(|(_, item)| (key.clone(), item)));
        }
        if pairs.iter().any(|(key, _)| type_name(key) != type_name(&pairs[0].0)) {
            return Err("list elements must have the same type".into());
        }
        if pairs.windows(2).any(|two| order(&two[0].0, &two[1].0).is_none()) {
            return Err("list elements must be comparable".into());
        }
        pairs.sort_by(|(left, _), (right, _)| order(left, right).unwrap_or(std::cmp::Ordering::Equal));
        Ok(Cel::List(Arc::new(pairs.into_iter().map(|(_, item)| item).collect())))
    }
}

/// Returns the entry of `transformMap`: the result of an iteration under the key of the iteration.
fn entry_with_key(round: &Round<'_>, value: Cel) -> EvalResult<Vec<(Key, Cel)>> {
    let key = key_of(&round[0].1).ok_or(NO_OVERLOAD)?;
    Ok(vec![(key, value)])
}

/// Returns the entries of `transformMapEntry`: the entries of the map that an iteration results in.
fn entries_of(value: &Cel) -> EvalResult<Vec<(Key, Cel)>> {
    let Cel::Map(map) = value else { return Err(NO_OVERLOAD.into()) };
    Ok(map.map.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Returns the expressions without their ids, so that they can be matched as a slice.
fn exprs(all: &[IdedExpr]) -> Vec<&Expr> {
    all.iter().map(|expression| &expression.expr).collect()
}

/// Returns the expression that a fold's step appends to its list.
fn appended_item(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    let [_, IdedExpr { expr: Expr::List(list), .. }] = call.args.as_slice() else { return None };
    list.elements.first()
}
