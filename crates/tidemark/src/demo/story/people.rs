//! Who works there.

use tidemark_event::UserId;

/// The first names of those whom the returning user meets. Their ids are these, in small letters.
const COLLEAGUES: [&str; 84] = [
    "Jonas", "Aisha", "Tomas", "Ingrid", "Kenji", "Priya", "Lukas", "Noor", "Elena", "Mateo",
    "Freya", "Samir", "Hana", "Oskar", "Leila", "Diego", "Anouk", "Yusuf", "Clara", "Emeka",
    "Sofia", "Ravi", "Maja", "Henrik", "Zainab", "Pavel", "Ines", "Kofi", "Astrid", "Bruno",
    "Chiara", "Dmitri", "Esra", "Felix", "Greta", "Hugo", "Isla", "Jamal", "Katya", "Liam", "Mei",
    "Nadia", "Omar", "Petra", "Quentin", "Rosa", "Stefan", "Tara", "Ulrike", "Viktor", "Wanda",
    "Ximena", "Yara", "Zoltan", "Adaeze", "Bastian", "Camille", "Dario", "Edith", "Farid",
    "Gloria", "Hassan", "Irina", "Joana", "Kaspar", "Lotte", "Marek", "Nilufar", "Olga", "Paul",
    "Rania", "Sven", "Thea", "Uche", "Vera", "Willem", "Yael", "Zuzana", "Amir", "Beatriz", "Colm",
    "Dana", "Eero", "Fatima",
];

const FIRST_NAMES: [&str; 48] = [
    "adam", "agnes", "alba", "anton", "arda", "bela", "boris", "carla", "cecil", "daria", "denis",
    "dora", "edgar", "elif", "emil", "erik", "eva", "flora", "gabor", "gina", "goran", "ida",
    "igor", "ilse", "ivan", "jana", "jiri", "judit", "karl", "kira", "leon", "lidia", "luca",
    "malik", "marta", "milan", "nina", "nuria", "otto", "paula", "rafa", "rita", "sara", "sonja",
    "tariq", "tilda", "uwe", "vito",
];

const LAST_NAMES: [&str; 48] = [
    "abe", "adler", "akin", "alves", "amadi", "bauer", "berg", "bianchi", "blom", "boateng",
    "castro", "chen", "costa", "dahl", "diallo", "dubois", "ek", "farkas", "ferrari", "fischer",
    "garcia", "gruber", "haas", "hansen", "horvat", "ito", "jansen", "kaya", "keller", "khan",
    "kovacs", "kruger", "lang", "larsen", "lopez", "mensah", "moreau", "nagy", "novak", "okafor",
    "park", "rossi", "sato", "silva", "singh", "varga", "weber", "yilmaz",
];

/// Somebody, and how others write their name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) id: UserId,
    pub(super) name: String,
}

/// Everybody.
#[derive(Debug)]
pub(super) struct People {
    /// Those who talk.
    pub(super) colleagues: Vec<Person>,
    /// Those who fill the large groups.
    pub(super) others: Vec<Person>,
}

impl People {
    pub(super) fn new() -> Self {
        let colleagues = COLLEAGUES.iter().map(|name| Person::called(name));
        let others = LAST_NAMES.iter().flat_map(|last| {
            FIRST_NAMES
                .iter()
                .map(move |first| Person::called(&format!("{first}.{last}")))
        });
        Self {
            colleagues: colleagues.collect(),
            others: others.collect(),
        }
    }
}

impl Person {
    /// Somebody of that name. The lists here, and whoever asks, have names only that can be ids.
    pub(super) fn called(name: &str) -> Self {
        match UserId::new(name.to_lowercase()) {
            Ok(id) => Self {
                id,
                name: name.to_owned(),
            },
            Err(error) => unreachable!("{name:?} is one of the story's names: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_enough_people_and_no_two_share_an_id() {
        let People { colleagues, others } = People::new();
        let all = colleagues.iter().chain(&others);
        let ids: BTreeSet<&UserId> = all.map(|person| &person.id).collect();
        assert_eq!(ids.len(), colleagues.len() + others.len());
        assert!(ids.len() >= 2_000);
        assert!(!ids.iter().any(|id| id.as_str() == "mira"));
    }
}
