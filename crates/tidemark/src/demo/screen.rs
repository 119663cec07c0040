//! The first screen, as somebody who comes back would want to read it: mentions, then the conversations.
//!
//! Text with styles in it; whoever prints it takes them out where there is no terminal.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anstyle::{AnsiColor, Effects, Style};
use jiff::{Timestamp, Unit};
use tidemark_event::ConversationId;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::answers::{Mention, Mentions, Message, Session, Sync};

const BOLD: Style = Style::new().effects(Effects::BOLD);
const DIM: Style = Style::new().effects(Effects::DIMMED);
const MENTION: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const UNREAD: Style = AnsiColor::Cyan.on_default().effects(Effects::BOLD);

/// Columns of a conversation's title, of a sender's name, and of a preview.
const TITLE_WIDTH: usize = 22;
const SENDER_WIDTH: usize = 10;
const PREVIEW_WIDTH: usize = 52;

/// What is shown.
pub(super) struct Screen<'a> {
    pub(super) sync: &'a Sync,
    pub(super) sync_took: Duration,
    pub(super) mentions: &'a Mentions,
    pub(super) mentions_took: Duration,
    /// How many sessions there are beside those in `sync`.
    pub(super) further: usize,
    /// The titles of direct chats.
    pub(super) peers: &'a BTreeMap<ConversationId, String>,
    pub(super) now: Timestamp,
}

impl Screen<'_> {
    /// The whole of it.
    pub(super) fn show(&self) -> String {
        let mut text = String::new();
        self.write_headline(&mut text);
        self.write_mentions(&mut text);
        self.write_sessions(&mut text);
        text
    }

    fn write_headline(&self, text: &mut String) {
        let unread = self.sync.total_unread;
        let by_name = self.mentions.mentions.len();
        let mentions = if by_name == 1 { "mention" } else { "mentions" };
        let _ = writeln!(
            text,
            "{UNREAD}{unread} unread{UNREAD:#}   {MENTION}{by_name} {mentions}{MENTION:#}\n"
        );
    }

    fn write_mentions(&self, text: &mut String) {
        let took = show_took("GET /v1/mentions", self.mentions_took);
        let _ = writeln!(text, "{BOLD}Mentions{BOLD:#}  {took}");
        for mention in &self.mentions.mentions {
            let Mention {
                title,
                seq,
                sender,
                preview,
                ..
            } = mention;
            let place = fit(&format!("{title} #{seq}"), TITLE_WIDTH);
            let sender = fit(sender.as_str(), SENDER_WIDTH);
            let preview = fit(preview.as_deref().unwrap_or_default(), PREVIEW_WIDTH + 8);
            let _ = writeln!(
                text,
                "  {MENTION}@{MENTION:#} {BOLD}{place}{BOLD:#}  {sender}  {}",
                preview.trim_end()
            );
        }
        text.push('\n');
    }

    fn write_sessions(&self, text: &mut String) {
        let took = show_took("GET /v1/sync", self.sync_took);
        let _ = writeln!(text, "{BOLD}Conversations{BOLD:#}  {took}");
        for session in &self.sync.sessions {
            self.write_session(text, session);
        }
        if self.further > 0 {
            let _ = writeln!(text, "  {DIM}and {} more{DIM:#}", self.further);
        }
    }

    fn write_session(&self, text: &mut String, session: &Session) {
        let title = self
            .peers
            .get(&session.conversation_id)
            .unwrap_or(&session.title);
        let title = fit(title, TITLE_WIDTH);
        let mark = if session.pinned { "★" } else { " " };
        let unread = match session.unread {
            0 => fit("", 5),
            unread => format!("{unread:>5}"),
        };
        let flag = match (session.unread_mentions.len(), session.mentioned_all_seq) {
            (0, None) => fit("", 4),
            (0, Some(_)) => fit("@all", 4),
            (count, _) => fit(&format!("@{count}"), 4),
        };
        let newest = session.messages.last();
        let (sender, preview) = match newest {
            _ if !session.draft.is_empty() => ("draft", session.draft.as_str()),
            Some(Message {
                sender,
                body: Some(body),
                ..
            }) => (sender.as_str(), body.as_str()),
            Some(Message {
                sender, body: None, ..
            }) => (sender.as_str(), "(taken back)"),
            None => ("", ""),
        };
        let (sender, preview) = (fit(sender, SENDER_WIDTH), fit(preview, PREVIEW_WIDTH));
        let when = newest.and_then(|message| message.occurred_at.as_deref()?.parse().ok());
        let when = when.map(|at| ago(at, self.now)).unwrap_or_default();
        let name = if session.unread > 0 {
            BOLD
        } else {
            Style::new()
        };
        let _ = writeln!(
            text,
            "{mark} {name}{title}{name:#} {UNREAD}{unread}{UNREAD:#} {MENTION}{flag}{MENTION:#} {sender}  {preview} {DIM}{when}{DIM:#}"
        );
    }
}

