//! The groups there are, and how much the returning user misses in each.

use super::stock::Topic;

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) topic: Topic,
    /// How many are in it.
    pub(super) members: usize,
    /// How many messages in it count as unread for the returning user at the end; 0: she is not in it.
    pub(super) missed: usize,
}

/// The group of everybody.
pub(super) const EVERYBODY: &str = "everybody";

/// A missed message that is told word by word.
#[derive(Debug)]
pub(super) struct Singled {
    pub(super) group: &'static str,
    /// How many messages are missed in the group before it.
    pub(super) place: usize,
    pub(super) words: &'static str,
    pub(super) address: Address,
}

/// Whom a message addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// The returning user.
    ByName,
    /// Everybody.
    All,
    /// The returning user, until its sender replaces it by these words.
    ByNameUntil(&'static str),
}

/// The messages that are told word by word: three mentions early, in the middle and late in the busiest group, one
/// that addresses everybody, and one that mentioned her at first.
pub(super) const SINGLED: [Singled; 5] = [
    Singled {
        group: "incident-bridge",
        place: 11,
        words: "@Mira do you remember why the retry cap of the ledger worker is 7? We are hitting it right now",
        address: Address::ByName,
    },
    Singled {
        group: "incident-bridge",
        place: 93,
        words: "@Mira when you are back: the failover runbook still names you as its owner. Is that right?",
        address: Address::ByName,
    },
    Singled {
        group: "incident-bridge",
        place: 185,
        words: "@Mira your fix from last week saved us, the ledger caught up by itself. Postmortem on Monday, please bring the graphs",
        address: Address::ByName,
    },
    Singled {
        group: EVERYBODY,
        place: 17,
        words: "@all the office is closed on Friday: the water main in our street is being replaced. Please work from home",
        address: Address::All,
    },
    Singled {
        group: "support-escalations",
        place: 6,
        words: "@Mira can you call the customer with the login loop?",
        address: Address::ByNameUntil(
            "can somebody call the customer with the login loop? Mira is away",
        ),
    },
];

/// The message that is to be told at this place, if it is singled out.
pub(super) fn singled(group: &Group, place: usize) -> Option<&'static Singled> {
    SINGLED
        .iter()
        .find(|singled| singled.group == group.id && singled.place == place)
}

/// The groups that she has pinned.
pub(super) const PINNED: [&str; 2] = ["incident-bridge", "checkout-rewrite"];

/// The group in which she has begun a text, and the text.
pub(super) const DRAFT: (&str, &str) = ("roadmap", "About the second quarter: I would rather");

/// What she says in some groups before she leaves.
pub(super) const GOODBYES: [&str; 3] = [
    "off until next week, be good!",
    "I'm away until Monday",
    "see you in a week 👋",
];

/// The group that she is added to while she is away.
pub(super) const JOINED_AWAY: &str = "offsite-planning";

/// The direct chats in which she has something unread, and what.
pub(super) const MISSED_IN_DIRECTS: [(&str, &[&str]); 5] = [
    (
        "Jonas",
        &[
            "hope you are somewhere warm",
            "no rush, but can you call me when you are back?",
            "it's about the on-call rota",
        ],
    ),
    (
        "Aisha",
        &[
            "your plants are fine. Even the fern",
            "I did sing to it, as told",
        ],
    ),
    (
        "Kenji",
        &["sent you the draft, comments by Wednesday would be great"],
    ),
    (
        "Ingrid",
        &[
            "you have been volunteered for the panel on Thursday 🙈",
            "say no if it does not fit",
        ],
    ),
    ("Noor", &["welcome back! Lunch?"]),
];

/// Further direct chats of hers, in which she has read everything.
pub(super) const READ_DIRECTS: [&str; 3] = ["Priya", "Mateo", "Freya"];

/// All direct chats, hers among them.
pub(super) const DIRECTS: usize = 60;

const fn group(
    id: &'static str,
    title: &'static str,
    topic: Topic,
    members: usize,
    missed: usize,
) -> Group {
    Group {
        id,
        title,
        topic,
        members,
        missed,
    }
}

