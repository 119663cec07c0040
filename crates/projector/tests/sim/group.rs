//! The consumer group, as its coordinator and the clients play it: who has which partition, and who knows.
//!
//! A partition is taken from one member, which may flush first, and given to another. A member that is not heard of for
//! too long loses its partitions without being asked, and learns of it later: until then it works on as a zombie. Then
//! it lets go of them, and joins anew.

use std::{collections::BTreeMap, sync::mpsc::Receiver};

use tidemark_event::{Offset, Partition};

use crate::{process::Process, random::Random};

pub(crate) type Processes = BTreeMap<usize, Process>;

/// The group of a view.
pub(crate) struct Group {
    duties: Vec<(Partition, Duty)>,
    members: BTreeMap<usize, Member>,
}

/// Where a partition is.
enum Duty {
    /// With nobody.
    Free,
    /// Being given to a member, which is asked where to start.
    Assigning(usize, Receiver<Vec<(Partition, Offset)>>),
    /// With a member.
    Owned(usize),
    /// Being taken from a member, which brings it to rest.
    Revoking(usize, Receiver<()>),
}

/// How a process stands to the group.
enum Member {
    In,
    /// Put out of the group; learns of it at this step, once it is awake.
    Out {
        learns_at: usize,
    },
    /// Has learnt of it and brings to rest what it no longer has.
    LettingGo(Receiver<()>),
}

/// Something that happened, for the story.
pub(crate) type Told = Vec<String>;

impl Group {
    pub(crate) fn of(partitions: impl Iterator<Item = Partition>) -> Self {
        Self {
            duties: partitions
                .map(|partition| (partition, Duty::Free))
                .collect(),
            members: BTreeMap::new(),
        }
    }

    pub(crate) fn join(&mut self, process: usize) {
        self.members.insert(process, Member::In);
    }

    /// Forgets a process that is no more.
    pub(crate) fn leave(&mut self, process: usize) {
        self.members.remove(&process);
        self.free(process);
    }

    /// Puts a member out, which learns of it at `learns_at` at the earliest. Says whether it was in.
    pub(crate) fn put_out(&mut self, process: usize, learns_at: usize) -> bool {
        match self.members.get_mut(&process) {
            Some(member @ Member::In) => {
                *member = Member::Out { learns_at };
                self.free(process);
                true
            }
            _ => false,
        }
    }

    /// Begins to take a partition from its member.
    pub(crate) fn take_back(&mut self, partition: usize, processes: &Processes) -> bool {
        let (partition, duty) = &mut self.duties[partition];
        if let Duty::Owned(owner) = *duty {
            let answer = processes[&owner].revoke(vec![*partition]);
            *duty = Duty::Revoking(owner, answer);
            return true;
        }
        false
    }

    /// Whether every partition has an owner and every process is a member.
    pub(crate) fn is_settled(&self) -> bool {
        let is_owned = |(_, duty): &(Partition, Duty)| matches!(duty, Duty::Owned(_));
        let is_in = |member: &Member| matches!(member, Member::In);
        self.duties.iter().all(is_owned) && self.members.values().all(is_in)
    }

    fn free(&mut self, process: usize) {
        for (_, duty) in &mut self.duties {
            if duty.who() == Some(process) {
                *duty = Duty::Free;
            }
        }
    }

    /// Moves on whatever can move on by itself.
    pub(crate) fn step(
        &mut self,
        step: usize,
        processes: &mut Processes,
        random: &mut Random,
        told: &mut Told,
    ) {
        self.serve_wishes(processes, told);
        self.serve_outsiders(step, processes, told);
        for number in 0..self.duties.len() {
            self.serve_partition(number, processes, random, told);
        }
    }

