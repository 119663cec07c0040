//! The released schemas: none is lost or altered, and the newest reads what all of them wrote.
//!
//! What these tests do not show is that this crate's own types read it: `golden.rs` does.

use std::{collections::BTreeSet, error::Error, fs, path::Path};

use apache_avro::{
    Schema,
    rabin::Rabin,
    schema_compatibility::{Compatibility, SchemaCompatibility},
};
use serde_json::Value;
use tidemark_event::EVENT_SCHEMAS;

/// A hash of each released schema without its docs. The fingerprint would not do: it is the same whatever
/// the defaults and logical types are.
const RELEASED: [u64; EVENT_SCHEMAS.len()] = [0x7c4f_c76b_78b5_fbdd];

/// Whatever may still be put into better words once a schema is released.
fn without_docs(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "doc");
            Value::Object(
                kept.map(|(name, value)| (name.clone(), without_docs(value)))
                    .collect(),
            )
        }
        Value::Array(entries) => entries.iter().map(without_docs).collect(),
        other => other.clone(),
    }
}

/// apache-avro 0.22 leaves `{"type":"long"}` in the canonical form where a long has a logical type. The
/// specification, and Java, have `"long"`.
fn without_logical_longs(schema: &Value) -> Value {
    match schema {
        Value::Object(fields)
            if fields.get("type") == Some(&"long".into()) && !fields.contains_key("name") =>
        {
            "long".into()
        }
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), without_logical_longs(value)))
                .collect(),
        ),
        Value::Array(entries) => entries.iter().map(without_logical_longs).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_schema_file_is_built_in_and_every_built_in_schema_has_a_file() -> Result<(), Box<dyn Error>>
{
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/avro");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(&directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".avsc") {
            files.insert(name);
        }
    }
    let built_in = EVENT_SCHEMAS.map(|schema| format!("event-v{}.avsc", schema.version));
    assert_eq!(files, BTreeSet::from(built_in));
    Ok(())
}

#[test]
fn versions_count_up_from_1() {
    let versions: Vec<u32> = EVENT_SCHEMAS.iter().map(|schema| schema.version).collect();
    assert_eq!(
        versions,
        (1..=EVENT_SCHEMAS.len() as u32).collect::<Vec<_>>()
    );
}

#[test]
fn a_released_schema_is_never_altered_but_for_its_docs() -> Result<(), Box<dyn Error>> {
    for (schema, released) in EVENT_SCHEMAS.iter().zip(RELEASED) {
        let mut json = without_docs(&serde_json::from_str(schema.text)?);
        json.sort_all_objects();
        let hash = xxhash_rust::xxh3::xxh3_64(json.to_string().as_bytes());
        assert_eq!(
            hash, released,
            "version {} has the hash {hash:016x}",
            schema.version
        );
    }
    Ok(())
}

#[test]
fn fingerprints_are_the_specifications() -> Result<(), Box<dyn Error>> {
    for schema in EVENT_SCHEMAS {
        let canonical = Schema::parse(&without_logical_longs(&serde_json::from_str(schema.text)?))?;
        let fingerprint = canonical.fingerprint::<Rabin>().bytes;
        assert_eq!(
            fingerprint,
            schema.fingerprint.to_le_bytes(),
            "version {}",
            schema.version
        );
    }
    Ok(())
}

#[test]
fn a_newer_schema_reads_what_an_older_one_wrote() -> Result<(), Box<dyn Error>> {
    for (newer, reader) in EVENT_SCHEMAS.iter().enumerate() {
        for writer in &EVENT_SCHEMAS[..=newer] {
            let (old, new) = (
                Schema::parse_str(writer.text)?,
                Schema::parse_str(reader.text)?,
            );
            let found = SchemaCompatibility::can_read(&old, &new);
            assert_eq!(
                found,
                Ok(Compatibility::Full),
                "version {} of {}",
                reader.version,
                writer.version
            );
        }
    }
    Ok(())
}

