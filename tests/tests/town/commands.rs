//! The command line beside a running town: what commands print, and the codes they exit with.

use crate::{Size, Town, Value, check, check_part, json, without};

const DONE: i32 = 0;
const DIFFERENCE: i32 = 1;
const USAGE: i32 = 2;

fn parsed(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[tokio::test]
async fn what_tail_prints_produce_takes_and_again_changes_nothing() {
    let town = Town::shared().await;
    let scene = town.scene(Size::FannedOut);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says_many("g1", 20).await;
    scene
        .user("bo")
        .edits("g1", 3, json!({"body": "edited"}))
        .await;
    let before = scene.user("anna").session("g1").await;

    let (code, output, errors) = town.command(&["tail"], "").await;
    assert_eq!(code, DONE, "{errors}");
    let ours: Vec<Value> = output
        .lines()
        .map(parsed)
        .filter(|line| line["event"]["conversation_id"] == scene.on_wire("g1"))
        .collect();
    assert_eq!(ours.len(), 22, "a creation, messages, an edit");
    let offsets: Vec<Option<u64>> = ours.iter().map(|line| line["offset"].as_u64()).collect();
    assert!(
        offsets.is_sorted() && ours[0]["log_time"].is_string() && ours[0]["partition"].is_u64(),
        "{}",
        ours[0]
    );

    let events: String = ours
        .iter()
        .map(|line| format!("{}\n", line["event"]))
        .collect();
    let (code, output, errors) = town
        .command(&["produce", "--output", "json"], &events)
        .await;
    assert_eq!(code, DONE, "{output}{errors}");
    check_part(&parsed(&output), &json!({"appended": 22, "bad_lines": 0}));
    scene.user("bo").says("g1", "and on").await;
    let after = scene.user("anna").session("g1").await;
    check_part(&after, &json!({"last_seq": 21, "unread": 21}));
    let moved = [
        "last_seq",
        "unread",
        "as_of",
        "last_active_at",
        "last_message",
    ];
    check(&without(&after, &moved), &without(&before, &moved));
}

#[tokio::test]
async fn produce_tells_bad_lines_by_number_and_appends_the_others() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let line = |body: &str| {
        let (conversation, actor) = (scene.on_wire("g1"), scene.on_wire("bo"));
        json!({"conversation_id": conversation, "actor": actor, "type": "MessageSent", "payload": {"body": body}})
    };
    let lines = format!("{}\n{{\"nonsense\": 1}}\n\n{}\n", line("one"), line("two"));
    let (code, output, errors) = town.command(&["produce", "--output", "json"], &lines).await;
    assert_eq!(code, DIFFERENCE, "{output}{errors}");
    check_part(&parsed(&output), &json!({"appended": 2, "bad_lines": 1}));
    assert!(
        format!("{output}{errors}").contains("line 2"),
        "{output}{errors}"
    );
    // A write of one's own stands behind them in the log.
    scene.user("bo").says("g1", "three").await;
    assert_eq!(scene.user("anna").seqs("g1", "after=0").await, [1, 2, 3]);
}

#[tokio::test]
async fn views_tells_how_far_each_generation_is() {
    let town = Town::shared().await;
    let (code, output, errors) = town.command(&["views", "--output", "json"], "").await;
    assert_eq!(code, DONE, "{errors}");
    let generations = parsed(&output)["generations"].as_array().unwrap().clone();
    let mut names: Vec<&str> = generations
        .iter()
        .map(|generation| generation["view"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["inbox", "roaming", "sessions"]);
    for generation in &generations {
        check_part(generation, &json!({"generation": 1, "active": true}));
        let partitions = generation["partitions"].as_array().unwrap();
        assert_eq!(partitions.len(), 4);
        for partition in partitions {
            let number = |field: &str| partition[field].as_u64().unwrap();
            assert_eq!(
                number("lag"),
                number("log_end") - number("next_offset"),
                "{partition}"
            );
        }
    }
    let (code, output, _) = town.command(&["views"], "").await;
    assert_eq!(code, DONE);
    assert!(
        output.contains("VIEW") && output.contains("sessions"),
        "{output}"
    );
}

#[tokio::test]
async fn setup_may_be_repeated_and_never_makes_another_log_of_it() {
    let town = Town::shared().await;
    let (code, output, errors) = town.command(&["setup", "--partitions", "4"], "").await;
    assert_eq!(code, DONE, "{output}{errors}");
    assert!(
        output.contains("was there") && !output.contains(" made "),
        "{output}"
    );
    for (option, value) in [("--partitions", "8"), ("--dedupe-window", "1h")] {
        let (code, output, errors) = town.command(&["setup", option, value], "").await;
        assert_eq!(code, DIFFERENCE, "{option} {value}: {output}{errors}");
        assert!(
            !errors.is_empty() || output.contains("difference"),
            "{option} {value}: {output}{errors}"
        );
    }
}

#[tokio::test]
async fn a_slip_in_the_command_line_is_told_and_exits_with_2() {
    let town = Town::shared().await;
    for arguments in [
        vec!["frobnicate"],
        vec!["project"],
        vec!["project", "nothing"],
        vec!["setup", "--partitions", "0"],
        vec!["setup", "--dedupe-window", "soon"],
        vec!["tail", "--partition", "99"],
    ] {
        let (code, output, errors) = town.command(&arguments, "").await;
        assert_eq!(code, USAGE, "{arguments:?}: {output}{errors}");
        assert!(
            !errors.is_empty() && output.is_empty(),
            "{arguments:?}: {output}{errors}"
        );
    }
}

#[tokio::test]
async fn a_day_of_an_irc_channel_becomes_a_conversation_and_again_adds_nothing() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let day = "[09:00] <anna> morning\n\
        === cem [~cem@example.org] has joined #e2e\n\
        [09:01] <cem> anna: hi there\n\
        nothing that anybody knows\n\
        === cem [~cem@example.org] has left #e2e\n\
        [09:02] <anna> alone again\n";
    let folder = std::env::temp_dir().join(scene.on_wire("irc"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("2005-02-27.txt");
    std::fs::write(&file, day).unwrap();
    // No other test has a channel.
    for round in 0..2 {
        let file = file.to_str().unwrap();
        let arguments = [
            "import",
            "irc",
            "--channel",
            "e2e",
            "--output",
            "json",
            file,
        ];
        let (code, output, errors) = town.command(&arguments, "").await;
        assert_eq!(code, DONE, "round {round}: {output}{errors}");
    }
    std::fs::remove_dir_all(&folder).unwrap();

    let url = format!(
        "{}/v1/conversations/irc-e2e-2005-02-27/messages?after=0",
        town.gateways()[0].url()
    );
    let history = crate::until("the day there", tidemark_e2e::PATIENCE, async || {
        let request = reqwest::Client::new()
            .get(&url)
            .header("X-User", "anna")
            .send()
            .await
            .unwrap();
        let page: Value = request.json().await.unwrap();
        match page["messages"].as_array() {
            Some(messages) if messages.len() >= 3 => Ok(messages.clone()),
            _ => Err(page),
        }
    })
    .await;
    let said: Vec<Value> = history
        .iter()
        .map(|message| json!([message["sender"], message["body"]]))
        .collect();
    check(
        &Value::from(said),
        &json!([
            ["anna", "morning"],
            ["cem", "anna: hi there"],
            ["anna", "alone again"]
        ]),
    );
    check_part(
        &history[1],
        &json!({"mentions": ["anna"], "occurred_at": "2005-02-27T09:01:00.000Z"}),
    );
}
