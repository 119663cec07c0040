//! A made-up workplace: who talks where, and what one person misses in five days away.
//!
//! Mira is there for a day, reads everything, and is away for five days until now. In that time exactly 900 messages
//! that count as unread for her are sent in 40 groups, and a few in direct chats. Three of them mention her, one
//! addresses everybody. Beside them stand those that do not count: silent ones, system messages, ones that were
//! recalled, and all that a group had before she was added to it; and one that mentioned her until it was edited.
//!
//! The story follows from its seed and its end alone, so what it promises is known when it is told, and the views
//! can be held against it. It holds nothing that a fold refuses.

mod chat;
mod dice;
mod direct;
mod people;
mod plot;
mod room;
mod stock;
mod talk;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{
    ConversationId, DeviceId, Event, History, Kind, MAX_MEMBERS_PER_EVENT, Seq, SessionChanged,
    UserId,
};

use self::{
    chat::{Chat, Said},
    dice::Dice,
    direct::Direct,
    people::{People, Person},
    plot::{Address, DIRECTS, GROUPS, Group, MISSED_IN_DIRECTS, READ_DIRECTS, Singled},
    room::Room,
    stock::Topic,
    talk::Talk,
};

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// How long Mira is away.
const AWAY: i64 = 5 * DAY;
/// How long the story goes before that.
const BEFORE: i64 = DAY;
/// Between the last message and Mira's goodbye, and between the last of all and now: room for what follows one.
const REST: i64 = 5 * MINUTE;

/// How many messages there are in a group that Mira is not in while she is away.
const MESSAGES_WITHOUT_HER: usize = 120;
/// How many there are in the group that she is added to, before she is.
const MISSED_BEFORE_JOINING: usize = 40;
/// Beside so many messages that count for her there is one that does not.
const UNCOUNTED_ONE_IN: usize = 8;

/// How many bursts of a hundred that would fall into the night are told.
const NIGHT_PERCENT: usize = 8;
/// The most messages that follow each other at once.
const LONGEST_BURST: usize = 9;

/// A story, and what it promises.
#[derive(Debug)]
pub(crate) struct Story {
    /// Every event, in the order in which they happened.
    pub(crate) events: Vec<Event>,
    pub(crate) promise: Promise,
}

/// What the returning user must find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The returning user.
    pub(crate) user: UserId,
    /// The device on which she had stored everything before she left.
    pub(crate) device: DeviceId,
    /// Unread messages, by conversation; only where there are any.
    pub(crate) unread: BTreeMap<ConversationId, u64>,
    /// The sum of them over groups.
    pub(crate) unread_in_groups: u64,
    /// The sum of them over direct chats.
    pub(crate) unread_in_directs: u64,
    /// The unread messages that mention her by name, the oldest first.
    pub(crate) mentions: Vec<(ConversationId, Seq)>,
    /// The unread message that addresses everybody.
    pub(crate) mentioned_all: Option<(ConversationId, Seq)>,
    /// The other one's name in each of her direct chats, which have no titles.
    pub(crate) peers: BTreeMap<ConversationId, String>,
}

/// Tells the story that ends at `now`, in milliseconds since 1970 UTC.
pub(crate) fn tell(now: i64, seed: u64) -> Story {
    let mut teller = Teller::new(now, seed);
    for group in &GROUPS {
        teller.tell_group(group);
    }
    teller.tell_directs();
    teller.finish()
}

struct Teller {
    seed: u64,
    name: String,
    began: i64,
    left: i64,
    now: i64,
    mira: Person,
    people: People,
    told: Vec<(i64, Event)>,
    promise: Promise,
}

impl Teller {
    fn new(now: i64, seed: u64) -> Self {
        let mira = Person::called("Mira");
        let device = match DeviceId::new("laptop") {
            Ok(device) => device,
            Err(error) => unreachable!("a device can be called laptop: {error}"),
        };
        let left = now - AWAY;
        Self {
            seed,
            name: format!("{seed}/{now}"),
            began: left - BEFORE,
            left,
            now,
            promise: Promise {
                user: mira.id.clone(),
                device,
                unread: BTreeMap::new(),
                unread_in_groups: 0,
                unread_in_directs: 0,
                mentions: Vec::new(),
                mentioned_all: None,
                peers: BTreeMap::new(),
            },
            mira,
            people: People::new(),
            told: Vec::new(),
        }
    }

    /// All chats as one log: by time, and each chat's own order kept.
    fn finish(mut self) -> Story {
        self.told.sort_by_key(|(at, _)| *at);
        Story {
            events: self.told.into_iter().map(|(_, event)| event).collect(),
            promise: self.promise,
        }
    }

