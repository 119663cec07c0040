//! A worker's metrics, in Prometheus' text form.
//!
//! They are rendered from the [`Status`] at each scrape rather than recorded on the way, so that a revoked partition's
//! series is gone with it.

use std::fmt::Write as _;

use crate::status::{Readiness, Status};

/// Records between a view and the end of its log. Labels: view, partition.
pub const LAG: &str = "tidemark_lag_records";
/// The offset a view reads next. Labels: view, partition.
pub const NEXT_OFFSET: &str = "tidemark_next_offset";
/// 1 where a partition stands still until somebody acts. Labels: view, partition.
pub const STOPPED: &str = "tidemark_partition_stopped";
/// Failed attempts in a row to reach the store or the dead-letter topic. Labels: view, partition.
pub const FAILED_ATTEMPTS: &str = "tidemark_failed_attempts";
/// 1 where a worker is assigned and advancing. Label: view.
pub const READY: &str = "tidemark_worker_ready";
/// Batches flushed. Label: view.
pub const BATCHES: &str = "tidemark_batches_total";
/// Records folded. Label: view.
pub const RECORDS: &str = "tidemark_records_total";
/// Records by what became of them: accepted, duplicate, dead_letter, behind. Labels: view, outcome.
pub const OUTCOMES: &str = "tidemark_record_outcomes_total";
/// Parts loaded from the store. Label: view.
pub const LOADS: &str = "tidemark_loads_total";
/// Requests that wrote to the store. Label: view.
pub const WRITE_REQUESTS: &str = "tidemark_write_requests_total";
/// Rows written to the store. Label: view.
pub const ROWS_WRITTEN: &str = "tidemark_rows_written_total";
/// Bytes written to the store. Label: view.
pub const BYTES_WRITTEN: &str = "tidemark_bytes_written_total";

/// The metrics of the workers of one process.
pub fn render(workers: &[Status]) -> String {
    let mut text = String::new();
    family(&mut text, LAG, "gauge", workers, |worker, line| {
        for (partition, status) in worker.partitions() {
            if let Some(lag) = status.lag() {
                line(&format!("partition=\"{partition}\""), lag);
            }
        }
    });
    family(&mut text, NEXT_OFFSET, "gauge", workers, |worker, line| {
        for (partition, status) in worker.partitions() {
            if let Some(next) = status.next {
                line(
                    &format!("partition=\"{partition}\""),
                    u64::try_from(next.get()).unwrap_or(0),
                );
            }
        }
    });
    family(&mut text, STOPPED, "gauge", workers, |worker, line| {
        for (partition, status) in worker.partitions() {
            line(
                &format!("partition=\"{partition}\""),
                u64::from(status.stopped.is_some()),
            );
        }
    });
    family(
        &mut text,
        FAILED_ATTEMPTS,
        "gauge",
        workers,
        |worker, line| {
            for (partition, status) in worker.partitions() {
                line(
                    &format!("partition=\"{partition}\""),
                    status.failed_attempts,
                );
            }
        },
    );
    family(&mut text, READY, "gauge", workers, |worker, line| {
        line("", u64::from(worker.readiness() == Readiness::Ready));
    });
    counters(&mut text, workers);
    text
}

fn counters(text: &mut String, workers: &[Status]) {
    family(text, BATCHES, "counter", workers, |worker, line| {
        line("", worker.totals().batches)
    });
    family(text, RECORDS, "counter", workers, |worker, line| {
        line("", worker.totals().records)
    });
    family(text, OUTCOMES, "counter", workers, |worker, line| {
        let report = worker.totals().report;
        line("outcome=\"accepted\"", report.accepted);
        line("outcome=\"duplicate\"", report.duplicates);
        line("outcome=\"dead_letter\"", report.dead_letters);
        line("outcome=\"behind\"", report.behind);
    });
    family(text, LOADS, "counter", workers, |worker, line| {
        line("", worker.totals().report.loaded)
    });
    family(text, WRITE_REQUESTS, "counter", workers, |worker, line| {
        line("", worker.totals().report.written.requests as u64);
    });
    family(text, ROWS_WRITTEN, "counter", workers, |worker, line| {
        line("", worker.totals().report.written.rows as u64)
    });
    family(text, BYTES_WRITTEN, "counter", workers, |worker, line| {
        line("", worker.totals().report.written.bytes as u64)
    });
}

fn family(
    text: &mut String,
    name: &str,
    kind: &str,
    workers: &[Status],
    each: impl Fn(&Status, &mut dyn FnMut(&str, u64)),
) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    for worker in workers {
        let view = worker.view();
        each(worker, &mut |labels, value| {
            let comma = if labels.is_empty() { "" } else { "," };
            let _ = writeln!(text, "{name}{{view=\"{view}\"{comma}{labels}}} {value}");
        });
    }
}