    /// A member that asks to join anew gives back all it has first.
    fn serve_wishes(&mut self, processes: &Processes, told: &mut Told) {
        for (id, process) in processes {
            // Who is being given or asked for a partition hears of nothing else meanwhile.
            let is_busy = self.duties.iter().any(|(_, duty)| {
                let is_owned = matches!(duty, Duty::Owned(_));
                duty.who() == Some(*id) && !is_owned
            });
            if is_busy || process.is_stopping || !process.takes_wish_to_rejoin() {
                continue;
            }
            told.push(format!("process {id} asks to join the group anew"));
            for number in 0..self.duties.len() {
                if self.duties[number].1.who() == Some(*id) {
                    self.take_back(number, processes);
                }
            }
        }
    }

    fn serve_outsiders(&mut self, step: usize, processes: &mut Processes, told: &mut Told) {
        for (id, member) in &mut self.members {
            let Some(process) = processes.get_mut(id) else {
                continue;
            };
            match member {
                Member::Out { learns_at } if process.is_awake() && *learns_at <= step => {
                    told.push(format!(
                        "process {id} learns that it was put out of the group"
                    ));
                    let all = self.duties.iter().map(|(partition, _)| *partition);
                    *member = Member::LettingGo(process.revoke(all.collect()));
                }
                Member::LettingGo(answer) if answer.try_recv().is_ok() => {
                    for (partition, _) in &self.duties {
                        process.close(*partition);
                    }
                    *member = Member::In;
                    told.push(format!("process {id} has let go and joins anew"));
                }
                _ => {}
            }
        }
    }

    fn serve_partition(
        &mut self,
        number: usize,
        processes: &mut Processes,
        random: &mut Random,
        told: &mut Told,
    ) {
        let (partition, duty) = &mut self.duties[number];
        match duty {
            Duty::Owned(_) => {}
            Duty::Revoking(owner, answer) => {
                if answer.try_recv().is_ok() {
                    told.push(format!(
                        "process {owner} has given back partition {partition}"
                    ));
                    if let Some(process) = processes.get_mut(owner) {
                        process.close(*partition);
                    }
                    *duty = Duty::Free;
                }
            }
            Duty::Assigning(owner, answer) => {
                let Ok(starts) = answer.try_recv() else {
                    return;
                };
                let owner = *owner;
                if let (Some((_, start)), Some(process)) =
                    (starts.first(), processes.get_mut(&owner))
                {
                    told.push(format!(
                        "process {owner} starts partition {partition} at {start}"
                    ));
                    process.begin(*partition, *start, random.chance(50));
                }
                *duty = Duty::Owned(owner);
            }
            Duty::Free => {
                let Some(owner) = self.least_busy(processes, random) else {
                    return;
                };
                let (partition, duty) = &mut self.duties[number];
                let answer = processes[&owner].assign(*partition);
                *duty = Duty::Assigning(owner, answer);
                told.push(format!("partition {partition} goes to process {owner}"));
            }
        }
    }

    /// A member that answers, with as few partitions as any.
    fn least_busy(&self, processes: &Processes, random: &mut Random) -> Option<usize> {
        let load = |id: usize| {
            let duties = self.duties.iter();
            duties.filter(|(_, duty)| duty.who() == Some(id)).count()
        };
        let is_ready = |(id, member): &(&usize, &Member)| {
            let process = &processes[*id];
            matches!(member, Member::In) && process.is_awake() && !process.is_stopping
        };
        let ready: Vec<usize> = self
            .members
            .iter()
            .filter(is_ready)
            .map(|(id, _)| *id)
            .collect();
        let least = ready.iter().map(|id| load(*id)).min()?;
        let idle: Vec<usize> = ready.into_iter().filter(|id| load(*id) == least).collect();
        Some(*random.one_of(&idle))
    }

    /// Members that are heard of.
    pub(crate) fn heard_of(&self, processes: &Processes) -> usize {
        let is_heard = |(id, member): &(&usize, &Member)| {
            let process = &processes[*id];
            matches!(member, Member::In) && process.is_awake() && !process.is_stopping
        };
        self.members.iter().filter(is_heard).count()
    }
}

impl Duty {
    fn who(&self) -> Option<usize> {
        match self {
            Self::Free => None,
            Self::Assigning(owner, _) | Self::Owned(owner) | Self::Revoking(owner, _) => {
                Some(*owner)
            }
        }
    }
}