    fn tell_group(&mut self, group: &Group) {
        let mut room = self.room(group);
        let joins_away = group.id == plot::JOINED_AWAY;
        let is_there = group.missed > 0 && !joins_away;
        let visitor = is_there.then(|| self.mira.clone());
        self.open(group, &mut room, visitor.as_ref());

        let before = 80 + 4 * group.missed + room.dice.below(60);
        for at in moments(
            &mut room.dice,
            self.began + MINUTE,
            self.left - REST,
            before,
        ) {
            room.chatter(at, visitor.as_ref());
        }
        if is_there {
            self.say_goodbye(&mut room);
        }
        let mut since = self.left + MINUTE;
        if joins_away {
            let joins = self.left + AWAY / 2;
            for at in moments(&mut room.dice, since, joins - REST, MISSED_BEFORE_JOINING) {
                room.chatter(at, None);
            }
            let by = room.speaker();
            room.chat.add(joins, &by, std::slice::from_ref(&self.mira));
            since = joins + MINUTE;
        }
        if group.missed > 0 {
            self.tell_missed(group, &mut room, since);
            let missed = group.missed as u64;
            self.promise.unread_in_groups += missed;
            self.promise
                .unread
                .insert(room.chat.conversation().clone(), missed);
        } else {
            for at in moments(&mut room.dice, since, self.now - REST, MESSAGES_WITHOUT_HER) {
                room.chatter(at, None);
            }
        }
        self.told.extend(room.chat.into_told());
    }

    /// A group with its cast: who talks in it, who is in it and silent, and who may still come.
    fn room(&self, group: &Group) -> Room {
        const TALKING: usize = 14;
        const OUTSIDE: usize = 40;
        let mut dice = Dice::of_part(self.seed, group.id);
        let others = group.members - usize::from(group.missed > 0);
        let talking = others.min(TALKING - dice.below(8));
        let colleagues = dice.some_of(&self.people.colleagues, self.people.colleagues.len());
        let (speakers, known) = colleagues.split_at(talking);
        let strangers = dice.some_of(&self.people.others, self.people.others.len());
        let silent = others - talking;
        let from_known = known.len().min(silent / 2);
        let (strangers, outside) = strangers.split_at(silent - from_known);
        Room {
            chat: Chat::new(group.id, &self.name),
            talk: Talk::about(group.topic),
            speakers: speakers.to_vec(),
            crowd: [&known[..from_known], strangers].concat(),
            outside: outside[..OUTSIDE].to_vec(),
            free_places: 0,
            dice,
        }
    }

    /// Creates the group with everybody in it.
    fn open(&self, group: &Group, room: &mut Room, visitor: Option<&Person>) {
        let members: Vec<Person> = room
            .speakers
            .iter()
            .chain(visitor)
            .chain(&room.crowd)
            .cloned()
            .collect();
        let history = match group.topic {
            Topic::Company if visitor.is_some() => History::All,
            _ => History::FromJoin,
        };
        let (first, further) = members.split_at(members.len().min(MAX_MEMBERS_PER_EVENT));
        room.chat
            .create(self.began, Kind::Group, group.title, history, first);
        for more in further.chunks(MAX_MEMBERS_PER_EVENT) {
            room.chat.add(self.began + SECOND, &members[0], more);
        }
    }

    /// Mira's last acts in a group before she leaves: she has read and stored everything.
    fn say_goodbye(&self, room: &mut Room) {
        let at = self.left - MINUTE;
        let id = room.chat.conversation().to_string();
        if room.dice.percent(20) {
            let words = *room.dice.one_of(&plot::GOODBYES);
            room.chat.say(at, &self.mira, Said::text(words));
        }
        self.put_down(&mut room.chat, at);
        let pinned = plot::PINNED.contains(&id.as_str()).then_some(true);
        let draft = (plot::DRAFT.0 == id).then(|| plot::DRAFT.1.to_owned());
        if pinned.is_some() || draft.is_some() {
            let settings = SessionChanged {
                pinned,
                muted: None,
                draft,
            };
            room.chat.set(at, &self.mira, settings);
        }
    }

    /// Mira has read and stored everything in a chat.
    fn put_down(&self, chat: &mut Chat, at: i64) {
        chat.read(at, &self.mira);
        chat.store(at, &self.mira, &self.promise.device);
    }

