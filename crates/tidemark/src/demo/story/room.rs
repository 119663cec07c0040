//! What happens in one group: people say things, take them back, read, come and go.

use tidemark_event::{Seq, SessionChanged};

use super::{
    MINUTE, SECOND,
    chat::{Chat, Said},
    dice::Dice,
    people::Person,
    talk::Talk,
};

/// A message, just said.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) sender: Person,
    pub(super) seq: Seq,
    body: String,
}

/// A group, who talks in it, and chance.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) chat: Chat,
    pub(super) talk: Talk,
    /// Those who talk. They stay.
    pub(super) speakers: Vec<Person>,
    /// Those who only read, and may leave.
    pub(super) crowd: Vec<Person>,
    /// Those who may come.
    pub(super) outside: Vec<Person>,
    /// How many have left and not been replaced.
    pub(super) free_places: usize,
    pub(super) dice: Dice,
}

impl Room {
    /// Something is said, perhaps by the visitor, and something may follow.
    pub(super) fn chatter(&mut self, at: i64, visitor: Option<&Person>) {
        match (self.dice.below(100), visitor) {
            (0..6, Some(visitor)) => {
                self.say_as(at, visitor.clone());
            }
            (6..9, Some(visitor)) => self.chat.read(at, visitor),
            (9..14, _) => self.say_uncounted(at, None),
            _ => {
                let spoken = self.say(at);
                self.follow_up(at, &spoken);
            }
        }
    }

    /// One of the speakers says something that counts as unread for all others.
    pub(super) fn say(&mut self, at: i64) -> Spoken {
        let sender = self.speaker();
        self.say_as(at, sender)
    }

    /// Something is said that counts for nobody: it is silent, the software's own, or taken back. It may mention
    /// `whom`, who must never notice.
    pub(super) fn say_uncounted(&mut self, at: i64, whom: Option<&Person>) {
        let sender = self.speaker();
        let address = |said: Said| match whom {
            Some(whom) => Said {
                body: format!("@{} {}", whom.name, said.body),
                ..said
            }
            .mentioning(whom),
            None => said,
        };
        match self.dice.below(3) {
            0 => {
                let number = 4_800 + self.dice.below(90);
                let said = address(Said::text(format!("build {number} is green")));
                self.chat.say(
                    at,
                    &sender,
                    Said {
                        silent: true,
                        ..said
                    },
                );
            }
            1 => {
                let notes = [
                    "renamed a channel bookmark",
                    "changed the group's picture",
                    "pinned a message",
                ];
                let note = format!("{} {}", sender.name, self.dice.one_of(&notes));
                self.chat.note(at, note);
            }
            _ => {
                let said = address(Said::text("sorry, wrong window"));
                let seq = self.chat.say(at, &sender, said);
                self.chat.recall(at + 20 * SECOND, &sender, seq);
            }
        }
    }

    /// What may follow a message: its sender mends it, others read it, somebody comes or goes.
    pub(super) fn follow_up(&mut self, at: i64, spoken: &Spoken) {
        match self.dice.below(100) {
            0..3 => {
                let Spoken { sender, seq, body } = spoken;
                let words = format!("{body} (sorry, wrong thread at first)");
                self.chat.edit(at + 30 * SECOND, sender, *seq, words, None);
            }
            3..24 => {
                let reader = self.speaker();
                self.chat.read(at + 15 * SECOND, &reader);
            }
            24..29 => self.come(at + MINUTE),
            29..30 => self.go(at + MINUTE),
            30..32 => {
                let who = self.speaker();
                let muted = Some(self.dice.percent(50));
                let settings = SessionChanged {
                    pinned: None,
                    muted,
                    draft: None,
                };
                self.chat.set(at + 10 * SECOND, &who, settings);
            }
            _ => {}
        }
    }

    pub(super) fn speaker(&mut self) -> Person {
        self.dice.one_of(&self.speakers).clone()
    }

    fn say_as(&mut self, at: i64, sender: Person) -> Spoken {
        let other = loop {
            let other = self.speaker();
            if other != sender {
                break other;
            }
        };
        let line = self.talk.next(&mut self.dice, &other.name);
        let body = line.body;
        let mut said = Said::text(&body);
        if line.names_somebody {
            said = said.mentioning(&other);
        }
        let last = self.chat.last().get();
        if last > 3 && self.dice.percent(8) {
            let back = self.dice.below(3) as u64;
            said.reply_to = Some(Seq::new(last - back));
        }
        let seq = self.chat.say(at, &sender, said);
        Spoken { sender, seq, body }
    }

    /// Somebody of the crowd leaves, and may come again.
    fn go(&mut self, at: i64) {
        if self.crowd.is_empty() {
            return;
        }
        let who = self.crowd.swap_remove(self.dice.below(self.crowd.len()));
        self.chat.leave(at, &who);
        self.outside.push(who);
        self.free_places += 1;
    }

    /// Somebody is added where somebody has left, so that a group never has more members than the plot says.
    fn come(&mut self, at: i64) {
        if self.free_places == 0 {
            return;
        }
        let by = self.speaker();
        let who = self
            .outside
            .swap_remove(self.dice.below(self.outside.len()));
        self.chat.add(at, &by, std::slice::from_ref(&who));
        self.crowd.push(who);
        self.free_places -= 1;
    }
}