#[test]
fn a_union_or_an_enum_only_grows_at_its_end() -> Result<(), Box<dyn Error>> {
    for pair in EVENT_SCHEMAS.windows(2) {
        let (older, newer) = (lists(pair[0].text)?, lists(pair[1].text)?);
        for (place, entries) in older {
            let now = newer
                .iter()
                .find(|(other, _)| *other == place)
                .map(|(_, entries)| entries.as_slice());
            assert!(
                now.is_some_and(|now| now.starts_with(&entries)),
                "{place} in version {}",
                pair[1].version
            );
        }
    }
    Ok(())
}

/// Names, each with those that it lists in order.
type Lists = Vec<(String, Vec<String>)>;

/// The branches of the payload and the symbols of each enum.
fn lists(schema: &str) -> Result<Lists, Box<dyn Error>> {
    fn collect(schema: &Value, lists: &mut Lists) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match schema {
            Value::Object(fields) => {
                let list = match (fields.get("symbols"), fields.get("type")) {
                    (Some(Value::Array(symbols)), _) => symbols.iter().map(text).collect(),
                    (_, Some(Value::Array(branches))) => branches
                        .iter()
                        .map(|branch| text(&branch["name"]))
                        .collect(),
                    _ => Vec::new(),
                };
                if !list.iter().all(String::is_empty) {
                    lists.push((text(&schema["name"]), list));
                }
                fields.values().for_each(|value| collect(value, lists));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, lists)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_str(schema)?, &mut found);
    Ok(found)
}

#[test]
fn the_lists_compared_are_the_payload_and_both_enums() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = lists(EVENT_SCHEMAS[0].text)?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        BTreeSet::from_iter(names),
        BTreeSet::from(["History", "Kind", "payload"].map(str::to_owned))
    );
    Ok(())
}

/// What the comparison says of version 1 read by itself after a change.
#[track_caller]
fn after(from: &str, to: &str) -> Result<Option<Compatibility>, Box<dyn Error>> {
    let old = EVENT_SCHEMAS[0].text;
    assert_eq!(old.matches(from).count(), 1, "{from}");
    let new = Schema::parse_str(&old.replace(from, to))?;
    Ok(SchemaCompatibility::can_read(&Schema::parse_str(old)?, &new).ok())
}

#[test]
fn a_change_that_would_lose_events_is_caught() -> Result<(), Box<dyn Error>> {
    let symbols = r#""symbols": ["from_join", "all"]"#;
    assert_eq!(
        after(symbols, r#""symbols": ["from_join"]"#)?,
        Some(Compatibility::Partial)
    );
    assert_eq!(
        after(symbols, r#""symbols": ["from_join", "all", "none"]"#)?,
        Some(Compatibility::Full)
    );

    let branch = r#""name": "InboxAcked""#;
    assert_eq!(
        after(branch, r#""name": "InboxStored""#)?,
        Some(Compatibility::Partial)
    );

    let fields = r#""doc": "Users joined a group.",
          "fields": ["#;
    let added = |field: &str| format!("{fields} {field},");
    assert_eq!(
        after(fields, &added(r#"{"name": "by", "type": "string"}"#))?,
        Some(Compatibility::Partial)
    );
    let with_default = added(r#"{"name": "by", "type": "string", "default": ""}"#);
    assert_eq!(after(fields, &with_default)?, Some(Compatibility::Full));

    let actor = r#""name": "actor",
      "type": "string""#;
    assert_eq!(after(actor, &actor.replace("string", "long"))?, None);
    Ok(())
}

#[test]
fn every_type_and_field_is_documented() -> Result<(), Box<dyn Error>> {
    fn check(schema: &Value, undocumented: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                if fields.contains_key("name") && fields.get("doc").is_none_or(|doc| doc == "") {
                    undocumented.push(fields["name"].to_string());
                }
                fields.values().for_each(|value| check(value, undocumented));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| check(entry, undocumented)),
            _ => {}
        }
    }
    for schema in EVENT_SCHEMAS {
        let mut undocumented = Vec::new();
        check(&serde_json::from_str(schema.text)?, &mut undocumented);
        assert!(
            undocumented.is_empty(),
            "version {}: {undocumented:?}",
            schema.version
        );
    }
    Ok(())
}
