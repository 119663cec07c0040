//! What this release is.

use tidemark_store::FoldVersion;

/// The way in which this release folds. Its workers build, and its readers read, generations of this version only.
pub(crate) const FOLD_VERSION: FoldVersion = FoldVersion::new(tidemark_fold::FOLD_VERSION);
