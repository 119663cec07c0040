//! Statements that have been prepared: what they bind and what they do.

use std::sync::Arc;

use scylla::frame::response::result::{
    CollectionType, ColumnSpec, ColumnType, NativeType, TableSpec,
};

use super::cql::{TableDef, Tokens, UnknownCql};

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) table: Arc<TableDef>,
    /// What its `?` take, in order.
    pub(super) binds: Vec<ColumnSpec<'static>>,
    /// What its answers have.
    pub(super) answer: Vec<ColumnSpec<'static>>,
    pub(super) act: Act,
}

/// Numbers of binds say where a value comes from.
#[derive(Debug)]
pub(super) enum Act {
    Insert {
        /// The column of each of the first binds.
        columns: Vec<usize>,
        timestamp: Option<usize>,
        ttl: Option<usize>,
        is_conditional: bool,
    },
    /// `UPDATE … SET column = ? WHERE … IF column = ?`.
    Update {
        set: (usize, usize),
        key: Vec<Condition>,
        when: (usize, usize),
    },
    /// Of whole partitions.
    Delete {
        timestamp: Option<usize>,
        key: Vec<Condition>,
    },
    Select {
        columns: Vec<usize>,
        conditions: Vec<Condition>,
        limit: Option<usize>,
    },
}

/// What a row must be like.
#[derive(Debug)]
pub(super) enum Condition {
    Compare(usize, Comparison, usize),
    In(usize, usize),
    /// `(a, b) > (?, ?)`.
    Beyond(Vec<usize>, Vec<usize>),
    /// Of the token of the partition key.
    Token(Comparison, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    LessOrEqual,
}

/// What stands for the name of a `?` that is no column.
struct Binds {
    table: Arc<TableDef>,
    specs: Vec<ColumnSpec<'static>>,
}

impl Binds {
    fn column(&mut self, column: usize) {
        let table = Arc::clone(&self.table);
        let column = &table.columns[column];
        self.named(&column.name, column.typ.clone());
    }

