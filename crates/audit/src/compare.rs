//! Names the first field in which two values differ, by their serialised form: so that no field is ever forgotten.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;

use crate::FieldDifference;

/// The most characters of a value that a report shows.
const MAX_SHOWN: usize = 200;

/// The first field in which `found` is not as `wanted`; none where they are equal.
pub(crate) fn first_difference<T: PartialEq + Serialize + Debug>(
    wanted: &T,
    found: &T,
) -> Option<FieldDifference> {
    if wanted == found {
        return None;
    }
    let differing = match (serde_json::to_value(wanted), serde_json::to_value(found)) {
        (Ok(wanted), Ok(found)) => differing(String::new(), &wanted, &found),
        _ => None,
    };
    // Unequal, and yet no field says so: the whole is shown.
    Some(differing.unwrap_or_else(|| FieldDifference {
        field: "value".to_owned(),
        wanted: shown(&format!("{wanted:?}")),
        found: shown(&format!("{found:?}")),
    }))
}

/// A difference in a field that is compared by hand.
pub(crate) fn field(
    name: &str,
    wanted: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> FieldDifference {
    FieldDifference {
        field: name.to_owned(),
        wanted: shown(&wanted.to_string()),
        found: shown(&found.to_string()),
    }
}

fn differing(path: String, wanted: &Value, found: &Value) -> Option<FieldDifference> {
    if wanted == found {
        return None;
    }
    let inside = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) if wanted.len() == found.len() => {
            for (name, value) in wanted {
                let other = found.get(name).unwrap_or(&Value::Null);
                if let Some(difference) = differing(inside(name), value, other) {
                    return Some(difference);
                }
            }
            None
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (value, other)) in wanted.iter().zip(found).enumerate() {
                if let Some(difference) = differing(inside(&index.to_string()), value, other) {
                    return Some(difference);
                }
            }
            None
        }
        _ => Some(FieldDifference {
            field: if path.is_empty() {
                "value".to_owned()
            } else {
                path
            },
            wanted: shown(&wanted.to_string()),
            found: shown(&found.to_string()),
        }),
    }
}

/// A value's text, cut where it is long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize)]
    struct Outer {
        body: String,
        inner: Inner,
    }

    #[derive(Debug, PartialEq, Serialize)]
    struct Inner {
        numbers: Vec<u64>,
        end: Option<i64>,
    }

    fn outer(body: &str, numbers: &[u64], end: Option<i64>) -> Outer {
        Outer {
            body: body.to_owned(),
            inner: Inner {
                numbers: numbers.to_vec(),
                end,
            },
        }
    }

    fn check(found: &Outer, wanted: Option<(&str, &str, &str)>) {
        let difference = first_difference(&outer("hi", &[1, 2], Some(3)), found);
        let wanted = wanted.map(|(name, wanted, found)| field(name, wanted, found));
        assert_eq!(difference, wanted);
    }

    #[test]
    fn the_field_that_differs_is_named_with_those_around_it() {
        check(&outer("hi", &[1, 2], Some(3)), None);
        check(
            &outer("ho", &[1, 2], Some(3)),
            Some(("body", "\"hi\"", "\"ho\"")),
        );
        check(
            &outer("hi", &[1, 7], Some(3)),
            Some(("inner.numbers.1", "2", "7")),
        );
        check(
            &outer("hi", &[1], Some(3)),
            Some(("inner.numbers", "[1,2]", "[1]")),
        );
        check(
            &outer("hi", &[1, 2], None),
            Some(("inner.end", "3", "null")),
        );
    }

    #[test]
    fn a_long_value_is_cut() {
        let difference = first_difference(&"a".repeat(500), &"b".repeat(500)).unwrap();
        assert_eq!(difference.wanted.chars().count(), MAX_SHOWN + 1);
    }
}
