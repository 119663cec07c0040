//! Comparing JSON: whole values, shown as people read them.

use serde_json::{Map, Value};

/// Compares whole values.
#[track_caller]
pub fn check(found: &Value, expected: &Value) {
    if found != expected {
        panic!(
            "{}",
            difference(found, expected, "something else was found")
        );
    }
}

/// Compares the fields that `expected` has, all at once; others may be anything.
#[track_caller]
pub fn check_part(found: &Value, expected: &Value) {
    let part = part_of(found, expected);
    if part != *expected {
        panic!(
            "{}\nof {found:#}",
            difference(&part, expected, "a part differs")
        );
    }
}

/// The value without some fields, at any depth: those that no test can foresee.
pub fn without(value: &Value, fields: &[&str]) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object
                .iter()
                .filter(|(name, _)| !fields.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), without(value, fields)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(list) => list.iter().map(|value| without(value, fields)).collect(),
        other => other.clone(),
    }
}

fn part_of(found: &Value, expected: &Value) -> Value {
    let (Value::Object(found), Value::Object(expected)) = (found, expected) else {
        return found.clone();
    };
    let fields = expected.keys().map(|name| {
        let value = found.get(name).cloned();
        (
            name.clone(),
            value.unwrap_or_else(|| Value::from("(absent)")),
        )
    });
    Value::Object(fields.collect())
}

/// Both values line by line, with a mark where they differ first.
pub(crate) fn difference(found: &Value, expected: &Value, what: &str) -> String {
    let (found, expected) = (format!("{found:#}"), format!("{expected:#}"));
    let mut lines = vec![
        format!("{what}\n--- expected"),
        expected.clone(),
        "--- found".to_owned(),
    ];
    let mut wanted = expected.lines();
    let mut is_first = true;
    for line in found.lines() {
        let differs = wanted.next() != Some(line);
        let mark = if differs && is_first {
            "   <── from here"
        } else {
            ""
        };
        is_first &= !differs;
        lines.push(format!("{line}{mark}"));
    }
    lines.join("\n")
}