/// How long a call took, from its start until its answer was read.
pub(super) fn show_took(call: &str, took: Duration) -> String {
    format!("{DIM}{call}, {:.1} ms{DIM:#}", took.as_secs_f64() * 1_000.0)
}

/// A text in exactly so many columns: cut short, or filled up. Line breaks are shown as spaces.
fn fit(text: &str, columns: usize) -> String {
    let text: String = text
        .chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    let width = text.width();
    if width <= columns {
        return text + &" ".repeat(columns - width);
    }
    let mut cut = String::new();
    let mut used = 0;
    for character in text.chars() {
        let width = character.width().unwrap_or_default();
        if used + width >= columns {
            break;
        }
        cut.push(character);
        used += width;
    }
    cut.push('…');
    cut + &" ".repeat(columns - used - 1)
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    let minutes = now
        .since((Unit::Minute, at))
        .map_or(0, |span| span.get_minutes());
    match minutes {
        ..1 => "now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        _ => format!("{} d ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_text_takes_exactly_its_columns() {
        for (text, fitted) in [
            ("tea", "tea   "),
            ("coffee", "coffee"),
            ("cocoa!!", "cocoa…"),
            ("お茶です", "お茶… "),
            ("a\nb", "a b   "),
            ("", "      "),
        ] {
            assert_eq!(fit(text, 6), fitted);
            assert_eq!(fitted.width(), 6);
        }
    }

    #[test]
    fn the_first_screen_is_aligned() {
        let sync = serde_json::json!({"total_unread": 12, "sessions": [
            {"conversation_id": "g", "kind": "group", "title": "Incident bridge", "unread": 11, "unread_mentions": [7],
             "mentioned_all_seq": null, "last_seq": 9, "pinned": true, "draft": "",
             "messages": [{"sender": "bo", "body": "on it", "occurred_at": "2026-05-01T11:58:00Z"}]},
            {"conversation_id": "e", "kind": "group", "title": "Everybody", "unread": 1, "unread_mentions": [],
             "mentioned_all_seq": 4, "last_seq": 9, "pinned": false, "draft": "",
             "messages": [{"sender": "workplace", "body": null, "occurred_at": null}]},
            {"conversation_id": "d", "kind": "direct", "title": "", "unread": 0, "unread_mentions": [],
             "mentioned_all_seq": null, "last_seq": 2, "pinned": false, "draft": "I would", "messages": []},
        ]});
        let mentions = serde_json::json!({"mentions": [
            {"conversation_id": "g", "title": "Incident bridge", "seq": 7, "sender": "bo", "preview": "@Mira hi"},
        ]});
        let screen = Screen {
            sync: &serde_json::from_value(sync).unwrap(),
            sync_took: Duration::from_micros(12_340),
            mentions: &serde_json::from_value(mentions).unwrap(),
            mentions_took: Duration::from_micros(2_000),
            further: 5,
            peers: &BTreeMap::from([(ConversationId::new("d").unwrap(), "Jonas".to_owned())]),
            now: "2026-05-01T12:00:00Z".parse().unwrap(),
        };
        let expected = "\
12 unread   1 mention

Mentions  GET /v1/mentions, 2.0 ms
  @ Incident bridge #7      bo          @Mira hi

Conversations  GET /v1/sync, 12.3 ms
★ Incident bridge           11 @1   bo          on it                                                2 min ago
  Everybody                  1 @all workplace   (taken back)
  Jonas                             draft       I would
  and 5 more
";
        let shown: Vec<String> = plain(&screen.show())
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        assert_eq!(shown, expected.lines().collect::<Vec<_>>());
    }
}
