//! Plans remembered from run to run: a folder with one file per signature. A file that cannot be used, whatever is wrong
//! with it, is passed over with a sentence that names it.

mod text;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Lane;
use crate::patterns::shape::Shape;
use crate::plan::step_plan::Signature;
use crate::planning::timeline::Layout;
use text::Remembered;

/// A larger file is not read.
const MOST_BYTES: u64 = 64 << 20;

/// Of more files than this, those that were used last longest ago are deleted.
const MOST_FILES: usize = 64;

const EXTENSION: &str = "plan";

/// A folder of plans.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The plans in `folder`, which need not be there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The plans that were used last, the latest first and at most `most`, and what is wrong with others.
    pub fn read(&self, most: usize) -> (Vec<Remembered>, Vec<String>) {
        let (mut plans, mut warnings) = (Vec::new(), Vec::new());
        let files = match self.files() {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                warnings.push(format!("the plans in `{}` were ignored: {error}", self.folder.display()));
                Vec::new()
            }
        };
        for (_, path) in files.into_iter().take(most.saturating_mul(2)) {
            match read_file(&path) {
                Ok(plan) => plans.push(plan),
                Err(why) => warnings.push(format!("the plan in `{}` was ignored: {why}", path.display())),
            }
            if plans.len() == most {
                break;
            }
        }
        (plans, warnings)
    }

    /// Remembers a plan, in place of the one that was remembered as `replaces`.
    pub fn write(
        &self,
        lanes: &[Lane],
        shape: &Shape,
        layout: &Layout,
        replaces: Option<Signature>,
    ) -> Result<(), String> {
        let signature = shape.plan(layout, lanes).signature;
        let path = self.path(signature);
        let text = text::write(signature, lanes, shape, layout);
        self.replace(&path, &text)
            .map_err(|error| format!("a plan could not be written to `{}`: {error}", path.display()))?;
        if let Some(old) = replaces.filter(|&old| old != signature) {
            let _ = fs::remove_file(self.path(old));
        }
        for (_, path) in self.files().unwrap_or_default().into_iter().skip(MOST_FILES) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Notes that a plan was of use, so that it is offered first next time.
    pub fn touch(&self, signature: Signature) {
        // Where this fails another plan is offered first, no more.
        if let Ok(file) = File::options().append(true).open(self.path(signature)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    fn path(&self, signature: Signature) -> PathBuf {
        self.folder.join(format!("{signature}.{EXTENSION}"))
    }

    /// The files of plans, the one that was used last first.
    fn files(&self) -> io::Result<Vec<(SystemTime, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_plan = path.extension().is_some_and(|extension| extension == EXTENSION)
                && path.file_stem().is_some_and(|stem| stem.len() == 16);
            if is_plan {
                let used = entry.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((used, path));
            }
        }
        files.sort_unstable_by(|a, b| b.cmp(a));
        Ok(files)
    }

    /// Writes beside `path`, then renames, so that nobody sees half a file.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
    }
}

fn read_file(path: &Path) -> Result<Remembered, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if length as u64 > MOST_BYTES {
        return Err(format!("it is larger than {MOST_BYTES} bytes"));
    }
    text::read(&text).map_err(str::to_owned)
}
