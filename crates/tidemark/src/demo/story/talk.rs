//! What people say: a small stock of phrases, filled in with what the group is about.
//!
//! In a phrase `{thing}` and `{other}` are two of the topic's things, `{name}` is somebody in the group, whom the
//! message then mentions, `{day}` is a day and `{n}` a number.

use super::{
    dice::Dice,
    stock::{ANSWERS, DAYS, SMALL, Stock, Topic, WORK, stock},
};

/// Something to say, and whether it names somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) body: String,
    pub(super) names_somebody: bool,
}

/// How many of a chat's newest lines are not said again.
const REMEMBERED: usize = 12;

/// Says one thing after another in one chat.
#[derive(Debug)]
pub(super) struct Talk {
    topic: Topic,
    said: Vec<String>,
}

impl Talk {
    pub(super) fn about(topic: Topic) -> Self {
        Self {
            topic,
            said: Vec::new(),
        }
    }

    /// The next line, which answers the one before where that was a question. `name` is whom it may name.
    pub(super) fn next(&mut self, dice: &mut Dice, name: &str) -> Line {
        let mut line = self.think(dice, name);
        for _ in 0..REMEMBERED {
            if !self.said.contains(&line.body) {
                break;
            }
            line = self.think(dice, name);
        }
        if self.said.len() == REMEMBERED {
            self.said.remove(0);
        }
        self.said.push(line.body.clone());
        line
    }

    fn think(&self, dice: &mut Dice, name: &str) -> Line {
        let was_asked = self.said.last().is_some_and(|last| last.ends_with('?'));
        let stock = stock(self.topic);
        let phrases = match dice.below(10) {
            0..=4 if was_asked => ANSWERS,
            0..=4 => stock.lines,
            5..=6 if self.topic.is_work() => WORK,
            _ => SMALL,
        };
        let phrase = dice.one_of(phrases);
        fill(phrase, stock, dice, name)
    }
}

fn fill(phrase: &str, stock: &Stock, dice: &mut Dice, name: &str) -> Line {
    let things = dice.some_of(stock.things, 2);
    let mut body = String::with_capacity(phrase.len() + 32);
    let mut rest = phrase;
    while let Some((before, after)) = rest.split_once('{') {
        body.push_str(before);
        let Some((slot, after)) = after.split_once('}') else {
            unreachable!("a slot stays open in {phrase:?}");
        };
        match slot {
            "thing" => body.push_str(things[0]),
            "other" => body.push_str(things[1]),
            "name" => body.push_str(&format!("@{name}")),
            "day" => body.push_str(dice.one_of::<&str>(DAYS)),
            "n" => body.push_str(&(2 + dice.below(97)).to_string()),
            _ => unreachable!("{phrase:?} has a slot that means nothing: {slot}"),
        }
        rest = after;
    }
    body.push_str(rest);
    Line {
        body: capitalised(&body),
        names_somebody: phrase.contains("{name}"),
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TOPICS: [Topic; 17] = [
        Topic::Incident,
        Topic::Payments,
        Topic::Platform,
        Topic::Release,
        Topic::Company,
        Topic::Design,
        Topic::Mobile,
        Topic::Data,
        Topic::Support,
        Topic::Office,
        Topic::Search,
        Topic::Hiring,
        Topic::Security,
        Topic::Food,
        Topic::Sport,
        Topic::Home,
        Topic::Between,
    ];

    #[test]
    fn every_phrase_of_every_topic_can_be_filled_in() {
        for topic in TOPICS {
            let stock = stock(topic);
            assert!(stock.things.len() >= 2);
            for phrase in [stock.lines, ANSWERS, SMALL, WORK].concat() {
                let line = fill(phrase, stock, &mut Dice::new(1), "Bo");
                assert!(!line.body.contains(['{', '}']), "{}", line.body);
                assert_eq!(line.names_somebody, line.body.contains("@Bo"));
            }
        }
    }

    #[test]
    fn a_chat_does_not_repeat_itself_at_once() {
        let mut talk = Talk::about(Topic::Food);
        let mut dice = Dice::new(3);
        let lines: Vec<String> = (0..200).map(|_| talk.next(&mut dice, "Bo").body).collect();
        assert!(lines.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(lines.iter().collect::<BTreeSet<_>>().len() > 40);
    }
}
