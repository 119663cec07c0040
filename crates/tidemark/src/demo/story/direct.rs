//! A chat of two.

use tidemark_event::{History, Kind};

use super::{
    SECOND,
    chat::{Chat, Said},
    dice::Dice,
    people::Person,
    stock::Topic,
    talk::Talk,
};

/// Two people, and what they say to each other.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) chat: Chat,
    pub(super) dice: Dice,
    talk: Talk,
    pair: [Person; 2],
}

impl Direct {
    /// The first of them begins it.
    pub(super) fn begin(seed: u64, story: &str, at: i64, pair: [Person; 2]) -> Self {
        let [one, other] = &pair;
        let id = format!("direct-{}-{}", one.id, other.id);
        let mut chat = Chat::new(&id, story);
        chat.create(at, Kind::Direct, "", History::All, &pair);
        Self {
            chat,
            dice: Dice::of_part(seed, &id),
            talk: Talk::about(Topic::Between),
            pair,
        }
    }

    /// One of them says something, and the other may read it.
    pub(super) fn talk(&mut self, at: i64) {
        let sender = self.dice.below(2);
        let (sender, other) = (&self.pair[sender], &self.pair[1 - sender]);
        let line = self.talk.next(&mut self.dice, &other.name);
        let said = Said::text(line.body);
        let said = if line.names_somebody {
            said.mentioning(other)
        } else {
            said
        };
        self.chat.say(at, sender, said);
        if self.dice.percent(25) {
            self.chat.read(at + 10 * SECOND, other);
        }
    }
}