/// The groups, the busiest first.
pub(super) const GROUPS: [Group; 41] = [
    group(
        "incident-bridge",
        "Incident bridge",
        Topic::Incident,
        46,
        187,
    ),
    group(
        "checkout-rewrite",
        "Checkout rewrite",
        Topic::Payments,
        24,
        118,
    ),
    group("platform", "Platform", Topic::Platform, 35, 84),
    group("release-train", "Release train", Topic::Release, 62, 61),
    group("design-crit", "Design crit", Topic::Design, 18, 45),
    group("mobile", "Mobile", Topic::Mobile, 22, 40),
    group("data-pipelines", "Data pipelines", Topic::Data, 19, 36),
    group(
        "support-escalations",
        "Support escalations",
        Topic::Support,
        90,
        33,
    ),
    group("berlin-office", "Berlin office", Topic::Office, 140, 27),
    group("search-team", "Search team", Topic::Search, 12, 24),
    group(EVERYBODY, "Everybody", Topic::Company, 2_000, 23),
    group("hiring-panel", "Hiring panel", Topic::Hiring, 9, 20),
    group("roadmap", "Roadmap", Topic::Design, 16, 18),
    group("security", "Security", Topic::Security, 14, 17),
    group("lunch", "Lunch", Topic::Food, 75, 16),
    group("on-call-swap", "On-call swap", Topic::Incident, 28, 14),
    group("api-guild", "API guild", Topic::Payments, 110, 13),
    group("frontend-guild", "Frontend guild", Topic::Design, 160, 12),
    group("accessibility", "Accessibility", Topic::Design, 13, 11),
    group("partner-launch", "Partner launch", Topic::Release, 17, 10),
    group("docs", "Docs", Topic::Support, 15, 9),
    group("analytics", "Analytics", Topic::Data, 21, 9),
    group("localisation", "Localisation", Topic::Support, 11, 8),
    group("book-club", "Book club", Topic::Home, 8, 7),
    group("climbing", "Climbing", Topic::Sport, 12, 6),
    group("running", "Running", Topic::Sport, 30, 6),
    group("plants", "Plants", Topic::Home, 6, 5),
    group(
        "dogs-of-the-office",
        "Dogs of the office",
        Topic::Home,
        120,
        5,
    ),
    group("parents", "Parents", Topic::Home, 26, 5),
    group(JOINED_AWAY, "Offsite planning", Topic::Company, 9, 5),
    group("music", "Music", Topic::Home, 33, 4),
    group("board-games", "Board games", Topic::Home, 10, 4),
    group("bike-commuters", "Bike commuters", Topic::Sport, 41, 3),
    group("announcements", "Announcements", Topic::Company, 300, 3),
    group("it-help", "IT help", Topic::Support, 280, 3),
    group("postmortems", "Postmortems", Topic::Incident, 64, 3),
    group(
        "payroll-questions",
        "Payroll questions",
        Topic::Company,
        230,
        2,
    ),
    group("experiments", "Experiments", Topic::Data, 20, 2),
    group("old-checkout", "Old checkout", Topic::Payments, 25, 1),
    group("trio", "Trio", Topic::Between, 3, 1),
    group("welcome-back-mira", "Welcome back Mira", Topic::Food, 7, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_hundred_messages_are_missed_in_forty_groups() {
        let missed = || GROUPS.iter().filter(|group| group.missed > 0);
        assert_eq!(missed().count(), 40);
        assert_eq!(missed().map(|group| group.missed).sum::<usize>(), 900);
    }

    #[test]
    fn there_are_forty_groups_of_3_to_300_and_one_of_2000() {
        let small = GROUPS
            .iter()
            .filter(|group| (3..=300).contains(&group.members));
        assert_eq!(small.count(), 40);
        let large = GROUPS.iter().find(|group| group.id == EVERYBODY).unwrap();
        assert_eq!(large.members, 2_000);
    }

    #[test]
    fn what_is_singled_out_is_among_what_is_missed() {
        for singled in &SINGLED {
            let group = GROUPS
                .iter()
                .find(|group| group.id == singled.group)
                .unwrap();
            assert!(singled.place < group.missed, "{singled:?}");
        }
    }
}
