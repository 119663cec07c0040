//! Holds what the gateway answers against what the story promised.

use std::collections::BTreeMap;

use tidemark_event::{ConversationId, Kind, Seq};

use super::{
    answers::{Mentions, Sync},
    story::Promise,
};

/// Each difference, in a sentence; none where the promise is kept. `sync` holds all of the user's sessions.
pub(super) fn differences(promise: &Promise, sync: &Sync, mentions: &Mentions) -> Vec<String> {
    let mut differences = Vec::new();
    let mut expect = |what: &str, found: &dyn std::fmt::Debug, promised: &dyn std::fmt::Debug| {
        let (found, promised) = (format!("{found:?}"), format!("{promised:?}"));
        if found != promised {
            differences.push(format!("{what}: {found}, but {promised} was promised"));
        }
    };
    let total = promise.unread_in_groups + promise.unread_in_directs;
    expect("unread in all", &sync.total_unread, &total);
    let sum_of = |kind: Kind| -> u64 {
        let of_kind = sync.sessions.iter().filter(|session| session.kind == kind);
        of_kind.map(|session| session.unread).sum()
    };
    expect(
        "unread in groups",
        &sum_of(Kind::Group),
        &promise.unread_in_groups,
    );
    expect(
        "unread in direct chats",
        &sum_of(Kind::Direct),
        &promise.unread_in_directs,
    );

    let unread = sync.sessions.iter().filter(|session| session.unread > 0);
    let unread: BTreeMap<&ConversationId, u64> = unread
        .map(|session| (&session.conversation_id, session.unread))
        .collect();
    for conversation in promise.unread.keys().chain(unread.keys().copied()) {
        let found = unread.get(conversation).copied().unwrap_or_default();
        let promised = promise
            .unread
            .get(conversation)
            .copied()
            .unwrap_or_default();
        expect(&format!("unread in {conversation}"), &found, &promised);
    }
    let mut named: Vec<(ConversationId, Seq)> = mentions
        .mentions
        .iter()
        .map(|mention| (mention.conversation_id.clone(), mention.seq))
        .collect();
    named.sort_unstable();
    let mut promised = promise.mentions.clone();
    promised.sort_unstable();
    expect("mentions by name", &named, &promised);
    let with_all = sync
        .sessions
        .iter()
        .find_map(|session| Some((session.conversation_id.clone(), session.mentioned_all_seq?)));
    expect("mention of everybody", &with_all, &promise.mentioned_all);
    differences.dedup();
    differences
}

#[cfg(test)]
mod tests {
    use tidemark_event::{DeviceId, UserId};

    use super::*;

    fn conversation(id: &str) -> ConversationId {
        ConversationId::new(id).unwrap()
    }

    fn promise() -> Promise {
        Promise {
            user: UserId::new("mira").unwrap(),
            device: DeviceId::new("laptop").unwrap(),
            unread: BTreeMap::from([(conversation("g"), 3), (conversation("d"), 1)]),
            unread_in_groups: 3,
            unread_in_directs: 1,
            mentions: vec![(conversation("g"), Seq::new(7))],
            mentioned_all: None,
            peers: BTreeMap::new(),
        }
    }

    fn answers(unread: u64, mentioned: u64) -> (Sync, Mentions) {
        let sync = serde_json::json!({"total_unread": unread + 1, "sessions": [
            {"conversation_id": "g", "kind": "group", "title": "G", "unread": unread, "unread_mentions": [7],
             "mentioned_all_seq": null, "last_seq": 9, "pinned": false, "draft": "", "messages": []},
            {"conversation_id": "d", "kind": "direct", "title": "", "unread": 1, "unread_mentions": [],
             "mentioned_all_seq": null, "last_seq": 2, "pinned": false, "draft": "", "messages": []},
        ]});
        let mentions = serde_json::json!({"mentions": [
            {"conversation_id": "g", "title": "G", "seq": mentioned, "sender": "bo", "preview": "hi"},
        ]});
        (
            serde_json::from_value(sync).unwrap(),
            serde_json::from_value(mentions).unwrap(),
        )
    }

    #[test]
    fn a_kept_promise_has_no_differences() {
        let (sync, mentions) = answers(3, 7);
        assert_eq!(differences(&promise(), &sync, &mentions), [""; 0]);
    }

    #[test]
    fn each_difference_is_told() {
        let (sync, mentions) = answers(4, 8);
        let expected = [
            "unread in all: 5, but 4 was promised",
            "unread in groups: 4, but 3 was promised",
            "unread in g: 4, but 3 was promised",
            r#"mentions by name: [(ConversationId("g"), Seq(8))], but [(ConversationId("g"), Seq(7))] was promised"#,
        ];
        assert_eq!(differences(&promise(), &sync, &mentions), expected);
    }
}
