(** What the running server does, and what is proved of it in Dafny.

    A life of the server, from the opening of a volume to the next crash, is a list of acts. Between two acts is a moment,
    and at every moment the ghost fields of the Dafny code have values: act number t leads from moment t to moment t + 1. What Dafny says
    of a state holds at each moment; what it says of two states, old(...) and now, of two moments.

    A line in quotes after the name of a file stands so in that file; check.py looks. *)
From Tansy Require Export Programs Spec.

(** Acts. What is not here (locks, reads, writes to the device, background work on the log) is [Works].

    A call is several transactions, one after the other: attempts of its procedure, and, of the server's own, those that
    free blocks before the next attempt (SHRINK in call.dfy). The background's are of the server's own, too. How an
    attempt is made (how many of the bytes, with a record of the call or without) its procedure is told, as it is the
    time. *)
Inductive act {Op Res Obj : Type} :=
  | Comes (i : nat) (o : Op)                  (* call i comes: a procedure and its arguments *)
  | Closes (i : nat) (l : log Obj) (r : Res)  (* its procedure has returned r, its transaction did l; Finish or Abort is called *)
  | Again (i : nat)                           (* its attempt has ended, or was cut short; it goes on: AGAIN .. ALONE *)
  | Frees (l : log Obj) (r : Res) (n : nat)   (* a transaction of the server's own did l; it takes the step Point *)
  | Points (i n : nat)                        (* Finish takes the step Point, with success: commit n *)
  | Answers (i : nat) (r : Res) (need : nat)  (* Finish or Abort has returned need; it was waited for; the reply leaves *)
  | Fails (i : nat)                           (* it ends without: IO, ROFS, SERVERFAULT, or no reply at all *)
  | Works.
Arguments act : clear implicits.

Section execution.
  Context {Obj Vol Op Res : Type} (keys : gset key) (cell : Vol → key → Obj).
  Context (body : Op → program Obj Res)   (* the procedures *)
          (own : program Obj Res)         (* what the server does of itself: it is told of which file *)
          (ok : Res → bool)               (* the status is NFS3_OK *)
          (stable : Op → bool) (flush : Op → Res → bool).   (* as in Spec.v *)

  (** Where a call is; what is known of its attempt then. p: how many commits there were when Finish or Abort was
      called. *)
  Inductive phase :=
    | Away | Came (o : Op) | Closed (o : Op) (l : log Obj) (r : Res) (p : nat) | Pointed (o : Op) (l : log Obj) (r : Res) (p n : nat) | Over.

  Record life := Life {
    acts  : list (act Op Res Obj);
    vs    : nat → list Vol;             (* Journal.states at each moment *)
    lb    : nat → nat;                  (* Journal.durableIndex *)
    logs  : nat → gmap nat (log Obj);   (* System.logs *)
    stab  : nat → gmap key nat;         (* System.lastStable *)
    phases : nat → nat → phase }.       (* of each call *)
  Definition ending (L : life) : nat := length (acts L).
  Definition at_ (L : life) t a : Prop := acts L !! t = Some a.

  (** *** The runner (Go): what it does with a call, in this order *)
  Definition wrote (l : log Obj) (r : Res) : bool := ok r && bool_decide (Writes l ≠ ∅).
  Inductive goes_on : nat → phase → act Op Res Obj → phase → Prop :=
    | g_comes p i o : goes_on p Away (Comes i o) (Came o)
    (* the procedure ran as one transaction, and is a program *)
    | g_closes p i o l r : does (body o) l r → goes_on p (Came o) (Closes i l r) (Closed o l r p)
    (* Another attempt may follow one that has not committed, and nothing is left of that one.
       fs/exec/call.dfy Next: "if outcome == CONFLICT || (status == TOOBIG && fewer) then AGAIN"
       fs/exec/call.dfy Next: "else if status == SHRINKFIRST then SHRINK"
       fs/exec/call.dfy Next: "else if status == NOSPC then ROOM"
       fs/exec/call.dfy Next: "else if status == Durable.IO && outcome != UNSURE && record then ALONE"
       fs/exec/call.dfy Ended:
         "ensures call.commits == 0 || (next == ANSWER && (call.status == 0 || call.status == Durable.IO))"
       fs/exec/call.dfy Ended: "requires Worked(txn) && For(work, txn) && permit.may && call.commits == 0" *)
    | g_again p i o l r q : goes_on p (Closed o l r q) (Again i) (Came o)
    (* so it is if the transaction was cut short, by a conflict or a block that cannot be read: it tells nothing.
       txn/run.dfy Short: "function method Short(cut: uint32): uint32 { if MayTell(cut) then IOERR else cut }" *)
    | g_cut p i o : goes_on p (Came o) (Again i) (Came o)
    (* Finish is called if its status is OK, and commits if it wrote something; once (Txn.appended) *)
    | g_points p i o l r q n : wrote l r = true → goes_on p (Closed o l r q) (Points i n) (Pointed o l r q n)
    (* The result of the last attempt is the reply, if that wrote nothing or was refused, or else has committed.
       fs/exec/call.dfy Ended:
         "ensures next != AGAIN && next != SHRINK ==> call.status == Final(E.Status(outcome, old(call.result)))"
       fs/exec/call.dfy Ended: "ensures Durable.Shows(call.status) ==> call.Shown()"
       fs/exec/call.dfy Ended:
         "ensures call.status == 0 ==> next == ANSWER && old(call.result) == 0 && (told.wrote != map[] ==> call.commits == 1)" *)
    | g_tells p i o l r q need : wrote l r = false → goes_on p (Closed o l r q) (Answers i r need) Over
    | g_tells_done p i o l r q n need : goes_on p (Pointed o l r q n) (Answers i r need) Over
    | g_fails p i ph : ph ≠ Away → ph ≠ Over → goes_on p ph (Fails i) Over.
  Definition of_call (a : act Op Res Obj) : option nat :=
    match a with
    | Comes i _ | Closes i _ _ | Again i | Points i _ | Answers i _ _ | Fails i => Some i
    | Frees _ _ _ | Works => None
    end.
  Record Runner (L : life) : Prop := {
    runner_begins : ∀ i, phases L 0 i = Away;
    runner_goes : ∀ t a i, at_ L t a → of_call a = Some i →
      goes_on (length (vs L t) - 1) (phases L t i) a (phases L (S t) i);
    runner_others : ∀ t a i, at_ L t a → of_call a ≠ Some i → phases L (S t) i = phases L t i;
    runner_own : ∀ t l r n, at_ L t (Frees l r n) → does own l r ∧ ok r = true }.

  (** *** T1: strict serializability (verified/txn/serial.dfy, ending.dfy) *)
  (* nothing of the history is taken back.
     journal/state.dfy Mono:
       "|old(states)| <= |states| && (forall i :: 0 <= i < |old(states)| ==> states[i] == old(states)[i]) &&"
     journal/state.dfy Mono: "old(durableIndex) <= durableIndex && old(trims) <= trims && old(observed) <= observed &&"
     txn/system.dfy Remembers:
       "(forall n {:trigger n in logs} {:trigger n in old(logs)} :: n in old(logs) ==> n in logs &&"
     txn/system.dfy Remembers: "logs[n] == old(logs)[n]) &&" *)
  Definition Mono (L : life) : Prop := ∀ t, t < ending L →
    vs L t `prefix_of` vs L (S t) ∧ lb L t ≤ lb L (S t) ∧ logs L t ⊆ logs L (S t).
  (* the commits are transactions', and each led from the state before it to the one after it.
     txn/serial.dfy Whole: "s.Inv() && Complete(s.logs, s.journal.states)"
     txn/system.dfy Inv: "Upward() && Serial(kinds, logs, journal.states)" *)
  Definition Whole (L : life) : Prop := ∀ t, t ≤ ending L →
    Serial keys cell (logs L t) (vs L t) ∧ Complete (logs L t) (vs L t).
  (* a commit is the next one, it is recorded with what the transaction did, and nothing else adds any.
     txn/ending.dfy Point:
       "ensures st == AOk ==> n as int == |old(t.system.journal.states)| == |t.system.journal.states| - 1 &&"
     txn/ending.dfy Point: "Recorded(t.system, n as int, t.log) &&"
     txn/ending.dfy Recorded: "predicate Recorded(s: System, n: int, l: Log) reads s { n in s.logs && s.logs[n] == l }"
     txn/ending.dfy Point: "ensures st != AOk ==> t.system.logs == old(t.system.logs)" *)
  Record Commits (L : life) : Prop := {
    commits_next : ∀ t i n o l r p, at_ L t (Points i n) → phases L t i = Closed o l r p →
      n = length (vs L t) ∧ length (vs L (S t)) = S n ∧ logs L (S t) !! n = Some l;
    commits_own : ∀ t l r n, at_ L t (Frees l r n) →
      n = length (vs L t) ∧ length (vs L (S t)) = S n ∧ logs L (S t) !! n = Some l;
    commits_only : ∀ t n, t < ending L → logs L t !! n = None → is_Some (logs L (S t) !! n) →
      (∃ i, at_ L t (Points i n)) ∨ ∃ l r, at_ L t (Frees l r n) }.
  (* REAL TIME: when Finish or Abort is called, the newest state is one in which the transaction finds what it found.
     txn/ending.dfy Abort: "ensures Finds(old(t.system.kinds), old(t.log), old(t.system.journal.Cur()))"
     txn/ending.dfy Finish: "ensures Finds(old(t.system.kinds), old(t.log), old(t.system.journal.Cur()))"
     journal/state.dfy Cur: "function Cur(): St requires |states| > 0 reads this { states[|states|-1] }" *)
  Definition Current (L : life) : Prop := ∀ t i l r, at_ L t (Closes i l r) →
    ∃ st, last (vs L t) = Some st ∧ Finds keys cell l st.

  (** *** T2: what a reply says is durable survives (ending.dfy, ../journal/threads.dfy) *)
  Record Waits (L : life) : Prop := {
    (* journal/threads.dfy WaitDurable: "ensures ok ==> n as int <= j.durableIndex" *)
    waits_need : ∀ t i r need, at_ L t (Answers i r need) → need ≤ lb L t;
    (* txn/ending.dfy Finish: "(stable ==> at <= need as int && forall k :: old(t.system.locks.Owns(t.owner, k)) ==>"
       txn/ending.dfy Finish: "Noted(t.system.locks, k, at))" *)
    waits_stable : ∀ t i r need o l p n, at_ L t (Answers i r need) → phases L t i = Pointed o l r p n →
      stable o = true → n ≤ need;
    (* fs/exec/exec.dfy Keeps: "(status == 0 && procedure == Durable.COMMIT ==>"
       fs/exec/exec.dfy Keeps: "|old(txn.system.journal.states)| - 1 <= txn.system.journal.durableIndex)"
       journal/threads.dfy Flush: "ensures ok ==> |old(j.states)| - 1 <= n as int <= j.durableIndex" *)
    waits_flush : ∀ t i r need o l p, at_ L t (Answers i r need) → phases L t i = Closed o l r p →
      flush o r = true → p ≤ lb L t;
    (* journal/state.dfy StatesInv: "0 <= durableIndex <= frozenIndex < |states| && 0 <= installCount <= |groups| &&" *)
    waits_exist : ∀ t, t ≤ ending L → lb L t < length (vs L t) }.
  (* Nothing seen is taken back: who holds an object has waited for the stable commits that wrote it.
     txn/ending.dfy Finish:
       "ensures st == OK && stable ==> forall k :: k in old(t.buffer.objects) ==> k in t.system.lastStable &&"
     txn/ending.dfy Finish: "at <= t.system.lastStable[k] as int"
     txn/system.dfy Remembers:
       "forall k: uint64 {:trigger k in lastStable} {:trigger k in old(lastStable)} :: k in old(lastStable) ==>"
     txn/system.dfy Remembers: "k in lastStable && old(lastStable)[k] <= lastStable[k]"
     txn/ending.dfy Covers:
       "forall k :: t.system.locks.Holds(t.owner, k) && k in t.system.lastStable ==> t.system.lastStable[k] as int <= n"
     txn/ending.dfy Finish:
       "ensures old(t.seen) <= need && need as int < |t.system.journal.states| && old(Covers(t, need as int))" *)
  Definition touches (l : log Obj) (k : key) : Prop := ∃ o, OpRead k o ∈ l ∨ OpWrite k o ∈ l.
  Record Seen (L : life) : Prop := {
    seen_noted : ∀ t i n o l r p k, at_ L t (Points i n) → phases L t i = Closed o l r p → stable o = true →
      is_Some (Writes l !! k) → ∃ m, stab L (S t) !! k = Some m ∧ n ≤ m;
    seen_stays : ∀ t k n, t < ending L → stab L t !! k = Some n → ∃ m, stab L (S t) !! k = Some m ∧ n ≤ m;
    seen_covers : ∀ s t i l r r' need k n, at_ L s (Closes i l r) → at_ L t (Answers i r' need) →
      (∀ u, s < u < t → ¬ at_ L u (Again i)) → touches l k → stab L s !! k = Some n → n ≤ need }.

  Record Contracts (L : life) : Prop := {
    c_runner : Runner L; c_mono : Mono L; c_whole : Whole L; c_commits : Commits L; c_current : Current L;
    c_waits : Waits L; c_seen : Seen L }.

  (** *** T2, the crash (serial.dfy) *)
  Context (free : Vol → key → Prop).   (* the object is a block that is not allocated (FreeIn in model.dfy) *)
  (* what the first n transactions do, one after the other, is what makes vs[n] of vs[0].
     txn/serial.dfy Made: "predicate Made(s: System, n: int) reads s, s.journal {"
     txn/serial.dfy Made:
       "0 <= n < |s.journal.states| && Leads(s.kinds, All(s.logs, n), s.journal.states[0], s.journal.states[n])"
     txn/serial.dfy Made: "}" *)
  Definition Made (L : life) n st0 st : Prop :=
    vs L (ending L) !! 0 = Some st0 ∧ vs L (ending L) !! n = Some st ∧ Leads keys cell (All (logs L (ending L)) n) st0 st.
  (* What a crash leaves recovers to what the first n made, for some n, not below what was told durable; told is any number up to lb.
     txn/serial.dfy Crash:
       "requires told <= old(s.journal.durableIndex) && s.journal.Mono() && Whole(s) && img in s.journal.disk.ok"
     txn/serial.dfy Crash: "ensures exists n :: told <= n && Made(s, n) &&"
     txn/serial.dfy Crash: "RecOK(s.journal.layout, img, s.journal.states[n], s.journal.seal.signed)"
     txn/serial.dfy Recovered:
       "requires Whole(s) && Made(s, n) && Agree(s.journal.layout, s.journal.states[n], w) && OkKey(s.kinds, k) &&"
     txn/serial.dfy Recovered: "!FreeIn(s.journal.layout, s.journal.states[n], KeyBlk(k) as int)"
     txn/serial.dfy Recovered:
       "ensures Cell(w, s.kinds, k) == After(s.kinds, All(s.logs, n), s.journal.states[0], k)" *)
  Definition Recovers (L : life) (n : nat) (w : Vol) : Prop :=
    lb L (ending L) ≤ n ∧ ∃ st0 st, Made L n st0 st ∧
      ∀ k, k ∈ keys → ¬ free st k → cell w k = After cell (All (logs L (ending L)) n) st0 k.
  (* Each opening begins a new history, with what recovery returned.
     journal/recover.dfy Replay:
       "ensures j != null ==> |j.states| == 1 && Agree(p, v, j.states[0]) && forall a :: a in j.layout.torn ==>"
     journal/recover.dfy Replay: "a in p.torn || FreeIn(p, v, a)"
     journal/recover.dfy Recover:
       "ensures j != null ==> j.Inv() && j.disk == d && j.seal == seal && j.mutex == mu && j.cache == cache &&"
     journal/recover.dfy Recover:
       "j.tree == t && j.durableIndex == 0 && j.logger.phase == NoLogger && j.installer.phase == NoInstall" *)
  Definition Opens (L : life) (w : Vol) : Prop := vs L 0 = [w] ∧ lb L 0 = 0.

  (** *** What clients see *)
  Definition seen_of (a : act Op Res Obj) : list (event Op Res) :=
    match a with Comes i o => [Call i o] | Answers i r _ => [Reply i r] | Fails i => [Failed i] | _ => [] end.
  Definition seen (L : life) (t : nat) : list (event Op Res) := take t (acts L) ≫= seen_of.

  (** [execution h w]: a volume that mkfs made was served, life after life; clients saw h; and the next opening finds w. *)
  Inductive execution (fresh : Vol → Prop) : list (event Op Res) → Vol → Prop :=
    | made w : fresh w → execution fresh [] w
    | served h w L n w' : execution fresh h w → Opens L w → Contracts L → Recovers L n w' →
        execution fresh (h ++ seen L (ending L) ++ [Crash]) w'.
End execution.
