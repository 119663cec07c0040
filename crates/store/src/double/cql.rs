//! Reads the CQL that this crate's statements and table files use, and nothing more: what is not understood is refused
//! aloud.

use scylla::frame::response::result::{CollectionType, ColumnType, NativeType};

/// Words and marks of a statement, one after the other.
pub(super) struct Tokens {
    all: Vec<String>,
    next: usize,
    /// `?` seen so far.
    pub(super) binds: usize,
}

/// Why a statement is not understood.
#[derive(Debug, thiserror::Error)]
#[error("the store in memory does not know this CQL: {0}")]
pub(crate) struct UnknownCql(pub(super) String);

impl Tokens {
    pub(super) fn of(text: &str) -> Self {
        let mut all: Vec<String> = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            if char.is_whitespace() {
                continue;
            }
            let mut token = String::from(char);
            if char == '\'' {
                for char in chars.by_ref() {
                    token.push(char);
                    if char == '\'' {
                        break;
                    }
                }
            } else if is_word(char) {
                while let Some(char) = chars.next_if(|char| is_word(*char)) {
                    token.push(char);
                }
            } else if matches!(char, '<' | '>') && chars.next_if_eq(&'=').is_some() {
                token.push('=');
            }
            all.push(token);
        }
        Self {
            all,
            next: 0,
            binds: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<&str> {
        self.all.get(self.next).map(String::as_str)
    }

    /// Passes over these words if they come next.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split(' ').collect();
        let found = self.all[self.next..].iter().map(String::as_str);
        let is_there = found.take(wanted.len()).eq(wanted.iter().copied());
        if is_there {
            self.next += wanted.len();
            self.binds += wanted.iter().filter(|word| **word == "?").count();
        }
        is_there
    }

    pub(super) fn expect(&mut self, words: &str) -> Result<(), UnknownCql> {
        if self.eat(words) {
            return Ok(());
        }
        Err(self.unknown(words))
    }

    pub(super) fn unknown(&self, wanted: &str) -> UnknownCql {
        let at = self.peek().unwrap_or("the end");
        UnknownCql(format!("wanted {wanted} at {at} in {}", self.all.join(" ")))
    }

    pub(super) fn word(&mut self) -> Result<String, UnknownCql> {
        match self.peek() {
            Some(word) if word.starts_with(is_word) => {
                let word = word.to_owned();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.unknown("a name")),
        }
    }

    /// The place of the `?` that comes next among all of them.
    pub(super) fn bind(&mut self) -> Result<usize, UnknownCql> {
        let place = self.binds;
        self.expect("?")?;
        Ok(place)
    }

    /// A table's name, with its keyspace.
    pub(super) fn table(&mut self) -> Result<String, UnknownCql> {
        let keyspace = self.word()?;
        self.expect(".")?;
        Ok(format!("{keyspace}.{}", self.word()?))
    }

    /// Names with commas between, up to a closing parenthesis.
    pub(super) fn names_to_close(&mut self) -> Result<Vec<String>, UnknownCql> {
        let mut names = vec![self.word()?];
        while self.eat(",") {
            names.push(self.word()?);
        }
        self.expect(")")?;
        Ok(names)
    }

    pub(super) fn expect_end(&self) -> Result<(), UnknownCql> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unknown("the end")),
        }
    }

    pub(super) fn column_type(&mut self) -> Result<ColumnType<'static>, UnknownCql> {
        if self.eat("frozen <") {
            let is_map = self.eat("map <");
            if !is_map {
                self.expect("list <")?;
            }
            let first = Box::new(self.column_type()?);
            let typ = if is_map {
                self.expect(",")?;
                CollectionType::Map(first, Box::new(self.column_type()?))
            } else {
                CollectionType::List(first)
            };
            self.expect("> >")?;
            return Ok(ColumnType::Collection { frozen: true, typ });
        }
        let native = match self.word()?.as_str() {
            "text" => NativeType::Text,
            "bigint" => NativeType::BigInt,
            "int" => NativeType::Int,
            "blob" => NativeType::Blob,
            "boolean" => NativeType::Boolean,
            "uuid" => NativeType::Uuid,
            "timestamp" => NativeType::Timestamp,
            _ => return Err(self.unknown("a type")),
        };
        Ok(ColumnType::Native(native))
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// A table as it was made.
#[derive(Debug)]
pub(crate) struct TableDef {
    /// With its keyspace.
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Columns of the partition key, in order.
    pub(super) partition: Vec<usize>,
    /// Clustering columns, in order.
    pub(super) clustering: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) typ: ColumnType<'static>,
}

impl TableDef {
    /// Reads what follows `CREATE TABLE IF NOT EXISTS`. Options of the table are passed over, but for an order.
    pub(super) fn read(tokens: &mut Tokens) -> Result<Self, UnknownCql> {
        let name = tokens.table()?;
        tokens.expect("(")?;
        let (mut columns, mut keys) = (Vec::new(), None);
        loop {
            if tokens.eat("PRIMARY KEY (") {
                let partition = if tokens.eat("(") {
                    tokens.names_to_close()?
                } else {
                    vec![tokens.word()?]
                };
                let clustering = if tokens.eat(",") {
                    tokens.names_to_close()?
                } else {
                    tokens.expect(")")?;
                    Vec::new()
                };
                keys = Some((partition, clustering));
            } else {
                let name = tokens.word()?;
                let typ = tokens.column_type()?;
                if tokens.eat("PRIMARY KEY") {
                    keys = Some((vec![name.clone()], Vec::new()));
                }
                columns.push(Column { name, typ });
            }
            if !tokens.eat(",") {
                break;
            }
        }
        tokens.expect(")")?;
        while let Some(option) = tokens.peek() {
            if option == "CLUSTERING" {
                return Err(tokens.unknown("ascending order"));
            }
            tokens.next += 1;
        }
        let Some((partition, clustering)) = keys else {
            return Err(UnknownCql(format!("{name} has no primary key")));
        };
        let mut table = Self {
            name,
            columns,
            partition: Vec::new(),
            clustering: Vec::new(),
        };
        let places = |names: Vec<String>| -> Result<Vec<usize>, UnknownCql> {
            names.iter().map(|name| table.column(name)).collect()
        };
        let (partition, clustering) = (places(partition)?, places(clustering)?);
        table.partition = partition;
        table.clustering = clustering;
        Ok(table)
    }

    pub(super) fn column(&self, name: &str) -> Result<usize, UnknownCql> {
        let place = self.columns.iter().position(|column| column.name == name);
        place.ok_or_else(|| UnknownCql(format!("{} has no column {name}", self.name)))
    }

    /// Its name without the keyspace.
    pub(super) fn short_name(&self) -> &str {
        self.name
            .split_once('.')
            .map_or(self.name.as_str(), |(_, name)| name)
    }

    pub(super) fn is_key(&self, column: usize) -> bool {
        self.partition.contains(&column) || self.clustering.contains(&column)
    }
}
