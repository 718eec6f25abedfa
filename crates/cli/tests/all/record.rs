//! `lowtide record` and `lowtide run`: how they find a Python and how the program ends. A script stands for Python.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::support::{Ended, Folder, lowtide};

/// A folder with a program that answers as a Python with the package does, and otherwise runs the shell.
struct Stand {
    folder: Folder,
    python: PathBuf,
}

impl Stand {
    fn new() -> Self {
        let folder = Folder::new();
        let inject = folder.at("_inject");
        fs::create_dir(&inject).unwrap();
        fs::write(inject.join("sitecustomize.py"), "").unwrap();
        let script = format!(
            "#!/bin/sh\ncase \"$2\" in *_inject*) echo {} ;; *) shift; exec sh -c \"$@\" ;; esac\n",
            inject.display()
        );
        let python = folder.at("python-stand");
        fs::write(&python, script).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, python }
    }

    fn run(&self, arguments: &[&str], program: &str) -> Ended {
        let python = self.python.to_str().unwrap();
        let words = [arguments, &["--", python, "-c", program]].concat();
        let output = lowtide(&words)
            .current_dir(self.folder.path())
            .env_remove("LOWTIDE_PYTHON")
            .env("PYTHONPATH", "/before")
            .output()
            .unwrap();
        Ended {
            code: output.status.code(),
            data: String::from_utf8(output.stdout).unwrap(),
            talk: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn a_program_is_told_what_to_serve() {
    let stand = Stand::new();
    let program = "echo $LOWTIDE_RUN $LOWTIDE_LIMIT $LOWTIDE_STRICT; echo $PYTHONPATH";
    let ended = stand.run(&["run", "--device", "--cpu", "--limit", "1GiB", "--strict"], program);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let inject = stand.folder.at("_inject");
    assert_eq!(ended.data, format!("device,cpu 1073741824 1\n{}:/before\n", inject.display()));
}

#[test]
fn the_end_of_a_program_is_passed_on() {
    let stand = Stand::new();
    assert_eq!(stand.run(&["run", "--cpu"], "exit 5").code, Some(5));
    assert_eq!(stand.run(&["run", "--cpu"], "kill -9 $$").code, Some(137));
    assert_eq!(stand.run(&["record"], "exit 5").code, Some(5));
    let nothing = stand.run(&["record"], "exit 0");
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.talk.contains("nothing was recorded"), "{}", nothing.talk);
}

#[test]
fn what_a_process_recorded_gets_the_name_that_was_asked_for() {
    let stand = Stand::new();
    let program = "printf 'event,id,bytes,stream\\nalloc,0,4096,0\\nstep,1,,\\nfree,0,,\\n' > run.$$.cpu.csv; \
                   printf '%s\\tcpu\\t%s\\n' $$ $PWD/run.$$.cpu.csv >> $LOWTIDE_RECORD_LIST";
    let ended = stand.run(&["record", "-o", "run.csv"], program);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.contains("wrote run.csv: 3 events · 1 step · peak 4.0 KiB"), "{}", ended.talk);
    assert!(ended.talk.ends_with("next: `lowtide report run.csv`\n"), "{}", ended.talk);
    assert!(stand.folder.list().contains(&"run.csv".to_owned()));
}

#[test]
fn what_several_processes_recorded_is_named() {
    let stand = Stand::new();
    let program = "for n in 1 2; do printf 'event,id,bytes,stream\\nalloc,0,4096,0\\n' > run.$n.csv; \
                   printf '%s\\tcuda\\t%s\\n' $n $PWD/run.$n.csv >> $LOWTIDE_RECORD_LIST; done";
    let ended = stand.run(&["record", "-o", "run.csv"], program);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    for words in ["2 processes", "wrote run.1.csv", "wrote run.2.csv"] {
        assert!(ended.talk.contains(words), "{words}: {}", ended.talk);
    }
}

#[test]
fn a_machine_without_the_package_is_told_how_to_get_it() {
    let folder = Folder::new();
    let output = lowtide(&["run", "--cpu", "--", "/bin/true"])
        .current_dir(folder.path())
        .env("PATH", folder.path())
        .env_remove("LOWTIDE_PYTHON")
        .output()
        .unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("no Python was found that has the package lowtide; asked: python3"), "{talk}");
    assert!(
        talk.contains("hint: install it where PyTorch is: `pip install .`") && !talk.contains("pip install lowtide"),
        "{talk}"
    );
}

#[test]
fn a_program_that_is_not_there_is_named_and_ends_as_in_a_shell() {
    let folder = Folder::with(&[("plain", "")]);
    let of = |verb: &str, program: &str| folder.run(&[verb, "--", program]);
    for verb in ["run", "record", "watch"] {
        let ended = of(verb, "surely-not-there");
        assert_eq!(ended.code, Some(127), "{verb}: {}", ended.talk);
        let words = "error: cannot run surely-not-there: no folder of PATH has it\n";
        assert!(ended.talk.contains(words), "{verb}: {}", ended.talk);
        for (program, words) in [("./plain", "it is not executable"), (".", "it is a folder")] {
            let ended = folder.run(&[verb, "--", if program == "." { "./." } else { program }]);
            assert_eq!(ended.code, Some(126), "{verb} {program}: {}", ended.talk);
            assert!(ended.talk.contains(words), "{verb} {program}: {}", ended.talk);
        }
    }
}

#[test]
fn a_file_to_estimate_that_is_not_there_is_named() {
    let folder = Folder::new();
    for (file, words) in [("nofile.py", "error: nofile.py: cannot open: "), (".", "error: .: this is a folder")] {
        let ended = folder.run(&["estimate", file, "--python", "surely-not-there"]);
        assert_eq!(ended.code, Some(2), "{}", ended.talk);
        assert!(ended.talk.starts_with(words), "{}", ended.talk);
        assert!(ended.talk.contains("hint: give a Python file that defines model()"), "{}", ended.talk);
    }
}

#[test]
fn a_program_without_pytorch_is_told_that_no_tensor_was_served() {
    let stand = Stand::new();
    let words = "note: no tensor was served: the program did not import PyTorch\n";
    assert_eq!(stand.run(&["run", "--device"], "exit 0").talk, words);
    assert_eq!(stand.run(&["run", "--device", "--quiet"], "exit 0").talk, "");
    assert_eq!(stand.run(&["run", "--device"], "printf 1 >> $LOWTIDE_IMPORTED").talk, "");
}
