//! `corsair-courier backup`, `restore`, `export`, `import` and `compact`.

use anyhow::{Context, Result};
use clap::Args;
use corsair_courier::{backup, compact, export, import, restore};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The flags of `corsair-courier backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArgs {
    /// Directory of the data
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// The flags of `corsair-courier restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Directory for the data, which must not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// The flags of `corsair-courier export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Directory of the data
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The file to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// The flags of `corsair-courier import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// The export; - is standard input
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Directory for the data, which must not have data
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// The flags of `corsair-courier compact`.
#[derive(Args, Clone, Debug)]
pub struct CompactArgs {
    /// Directory of the data
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

impl BackupArgs {
    /// Writes the backup.
    pub async fn run(&self) -> Result<ExitCode> {
        let last = backup(&self.data, &self.to).await?;
        let bytes = std::fs::metadata(&self.to).map_or(0, |file| file.len());
        let to = self.to.display();
        say(&format!(
            "wrote {to}, {bytes} bytes, up to entry {last} of the log"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl RestoreArgs {
    /// Restores the backup.
    pub async fn run(&self) -> Result<ExitCode> {
        restore(&self.from, &self.data).await?;
        let data = self.data.display();
        say(&format!(
            "restored {data}; `corsair-courier serve --data {data}` continues with it"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl ExportArgs {
    /// Writes the export.
    pub async fn run(&self) -> Result<ExitCode> {
        let Some(to) = &self.to else {
            export(&self.data, BufWriter::new(std::io::stdout())).await?;
            return Ok(ExitCode::SUCCESS);
        };
        let shown = to.display();
        let file = corsair_journal::private_file().create_new(true).open(to);
        let file = file.with_context(|| format!("cannot create {shown}"))?;
        let written = export(&self.data, BufWriter::new(file)).await;
        let synced = written.map_err(anyhow::Error::new).and_then(|last| {
            File::open(to)?.sync_all()?;
            Ok(last)
        });
        match synced {
            Ok(last) => {
                say(&format!("wrote {shown}, up to entry {last} of the log"));
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                let _ = std::fs::remove_file(to);
                Err(error)
            }
        }
    }
}

impl ImportArgs {
    /// Imports the export.
    pub async fn run(&self) -> Result<ExitCode> {
        let from: Box<dyn BufRead + Send> = match self.from.as_os_str() == "-" {
            true => Box::new(BufReader::new(std::io::stdin())),
            false => {
                let file = File::open(&self.from);
                let shown = self.from.display();
                Box::new(BufReader::new(
                    file.with_context(|| format!("cannot open {shown}"))?,
                ))
            }
        };
        let last = import(from, &self.data).await?;
        let data = self.data.display();
        say(&format!(
            "imported {data}, up to entry {last} of the log; `corsair-courier serve --data {data}` continues with it"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl CompactArgs {
    /// Compacts the data.
    pub async fn run(&self) -> Result<ExitCode> {
        let (before, after) = compact(&self.data).await?;
        say(&format!("{before} bytes before, {after} after"));
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a sentence to stdout; a script may wait for it.
pub fn say(sentence: &str) {
    // A closed pipe is ignored.
    let _ = writeln!(std::io::stdout(), "corsair-courier: {sentence}");
}
