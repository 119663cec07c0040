//! Who is called what.
//!
//! A user's id is the first nick seen of them, and stays theirs through every rename. A nick that its user was
//! renamed away from and that turns up again is somebody else's, whose id is then `nick~2`.

use std::collections::{HashMap, HashSet};

use tidemark_event::{IdError, UserId};

#[derive(Debug, Default)]
pub(super) struct Nicks {
    /// Whose nick it is now.
    held: HashMap<String, UserId>,
    /// Whose nick it was last: people go on addressing somebody by the nick they had.
    known: HashMap<String, UserId>,
    /// Every id given so far.
    users: HashSet<UserId>,
}

impl Nicks {
    /// Whom somebody means who says this nick; none for a nick never seen.
    pub(super) fn known(&self, nick: &str) -> Option<&UserId> {
        self.known.get(nick)
    }

    /// Whose nick it is. A nick that nobody holds is a new user's.
    pub(super) fn holder(&mut self, nick: &str) -> Result<UserId, IdError> {
        if let Some(user) = self.held.get(nick) {
            return Ok(user.clone());
        }
        let mut user = UserId::new(nick)?;
        let mut number = 1;
        while self.users.contains(&user) {
            number += 1;
            // No network allows a `~` in a nick.
            user = UserId::new(format!("{nick}~{number}"))?;
        }
        self.users.insert(user.clone());
        self.give(nick, user.clone());
        Ok(user)
    }

    /// Gives who holds `from` the nick `to`, and returns who held that until now. They must have gone: no two may
    /// hold one nick.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<UserId> {
        let user = self.held.remove(from)?;
        let gone = self.held.remove(to);
        self.give(to, user);
        gone
    }

    fn give(&mut self, nick: &str, user: UserId) {
        self.known.insert(nick.to_owned(), user.clone());
        self.held.insert(nick.to_owned(), user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(nicks: &mut Nicks, nick: &str, user: &str) {
        assert_eq!(nicks.holder(nick).unwrap().as_str(), user, "{nick}");
    }

    #[test]
    fn a_user_is_who_they_were_at_first() {
        let mut nicks = Nicks::default();
        holds(&mut nicks, "anna", "anna");
        assert_eq!(nicks.rename("anna", "anna_"), None);
        assert_eq!(nicks.rename("anna_", "anna__"), None);
        holds(&mut nicks, "anna__", "anna");
        assert_eq!(nicks.known("anna_").map(UserId::as_str), Some("anna"));
        assert_eq!(nicks.known("bo"), None);
    }

    #[test]
    fn a_nick_that_was_left_behind_is_the_next_ones() {
        let mut nicks = Nicks::default();
        holds(&mut nicks, "anna", "anna");
        nicks.rename("anna", "anna_");
        holds(&mut nicks, "anna", "anna~2");
        nicks.rename("anna", "zoe");
        holds(&mut nicks, "anna", "anna~3");
        holds(&mut nicks, "anna_", "anna");
        holds(&mut nicks, "zoe", "anna~2");
    }

    #[test]
    fn who_held_a_nick_that_another_takes_has_gone() {
        let mut nicks = Nicks::default();
        holds(&mut nicks, "anna", "anna");
        holds(&mut nicks, "anna_", "anna_");
        let gone = nicks.rename("anna_", "anna");
        assert_eq!(gone.as_ref().map(UserId::as_str), Some("anna"));
        holds(&mut nicks, "anna", "anna_");
        // The nick that is free again is a third user's.
        holds(&mut nicks, "anna_", "anna_~2");
    }

    #[test]
    fn a_nick_renamed_to_itself_stays() {
        let mut nicks = Nicks::default();
        holds(&mut nicks, "anna", "anna");
        assert_eq!(nicks.rename("anna", "anna"), None);
        holds(&mut nicks, "anna", "anna");
    }
}