    fn named(&mut self, name: &str, typ: ColumnType<'static>) {
        let spec = spec(&self.table, name, typ);
        self.specs.push(spec);
    }
}

fn spec(table: &TableDef, name: &str, typ: ColumnType<'static>) -> ColumnSpec<'static> {
    let (keyspace, short) = table.name.split_once('.').unwrap_or(("", &table.name));
    let of = TableSpec::owned(keyspace.to_owned(), short.to_owned());
    ColumnSpec::owned(name.to_owned(), typ, of)
}

impl Plan {
    /// Reads a statement; `find` knows the tables.
    pub(super) fn read(
        text: &str,
        find: impl FnOnce(&str) -> Option<Arc<TableDef>>,
    ) -> Result<Self, UnpreparedCql> {
        let mut tokens = Tokens::of(text);
        let name = table_name(&mut Tokens::of(text))?;
        let table = find(&name).ok_or(UnpreparedCql::NoTable(name))?;
        let mut binds = Binds {
            table: table.clone(),
            specs: Vec::new(),
        };
        let act = if tokens.eat("INSERT INTO") {
            insert(&mut tokens, &mut binds)?
        } else if tokens.eat("UPDATE") {
            update(&mut tokens, &mut binds)?
        } else if tokens.eat("DELETE FROM") {
            delete(&mut tokens, &mut binds)?
        } else {
            tokens.expect("SELECT")?;
            select(&mut tokens, &mut binds)?
        };
        tokens.expect_end()?;
        let answer = match &act {
            Act::Select { columns, .. } => columns
                .iter()
                .map(|column| &table.columns[*column])
                .map(|column| spec(&table, &column.name, column.typ.clone()))
                .collect(),
            Act::Insert { .. } | Act::Update { .. } | Act::Delete { .. } => Vec::new(),
        };
        Ok(Self {
            table,
            binds: binds.specs,
            answer,
            act,
        })
    }
}

/// Why a statement cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpreparedCql {
    #[error("there is no table {0}")]
    NoTable(String),
    #[error(transparent)]
    Unknown(#[from] UnknownCql),
}

fn table_name(tokens: &mut Tokens) -> Result<String, UnknownCql> {
    loop {
        if tokens.eat("INSERT INTO") || tokens.eat("UPDATE") || tokens.eat("FROM") {
            return tokens.table();
        }
        if !(tokens.eat(",") || tokens.word().is_ok()) {
            return Err(tokens.unknown("a table"));
        }
    }
}

fn insert(tokens: &mut Tokens, binds: &mut Binds) -> Result<Act, UnknownCql> {
    tokens.table()?;
    tokens.expect("(")?;
    let names = tokens.names_to_close()?;
    let mut columns = Vec::new();
    tokens.expect("VALUES (")?;
    for (place, name) in names.iter().enumerate() {
        if place > 0 {
            tokens.expect(",")?;
        }
        tokens.bind()?;
        let column = binds.table.column(name)?;
        binds.column(column);
        columns.push(column);
    }
    tokens.expect(")")?;
    let is_conditional = tokens.eat("IF NOT EXISTS");
    let (mut timestamp, mut ttl) = (None, None);
    if tokens.eat("USING TIMESTAMP") {
        timestamp = Some(tokens.bind()?);
        binds.named("[timestamp]", ColumnType::Native(NativeType::BigInt));
        if tokens.eat("AND TTL") {
            ttl = Some(tokens.bind()?);
            binds.named("[ttl]", ColumnType::Native(NativeType::Int));
        }
    }
    Ok(Act::Insert {
        columns,
        timestamp,
        ttl,
        is_conditional,
    })
}

fn update(tokens: &mut Tokens, binds: &mut Binds) -> Result<Act, UnknownCql> {
    tokens.table()?;
    tokens.expect("SET")?;
    let set = equals(tokens, binds)?;
    tokens.expect("WHERE")?;
    let key = conditions(tokens, binds)?;
    tokens.expect("IF")?;
    let when = equals(tokens, binds)?;
    Ok(Act::Update { set, key, when })
}

fn delete(tokens: &mut Tokens, binds: &mut Binds) -> Result<Act, UnknownCql> {
    tokens.table()?;
    let mut timestamp = None;
    if tokens.eat("USING TIMESTAMP") {
        timestamp = Some(tokens.bind()?);
        binds.named("[timestamp]", ColumnType::Native(NativeType::BigInt));
    }
    tokens.expect("WHERE")?;
    let key = conditions(tokens, binds)?;
    let names_partition = key.len() == binds.table.partition.len()
        && key.iter().all(|condition| {
            matches!(condition, Condition::Compare(column, Comparison::Equal, _)
                if binds.table.partition.contains(column))
        });
    if !names_partition {
        return Err(tokens.unknown("a whole partition to delete"));
    }
    Ok(Act::Delete { timestamp, key })
}

fn select(tokens: &mut Tokens, binds: &mut Binds) -> Result<Act, UnknownCql> {
    let mut columns = Vec::new();
    loop {
        let name = tokens.word()?;
        columns.push(binds.table.column(&name)?);
        if !tokens.eat(",") {
            break;
        }
    }
    tokens.expect("FROM")?;
    tokens.table()?;
    let conditions = if tokens.eat("WHERE") {
        conditions(tokens, binds)?
    } else {
        Vec::new()
    };
    let limit = if tokens.eat("LIMIT") {
        binds.named("[limit]", ColumnType::Native(NativeType::Int));
        Some(tokens.bind()?)
    } else {
        None
    };
    Ok(Act::Select {
        columns,
        conditions,
        limit,
    })
}

fn equals(tokens: &mut Tokens, binds: &mut Binds) -> Result<(usize, usize), UnknownCql> {
    let name = tokens.word()?;
    let column = binds.table.column(&name)?;
    tokens.expect("=")?;
    binds.column(column);
    Ok((column, tokens.bind()?))
}

fn conditions(tokens: &mut Tokens, binds: &mut Binds) -> Result<Vec<Condition>, UnknownCql> {
    let mut conditions = vec![condition(tokens, binds)?];
    while tokens.eat("AND") {
        conditions.push(condition(tokens, binds)?);
    }
    Ok(conditions)
}

fn condition(tokens: &mut Tokens, binds: &mut Binds) -> Result<Condition, UnknownCql> {
    if tokens.eat("token (") {
        let names = tokens.names_to_close()?;
        let is_partition = names.len() == binds.table.partition.len();
        if !is_partition {
            return Err(tokens.unknown("the token of the partition key"));
        }
        let comparison = comparison(tokens)?;
        binds.named(
            "partition key token",
            ColumnType::Native(NativeType::BigInt),
        );
        return Ok(Condition::Token(comparison, tokens.bind()?));
    }
    if tokens.eat("(") {
        let names = tokens.names_to_close()?;
        tokens.expect("> (")?;
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        for (place, name) in names.iter().enumerate() {
            if place > 0 {
                tokens.expect(",")?;
            }
            let column = binds.table.column(name)?;
            binds.column(column);
            columns.push(column);
            places.push(tokens.bind()?);
        }
        tokens.expect(")")?;
        if columns != binds.table.clustering[..columns.len()] {
            return Err(tokens.unknown("the first clustering columns"));
        }
        return Ok(Condition::Beyond(columns, places));
    }
    let name = tokens.word()?;
    let column = binds.table.column(&name)?;
    if !binds.table.is_key(column) {
        return Err(tokens.unknown("a condition on a key"));
    }
    if tokens.eat("IN") {
        let of = binds.table.columns[column].typ.clone();
        let list = ColumnType::Collection {
            frozen: false,
            typ: CollectionType::List(Box::new(of)),
        };
        binds.named(&format!("in({name})"), list);
        return Ok(Condition::In(column, tokens.bind()?));
    }
    let comparison = comparison(tokens)?;
    binds.column(column);
    Ok(Condition::Compare(column, comparison, tokens.bind()?))
}

fn comparison(tokens: &mut Tokens) -> Result<Comparison, UnknownCql> {
    let all = [
        ("=", Comparison::Equal),
        (">", Comparison::Greater),
        (">=", Comparison::GreaterOrEqual),
        ("<=", Comparison::LessOrEqual),
    ];
    let found = all.into_iter().find(|(mark, _)| tokens.eat(mark));
    found
        .map(|(_, comparison)| comparison)
        .ok_or_else(|| tokens.unknown("a comparison"))
}
