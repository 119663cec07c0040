//! `tidemark views`.

use clap::Args;
use tidemark_store::Store;

use crate::{
    kafka::Cluster,
    lag::{GenerationLag, Lags, look},
    outcome::Outcome,
    output::{Output, Table, grouped},
    settings::Settings,
};

/// Show how far the views are behind the log
///
/// Lag is in records: what lies between a view's checkpoint and the log's end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark views
  tidemark views --partitions
  tidemark views --output json | jq '.generations[] | select(.lag > 0)'")]
pub(crate) struct Views {
    /// Show each partition by itself
    #[arg(long)]
    partitions: bool,
    #[command(flatten)]
    output: Output,
}

impl Views {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let store = Store::connect(&settings.store).await?;
        let cluster = Cluster::new(&settings.kafka)?;
        let lags = look(&store, &cluster).await?;
        let each = self.partitions;
        self.output.print(&lags, |lags| {
            if each {
                show_partitions(lags)
            } else {
                show(lags)
            }
        })?;
        Ok(Outcome::Done)
    }
}

fn show(lags: &Lags) -> String {
    let headings = [
        "VIEW",
        "GENERATION",
        "STATE",
        "LAG",
        "PARTITIONS BEHIND",
        "FOLDED UP TO",
    ];
    let mut table = Table::with_headings(headings);
    for generation in &lags.generations {
        let behind = generation
            .partitions
            .iter()
            .filter(|partition| partition.lag > 0)
            .count();
        let newest = generation
            .partitions
            .iter()
            .filter_map(|partition| partition.log_time.as_deref());
        table.push([
            generation.view.to_string(),
            named(generation),
            generation.state.to_owned(),
            grouped(generation.lag),
            format!("{behind} of {}", generation.partitions.len()),
            newest.max().unwrap_or("-").to_owned(),
        ]);
    }
    table.show()
}

fn show_partitions(lags: &Lags) -> String {
    let headings = [
        "VIEW",
        "GENERATION",
        "PARTITION",
        "NEXT OFFSET",
        "LOG END",
        "LAG",
        "FOLDED UP TO",
    ];
    let mut table = Table::with_headings(headings);
    for generation in &lags.generations {
        for partition in &generation.partitions {
            table.push([
                generation.view.to_string(),
                named(generation),
                partition.partition.to_string(),
                partition.next_offset.to_string(),
                partition.log_end.to_string(),
                grouped(partition.lag),
                partition.log_time.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
    }
    table.show()
}

fn named(generation: &GenerationLag) -> String {
    let active = if generation.active { " (active)" } else { "" };
    format!("{}{active}", generation.generation)
}
