//! The house stays a house: crates depend down the plan of `docs/architecture.md`, never up.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, process::Command};

/// What each crate may depend on. Tests and their helpers may look at everything below them.
const PLAN: [(&str, &[&str]); 10] = [
    ("tidemark-event", &[]),
    ("tidemark-fold", &["tidemark-event"]),
    ("tidemark-store", &["tidemark-event", "tidemark-fold"]),
    (
        "tidemark-projector",
        &["tidemark-event", "tidemark-fold", "tidemark-store"],
    ),
    (
        "tidemark-gateway",
        &["tidemark-event", "tidemark-fold", "tidemark-store"],
    ),
    (
        "tidemark-audit",
        &["tidemark-event", "tidemark-fold", "tidemark-store"],
    ),
    (
        "tidemark",
        &[
            "tidemark-event",
            "tidemark-fold",
            "tidemark-store",
            "tidemark-projector",
            "tidemark-gateway",
            "tidemark-audit",
        ],
    ),
    ("tidemark-model", &["tidemark-event"]),
    (
        "tidemark-proof",
        &["tidemark-event", "tidemark-fold", "tidemark-model"],
    ),
    ("tidemark-e2e", &["tidemark-event", "tidemark-model"]),
];

#[test]
fn no_crate_depends_upwards() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let plan: BTreeMap<_, _> = PLAN.into_iter().collect();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed = plan
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no place in the plan"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let (on, kind) = (
                dependency["name"].as_str().unwrap(),
                dependency["kind"].as_str(),
            );
            let is_ours = on == "tidemark" || on.starts_with("tidemark-");
            assert!(
                !is_ours || kind == Some("dev") || allowed.contains(&on),
                "{name} depends on {on}"
            );
        }
    }
}