    /// What is said while Mira is away: exactly so many messages that count for her, among others that do not.
    fn tell_missed(&mut self, group: &Group, room: &mut Room, since: i64) {
        let mut counts = vec![true; group.missed];
        counts.resize(group.missed + group.missed / UNCOUNTED_ONE_IN, false);
        let counts = room.dice.some_of(&counts, counts.len());
        let times = moments(&mut room.dice, since, self.now - REST, counts.len());
        let mut missed = 0;
        for (at, counts) in times.into_iter().zip(counts) {
            if !counts {
                let whom = room.dice.percent(20).then(|| self.mira.clone());
                room.say_uncounted(at, whom.as_ref());
                continue;
            }
            match plot::singled(group, missed) {
                Some(singled) => self.tell_singled(singled, room, at),
                None => {
                    let spoken = room.say(at);
                    room.follow_up(at, &spoken);
                }
            }
            missed += 1;
        }
    }

    fn tell_singled(&mut self, singled: &Singled, room: &mut Room, at: i64) {
        let sender = room.speaker();
        let mut said = Said::text(singled.words);
        said.mention_all = singled.address == Address::All;
        if !said.mention_all {
            said = said.mentioning(&self.mira);
        }
        let seq = room.chat.say(at, &sender, said);
        let place = (room.chat.conversation().clone(), seq);
        match singled.address {
            Address::ByName => self.promise.mentions.push(place),
            Address::All => self.promise.mentioned_all = Some(place),
            Address::ByNameUntil(words) => {
                let (words, nobody) = (words.to_owned(), Some(Vec::new()));
                room.chat.edit(at + MINUTE, &sender, seq, words, nobody);
            }
        }
    }

    fn tell_directs(&mut self) {
        let missed = MISSED_IN_DIRECTS.iter().copied();
        let read = READ_DIRECTS.iter().map(|name| (*name, &[][..]));
        let hers: Vec<(&str, &[&str])> = missed.chain(read).collect();
        for (name, missed) in &hers {
            self.tell_her_direct(&Person::called(name), missed);
        }
        let mut dice = Dice::of_part(self.seed, "directs");
        let mut pairs = BTreeSet::new();
        while pairs.len() < DIRECTS - hers.len() {
            let pair = dice.some_of(&self.people.colleagues, 2);
            let (one, other) = (&pair[0], &pair[1]);
            let ids = if one.id < other.id {
                (&one.id, &other.id)
            } else {
                (&other.id, &one.id)
            };
            if pairs.insert((ids.0.clone(), ids.1.clone())) {
                self.tell_direct(one, other);
            }
        }
    }

    /// A direct chat of Mira's, in which `missed` is said while she is away.
    fn tell_her_direct(&mut self, other: &Person, missed: &[&str]) {
        let mut direct = self.direct(&self.mira.clone(), other);
        let peer = (direct.chat.conversation().clone(), other.name.clone());
        self.promise.peers.extend([peer]);
        let before = 20 + direct.dice.below(60);
        for at in moments(
            &mut direct.dice,
            self.began + MINUTE,
            self.left - REST,
            before,
        ) {
            direct.talk(at);
        }
        self.put_down(&mut direct.chat, self.left - MINUTE);
        let times = moments(&mut direct.dice, self.left, self.now - REST, missed.len());
        for (at, words) in times.into_iter().zip(missed) {
            direct.chat.say(at, other, Said::text(*words));
        }
        if !missed.is_empty() {
            let conversation = direct.chat.conversation().clone();
            self.promise.unread_in_directs += missed.len() as u64;
            self.promise
                .unread
                .insert(conversation, missed.len() as u64);
        }
        self.told.extend(direct.chat.into_told());
    }

    fn tell_direct(&mut self, one: &Person, other: &Person) {
        let mut direct = self.direct(one, other);
        let messages = 70 + direct.dice.below(100);
        for at in moments(
            &mut direct.dice,
            self.began + MINUTE,
            self.now - REST,
            messages,
        ) {
            direct.talk(at);
        }
        self.told.extend(direct.chat.into_told());
    }

    fn direct(&self, one: &Person, other: &Person) -> Direct {
        Direct::begin(
            self.seed,
            &self.name,
            self.began,
            [one.clone(), other.clone()],
        )
    }
}

/// So many moments in order, from `since` until `until`, in bursts as people talk, and more of them by day.
fn moments(dice: &mut Dice, since: i64, until: i64, count: usize) -> Vec<i64> {
    let mut moments = Vec::with_capacity(count);
    while moments.len() < count {
        let mut at = dice.between(since, until);
        let hour = at.rem_euclid(DAY) / (60 * MINUTE);
        let is_day = (7..19).contains(&hour);
        if !is_day && !dice.percent(NIGHT_PERCENT) {
            continue;
        }
        let burst = 1 + dice.below(LONGEST_BURST);
        for _ in 0..burst.min(count - moments.len()) {
            if at < until {
                moments.push(at);
            }
            at += dice.between(5 * SECOND, 3 * MINUTE);
        }
    }
    moments.sort_unstable();
    moments
}
