//! A line taken apart field by field: each is taken once, by name, and what nobody took is refused.
//!
//! Knows no event. serde's derived forms would do most of this, but would not say in which field a value is wrong.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor},
};
use serde_json::Value;

use super::{LineError, rfc3339};
use crate::UserId;

/// A line before its fields are looked at.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Line {
    pub(super) payload: Option<Object>,
    #[serde(flatten)]
    pub(super) envelope: Object,
}

/// An object in which no field stands twice: serde_json's own would silently keep the last.
pub(super) struct Object(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = entries.next_entry::<String, Value>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("{name} stands twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The fields of an object that nobody has taken yet.
///
/// null is absent, to all methods but [`Fields::end`].
pub(super) struct Fields {
    of: String,
    prefix: &'static str,
    left: BTreeMap<String, Value>,
}

impl Fields {
    /// `of` says whose they are and `prefix` stands before each name, both in errors.
    pub(super) fn new(of: String, prefix: &'static str, object: Object) -> Self {
        Self {
            of,
            prefix,
            left: object.0,
        }
    }

    /// Whose they are.
    pub(super) fn of(&self) -> &str {
        &self.of
    }

    /// Refuses what is left over.
    pub(super) fn end(mut self) -> Result<(), LineError> {
        match self.left.pop_first() {
            Some((name, _)) => Err(LineError::Unknown {
                field: self.name(&name),
                of: self.of,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn optional<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, LineError> {
        let Some(value) = self.present(name) else {
            return Ok(None);
        };
        parse_value(value, || self.name(name)).map(Some)
    }

    pub(super) fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LineError> {
        self.optional(name)?.ok_or_else(|| LineError::Missing {
            field: self.name(name),
        })
    }

    /// Ids of users, or none.
    pub(super) fn users(&mut self, name: &str) -> Result<Option<Vec<UserId>>, LineError> {
        let Some(entries) = self.optional::<Vec<Value>>(name)? else {
            return Ok(None);
        };
        let mut users = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            users.push(parse_value(entry, || {
                format!("{}[{index}]", self.name(name))
            })?);
        }
        Ok(Some(users))
    }

    pub(super) fn required_users(&mut self, name: &str) -> Result<Vec<UserId>, LineError> {
        self.users(name)?.ok_or_else(|| LineError::Missing {
            field: self.name(name),
        })
    }

    /// RFC 3339 as milliseconds since 1970, or none.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<i64>, LineError> {
        let Some(text) = self.optional::<String>(name)? else {
            return Ok(None);
        };
        let millis = text
            .parse::<Timestamp>()
            .ok()
            .map(Timestamp::as_millisecond);
        match millis.filter(|millis| rfc3339(*millis).is_some()) {
            Some(millis) => Ok(Some(millis)),
            None => Err(LineError::Invalid {
                field: self.name(name),
                reason: format!("{text:?} is not a time in RFC 3339, as in 2026-03-01T09:30:00Z"),
            }),
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn present(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }
}

fn parse_value<T: DeserializeOwned>(
    value: Value,
    field: impl FnOnce() -> String,
) -> Result<T, LineError> {
    serde_json::from_value(value).map_err(|error| LineError::Invalid {
        field: field(),
        reason: error.to_string(),
    })
}
