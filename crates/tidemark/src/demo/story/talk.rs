//! What people say: a small stock of phrases, filled in with what the group is about.
//!
//! In a phrase `{thing}` and `{other}` are two of the topic's things, `{name}` is somebody in the group, whom the
//! message then mentions, `{day}` is a day and `{n}` a number.

use super::dice::Dice;

/// What a group talks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Incident,
    Payments,
    Platform,
    Release,
    Company,
    Design,
    Mobile,
    Data,
    Support,
    Office,
    Search,
    Hiring,
    Security,
    Food,
    Sport,
    Home,
    Between,
}

/// A topic's own words.
struct Stock {
    things: &'static [&'static str],
    lines: &'static [&'static str],
}

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

impl Topic {
    const fn is_work(self) -> bool {
        !matches!(
            self,
            Self::Company | Self::Office | Self::Food | Self::Sport | Self::Home | Self::Between
        )
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

const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];

/// Answers to a question.
const ANSWERS: &[&str] = &[
    "yes",
    "yes, as of this morning",
    "no, sorry",
    "not yet, but soon",
    "I think so, let me check",
    "looking now",
    "give me ten minutes",
    "I can take it",
    "{name} would know",
    "it was like that before I came",
    "only on {day}",
    "let me ask, one moment",
    "probably, but please don't quote me",
    "done already",
    "good question",
    "depends on who you ask",
];

/// What is said everywhere.
const SMALL: &[&str] = &[
    "thanks!",
    "thank you {name}",
    "👍",
    "🎉",
    "on it",
    "sounds good to me",
    "same here",
    "+1",
    "nice",
    "ok, let's do that",
    "makes sense",
    "morning all",
    "sorry, was in a meeting",
    "back in half an hour",
    "can we talk about it on {day}?",
    "I'll write it down",
    "ha, true",
    "that's a good point, {name}",
    "let me think about it",
    "who else should see this?",
    "I'm off on {day}, just so that you know",
    "please keep it in this thread",
];

/// What is said wherever people work on something.
const WORK: &[&str] = &[
    "is {thing} still blocked?",
    "who owns {thing} these days?",
    "{name} can you look at {thing} when you have a minute?",
    "I put up a change for {thing}, reviews are welcome",
    "{thing} is done, {other} is next",
    "we said we would finish {thing} before {day}",
    "I'd rather fix {thing} first and then {other}",
    "what happens to {other} when {thing} goes away?",
    "{thing}: merged, and live behind a flag",
    "found it, it was {thing} all along",
    "can we drop {thing}? Nobody has used it for {n} days",
    "I moved {thing} to {day}",
    "small update on {thing}: {n} of 100 are through",
    "{name} you were right about {thing}",
    "there's a page about {thing} now, linked on top",
];

fn stock(topic: Topic) -> &'static Stock {
    match topic {
        Topic::Incident => &Stock {
            things: &[
                "the ledger worker",
                "the failover",
                "the queue in eu-2",
                "the pager rule",
                "the status page",
                "the replica",
                "the retry storm",
                "the runbook",
            ],
            lines: &[
                "paging {name}: {thing} is red again",
                "error rate is down to {n} in ten thousand",
                "restarted {thing}, watching",
                "customers see it too, support has {n} tickets",
                "{thing} caught up, {other} is still behind",
                "what changed in the last hour?",
                "only the deploy of {thing}, and that is rolled back",
                "I'll take the notes for the postmortem",
                "lag is at {n} seconds and falling",
                "{thing} is green. Keeping this open until {day}",
                "can somebody confirm from outside?",
                "confirmed, works for me",
                "silenced the alarm for {thing} until {day}",
                "hand-over: {name} has the pager from here",
            ],
        },
        Topic::Payments => &Stock {
            things: &[
                "the refund job",
                "the new checkout form",
                "the card fallback",
                "the invoice export",
                "the currency rounding",
                "the saved-cards page",
                "the settlement report",
                "the voucher field",
            ],
            lines: &[
                "{thing} rounds down where the bank rounds up",
                "finance wants {thing} by {day}",
                "conversion is up by {n} basis points since {thing}",
                "the bank's sandbox is down, so {thing} has to wait",
                "{name} can you send me the failing receipts?",
                "we charged {n} people twice in staging. Only in staging",
                "is {thing} idempotent yet?",
                "test cards for {thing} are in the vault",
                "legal is fine with {thing}",
                "I would not ship {thing} on a Friday",
            ],
        },
        Topic::Platform => &Stock {
            things: &[
                "the new cluster",
                "the build cache",
                "the log pipeline",
                "node 14",
                "the upgrade",
                "the image registry",
                "the staging database",
                "the certificate rotation",
            ],
            lines: &[
                "{thing} is at {n} % disk",
                "draining {thing} now, expect a blip",
                "builds are {n} % faster with {thing}",
                "{thing} wants a restart, any objections?",
                "none from me",
                "the dashboard for {thing} lies, look at the raw numbers",
                "quota raised for {name}",
                "{thing} runs on {day} at noon, UTC",
                "who left {n} volumes behind?",
                "renewed {thing}, good for a year",
            ],
        },
        Topic::Release => &Stock {
            things: &[
                "the release branch",
                "the changelog",
                "the migration",
                "build 4812",
                "the feature flag",
                "the rollback plan",
                "the smoke test",
                "the translation freeze",
            ],
            lines: &[
                "train leaves on {day}, last call for {thing}",
                "{thing} is in",
                "{thing} is not in, sorry {name}",
                "cherry-picked {thing}",
                "{n} changes since the last one",
                "go or no go?",
                "go",
                "go from us too",
                "holding for {thing}",
                "rolled out to {n} %",
                "done, thank you everybody",
            ],
        },
        Topic::Company => &Stock {
            things: &[
                "the town hall",
                "the new badge readers",
                "the survey",
                "the canteen",
                "the car park",
                "the summer party",
            ],
            lines: &[
                "slides of {thing} are up",
                "please remember {thing} on {day}",
                "{n} answers to the survey so far, thank you",
                "welcome to everybody who started this week!",
                "{thing} moves to {day}",
                "lost: one grey scarf, third floor",
                "found: one grey scarf, third floor",
            ],
        },
        Topic::Design => &Stock {
            things: &[
                "the empty state",
                "the new icon set",
                "the colour tokens",
                "the onboarding flow",
                "the dark theme",
                "the settings page",
                "the table layout",
                "the error message",
            ],
            lines: &[
                "put two versions of {thing} into the file",
                "I like the second, {thing} breathes more",
                "contrast of {thing} is too low for small text",
                "can {thing} work without {other}?",
                "{name} your prototype made me smile",
                "that is {n} clicks, can it be two?",
                "people in the study all missed {thing}",
                "who has a real example with long names?",
                "let's cut {thing} and see who complains",
            ],
        },
        Topic::Mobile => &Stock {
            things: &[
                "the crash on rotate",
                "the offline mode",
                "the push token",
                "the beta",
                "the share sheet",
                "the old tablet",
                "the deep link",
                "the store listing",
            ],
            lines: &[
                "{thing} only happens on the old tablet",
                "beta {n} is out, please try {thing}",
                "store review took {n} hours this time",
                "reproduced {thing} twice, then never again",
                "{name} which build do you have?",
                "battery drain is back to normal",
                "{thing} works in flight mode now",
                "removed {n} kilobytes",
            ],
        },
        Topic::Data => &Stock {
            things: &[
                "the nightly load",
                "the events table",
                "the funnel query",
                "the duplicate rows",
                "the forecast",
                "the warehouse bill",
                "the backfill",
                "the column nobody reads",
            ],
            lines: &[
                "{thing} took {n} minutes, used to be five",
                "numbers for {day} look too good to be true",
                "they were. {thing} counted twice",
                "{name} can you share the query?",
                "backfilled {n} days of {thing}",
                "{thing} is late, the dashboards are yesterday's",
                "who depends on {thing}?",
                "I'd trust {thing} more than {other}",
            ],
        },
        Topic::Support => &Stock {
            things: &[
                "the password reset",
                "the missing invoice",
                "the export",
                "the login loop",
                "the German template",
                "the delivery address",
                "the phone line",
                "the backlog",
            ],
            lines: &[
                "third ticket about {thing} today",
                "{name} this one is for you: {thing}, customer {n}",
                "told them to clear the cache, it helped",
                "told them to clear the cache, it did not help",
                "is {thing} known?",
                "known, fix goes out on {day}",
                "customer is happy again",
                "backlog is at {n}",
                "can we have an answer to copy for {thing}?",
            ],
        },
        Topic::Office => &Stock {
            things: &[
                "the coffee machine",
                "the lift",
                "the meeting room",
                "the heating",
                "the bike cellar",
                "the post",
            ],
            lines: &[
                "{thing} is broken again",
                "{thing} works again",
                "parcel for {name} at the desk",
                "who has the key for {thing}?",
                "{thing} is booked all day on {day}",
                "visitors on {day}, please tidy up",
                "left my charger in {thing}, has anybody seen it?",
                "Döner oder Mensa?",
                "Döner",
                "fire drill on {day}",
            ],
        },
        Topic::Search => &Stock {
            things: &[
                "the ranking",
                "the synonyms",
                "the index",
                "the typo tolerance",
                "the zero-result page",
                "the crawl",
                "the relevance test",
            ],
            lines: &[
                "{thing} is {n} ms at the 99th",
                "people search for {thing} and find {other}",
                "reindexed, took {n} minutes",
                "judged {n} queries by hand, {thing} wins",
                "{name} what do you get for 'blue'?",
                "everything but blue",
                "rolled {thing} back, will try on {day}",
            ],
        },
        Topic::Hiring => &Stock {
            things: &[
                "the second interview",
                "the take-home task",
                "the offer",
                "the job post",
                "the referral",
                "the panel",
            ],
            lines: &[
                "{thing} is on {day}",
                "can somebody stand in for {name}?",
                "I liked how they talked about {thing}",
                "notes are in before {day}, please",
                "they said yes!",
                "{n} applications since {day}",
                "no hire from me, but a kind no",
                "strong yes",
            ],
        },
        Topic::Security => &Stock {
            things: &[
                "the pen test",
                "the old key",
                "the dependency alert",
                "the audit",
                "the access review",
                "the phishing mail",
            ],
            lines: &[
                "{thing} is closed",
                "rotated {thing}",
                "{n} accounts without a second factor, the list is with {name}",
                "nobody clicked on {thing}. Well, almost nobody",
                "patch for {thing} is out, please restart your machines before {day}",
                "is {thing} exploitable here?",
                "removed {n} permissions that nobody missed",
            ],
        },
        Topic::Food => &Stock {
            things: &[
                "the ramen place",
                "the soup",
                "the market",
                "pizza",
                "the new bakery",
                "the falafel stand",
            ],
            lines: &[
                "{thing} at half past twelve?",
                "in",
                "me too",
                "queue at {thing} is {n} people long",
                "{thing} is closed on {day}",
                "{name} owes me a coffee",
                "there is cake on the second floor",
                "there was cake on the second floor",
            ],
        },
        Topic::Sport => &Stock {
            things: &[
                "the long route",
                "the red wall",
                "the hill",
                "the early slot",
                "the new shoes",
                "the relay",
            ],
            lines: &[
                "{thing} on {day}?",
                "count me in",
                "too wet, I'd say {day}",
                "{n} minutes, new best!",
                "well done {name}",
                "my knees say no",
                "who brings the rope?",
                "meet at the gate, six sharp",
            ],
        },
        Topic::Home => &Stock {
            things: &[
                "the fern",
                "chapter nine",
                "the puppy",
                "the school form",
                "the sourdough",
                "the record player",
                "the new expansion",
            ],
            lines: &[
                "{thing} update: still alive",
                "does anybody want {thing}?",
                "that photo of {thing} made my day, {name}",
                "I need advice about {thing}",
                "bring {thing} on {day}!",
                "mine did the same after {n} weeks",
                "adorable",
                "can recommend",
            ],
        },
        Topic::Between => &Stock {
            things: &[
                "the draft",
                "the train tickets",
                "your comment",
                "the numbers",
                "the keys",
                "that song",
                "the agenda",
            ],
            lines: &[
                "did you see {thing}?",
                "just sent you {thing}",
                "do you have five minutes?",
                "call me when you are free",
                "lunch on {day}?",
                "you are a hero",
                "I'm running {n} minutes late",
                "will do",
                "have you heard from the others?",
                "see you on {day}",
                "no rush with {thing}",
                "that went well, I think",
            ],
        },
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
