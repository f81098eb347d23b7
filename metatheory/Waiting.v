(** Waiting in the journal: nobody's wake-up is lost, and somebody goes on while anybody waits.

    The threads of verified/journal/threads.dfy as a transition system, a step for each time that one holds the mutex. All that is left of
    the journal is what decides who waits and who is woken. Commits up to F are in groups that are frozen or pending (written, but not known to be durable), those up to D
    in groups that are durable, and those after F in the running group. A pending group may be left so, with nobody the logger, while nobody waits for it.

    Where the code decides more than is said here, any decision is a step: when a group takes so much memory, or has so many blocks, that it is written or made durable though
    nobody waits, and that pending groups which are wanted durable come before the next group is frozen.

    What is not said: that a thread which can run does so, that the device answers, and so that waiting ends; who is woken on CSpace may find
    the group full again, as often as others are faster. And left out: Drain and Stop, which come when no call is under way and everything is durable; counters that run out after 2^60 groups;
    that no commit is empty (txn/ending.dfy makes none), so that there is something to write if F < N; that a group fits into an empty log
    (at most 500 blocks, where Go wants a ring of MinRing or more and maxPinned is 4096: journal/journal.go). *)

(* Of what is left out, what wakes or waits:
   journal/policy.dfy SetStop: "j.mutex.WakeAll(CLogger); j.mutex.WakeAll(CInstaller);"
   journal/policy.dfy Shut: "j.mutex.WakeAll(CSpace);"
   journal/threads.dfy Drain: "j.mutex.Wait(CSpace); CYield(j);" *)
From Tansy Require Import Tactics.

Inductive thread := Logger | Installer | Waiter (i : nat).
Global Instance thread_eq : EqDecision thread. Proof. solve_decision. Qed.
(** Out: in no call. Runs: it will take the mutex and look. Sleeps: on its condition. Full: on CSpace. Works: at the device, without the mutex. *)
Inductive doing := Out | Runs | Sleeps | Full | Works.

Definition upd {A B} `{EqDecision A} (a : A) (b : B) (f : A → B) (x : A) : B := if decide (x = a) then b else f x.
Notation threads := (thread → doing).
Definition wake (p : thread → bool) (f : threads) (t : thread) : doing :=
  match f t with Sleeps => if p t then Runs else Sleeps | d => d end.
(** Who is woken on CSpace tries to append again: a new call. *)
Definition space (f : threads) (t : thread) : doing := match f t with Full => Out | d => d end.
Definition logger (t : thread) := bool_decide (t = Logger).
Definition installer (t : thread) := bool_decide (t = Installer).
Definition nudge (c : bool) (f : threads) := if c then wake logger f else f.
Definition all (t : thread) := true.

(** The last commit (lastCommit), the last one in a frozen or pending group (lastFrozen), and the last durable one
    (lastDurable); the notes WriteUpTo, Waiters, DurableUpTo, and RunningDurableUpTo; failed; busy; the note InstallNow;
    whether there are logged groups, and whether some are being installed; the note OddGroup; what each thread does; and
    of each waiter for which commit it waits, and on which of conditions 2 and 3 if it sleeps. *)
Inductive state := State (N F D W C M L : nat) (fl b u l x e : bool) (f : threads) (g : nat → nat) (q : nat → bool).
Definition failed '(State _ _ _ _ _ _ _ fl _ _ _ _ _ _ _ _) := fl.
Definition frozen '(State _ F _ _ _ _ _ _ _ _ _ _ _ _ _ _) := F.
Definition durable '(State _ _ D _ _ _ _ _ _ _ _ _ _ _ _ _) := D.
Definition want '(State _ _ _ W _ _ _ _ _ _ _ _ _ _ _ _) := W.
Definition need '(State _ _ _ _ _ M _ _ _ _ _ _ _ _ _ _) := M.
Definition does '(State _ _ _ _ _ _ _ _ _ _ _ _ _ f _ _) := f.
Definition target '(State _ _ _ _ _ _ _ _ _ _ _ _ _ _ g _) := g.

(** What a waiter notes as it looks: the last commit that is wanted written; durable, of those in no running group; and durable, of those in the running group; and as it
    goes to sleep, how many wait for the running group, and the condition. *)
(* journal/policy.dfy Want: "j.notes.RaiseWriteUpTo(n);" *)
(* journal/policy.dfy Want:
   "if n <= j.lastFrozen { j.notes.RaiseDurableUpTo(n); } else { j.notes.RaiseRunningDurableUpTo(n); }" *)
(* journal/policy.dfy WaitOn: "if n <= j.lastFrozen { odd := !odd; }" *)
(* journal/policy.dfy WaitOn: "c := if odd then 3 else 2;" *)
Definition wish (t : thread) (g : nat → nat) (W : nat) := match t with Waiter i => max W (g i) | _ => W end.
Definition soon (t : thread) (g : nat → nat) (F M : nat) := match t with Waiter i => if decide (F < g i) then M else max M (g i) | _ => M end.
Definition later (t : thread) (g : nat → nat) (F L : nat) := match t with Waiter i => if decide (F < g i) then max L (g i) else L | _ => L end.
Definition count (t : thread) (g : nat → nat) (F C : nat) := match t with Waiter i => if decide (F < g i) then S C else C | _ => C end.
Definition on (t : thread) (g : nat → nat) (F : nat) (e : bool) (q : nat → bool) :=
  match t with Waiter i => upd i (if decide (F < g i) then e else negb e) q | _ => q end.
Definition looks (t : thread) (g : nat → nat) (D : nat) := ∀ i, t = Waiter i → D < g i.

(** NextLogger, and whom NoteFinish wakes: all who wait for any of the pending groups are on one condition (Placed). *)
(* journal/policy.dfy NextLogger: "if !more { return; }" *)
(* journal/policy.dfy NextLogger: "if w == 0 { j.mutex.WakeOne(CLogger); }" *)
(* journal/policy.dfy NextLogger: "else if odd { j.mutex.WakeOne(3); }" *)
(* journal/policy.dfy NextLogger: "else { j.mutex.WakeOne(2); }" *)
Definition passes (one : option thread) (N F W C : nat) (e : bool) (f : threads) (q : nat → bool) : Prop :=
  ∃ more : bool, (F < N → F < W → more = true) ∧
  (more = true → C = 0 → one = Some Logger) ∧
  (more = true → C ≠ 0 → (∃ i, one = Some (Waiter i) ∧ f (Waiter i) = Sleeps ∧ q i = e) ∨ one = None ∧ ∀ i, f (Waiter i) = Sleeps → q i ≠ e) ∧
  (more = false → one = None).
Definition only (one : option thread) (t : thread) : bool := bool_decide (one = Some t).
(* journal/policy.dfy NoteFinish: "if full || urge { j.mutex.WakeOne(CInstaller); }" *)
(* journal/policy.dfy NoteFinish: "if odd { j.mutex.WakeAll(2); } else { j.mutex.WakeAll(3); }" *)
Definition finishes (wi : bool) (one : option thread) (e : bool) (q : nat → bool) (t : thread) : bool :=
  only one t || match t with Installer => wi | Logger => false | Waiter i => bool_decide (q i = negb e) end.

Inductive step : thread → state → state → Prop :=
(* WaitDurable and Logger, when they hold the mutex *)
(* journal/threads.dfy WaitDurable: "while !ok && !failed" *)
| Ends t N F D W C M L fl b u l x e f g q : t ≠ Installer → f t = Runs → (fl = true ∨ ∃ i, t = Waiter i ∧ g i ≤ D) →
  step t (State N F D W C M L fl b u l x e f g q) (State N F D W C M L fl b u l x e (upd t Out f) g q)
(* The running group is frozen. Whoever waits for it waits for a pending group then, which is wanted. *)
(* journal/commit.dfy StartCommit: "if j.busy || j.failed { return; }" *)
(* journal/commit.dfy StartCommit: "else if w {" *)
(* journal/policy.dfy NoteStart: "j.notes.RaiseDurableUpTo(later);" *)
(* journal/policy.dfy NoteStart: "j.notes.SetOddGroup(!odd);" *)
(* journal/policy.dfy NoteStart: "j.notes.SetWaiters(0);" *)
(* journal/policy.dfy NoteStart: "j.mutex.WakeAll(CSpace);" *)
| Starts t N F D W C M L u l x e f g q : t ≠ Installer → f t = Runs → looks t g D → F < N →
  step t (State N F D W C M L false false u l x e f g q)
    (State N N D (wish t g W) 0 (max (soon t g F M) (later t g F L)) (later t g F L) false true u l x (negb e) (upd t Works (space f)) g q)
(* The pending groups are to become durable: that is wanted, or takes too much memory, or there is no room for another one. *)
(* journal/commit.dfy StartCommit: "if pending && need { ok := true; }" *)
(* journal/commit.dfy StartCommit: "if pending { ok := true; } else { Urge(j); }" *)
(* journal/commit.dfy StartCommit: "if ok { TakeUp(j); }" *)
| TakesUp t N F D W C M L u l x e f g q : t ≠ Installer → f t = Runs → looks t g D → D < F →
  step t (State N F D W C M L false false u l x e f g q) (State N F D (wish t g W) C (soon t g F M) (later t g F L) false true u l x e (upd t Works f) g q)
(* journal/threads.dfy WaitDurable: "j.mutex.Wait(c); CYield(j);" *)
(* journal/threads.dfy Logger: "else { j.mutex.Wait(CLogger); CYield(j); }" *)
| Another t N F D W C M L u l x e f g q : t ≠ Installer → f t = Runs → looks t g D →
  step t (State N F D W C M L false true u l x e f g q)
    (State N F D (wish t g W) (count t g F C) (soon t g F M) (later t g F L) false true u l x e (upd t Sleeps f) g (on t g F e q))
(* journal/policy.dfy WantCommit: "b := k > 0 && (want > j.lastFrozen || k >= GroupMin || stop);" *)
(* journal/policy.dfy WantDurable: "b := need > j.lastDurable || stop || c >= j.instAt || h / 2 >= j.instAt;" *)
| Nothing t N F D W C M L u l x e f g q : t ≠ Installer → f t = Runs → looks t g D → ¬ (F < N ∧ F < wish t g W) → ¬ (D < F ∧ D < soon t g F M) →
  step t (State N F D W C M L false false u l x e f g q)
    (State N F D (wish t g W) (count t g F C) (soon t g F M) (later t g F L) false false u l x e (upd t Sleeps f) g (on t g F e q))
(* journal/policy.dfy Urge: "j.notes.SetInstallNow(true);" *)
(* journal/policy.dfy Urge: "j.mutex.WakeOne(CInstaller);" *)
| NoRoom t N F D W C M L u l x e f g q : t ≠ Installer → f t = Runs → looks t g D → D = F → l = true ∨ x = true →
  step t (State N F D W C M L false false u l x e f g q)
    (State N F D (wish t g W) (count t g F C) (soon t g F M) (later t g F L) false false true l x e (upd t Sleeps (wake installer f)) g (on t g F e q))
(* ... and when the device has answered. The frozen group is written, and may stay pending: *)
(* journal/threads.dfy LogGroup: "if !need { Defer(j); return; }" *)
| Defers t one N F D W C M L fl b u l x e f g q : t ≠ Installer → f t = Works → M ≤ D → passes one N F W C e f q →
  step t (State N F D W C M L fl b u l x e f g q) (State N F D W C M L fl false u l x e (upd t Runs (wake (only one) f)) g q)
(* ... or all pending groups are durable. *)
| Finish t one wi N F D W C M L fl b u l x e f g q : t ≠ Installer → f t = Works → passes one N F W C e f q →
  step t (State N F D W C M L fl b u l x e f g q) (State N F F W C M L fl false u true x e (upd t Runs (wake (finishes wi one e q) f)) g q)
(* journal/policy.dfy Fail: "WakeEveryone(j.mutex);"
   journal/policy.dfy WakeEveryone:
   "m.WakeAll(CLogger); m.WakeAll(CInstaller); m.WakeAll(2); m.WakeAll(3); m.WakeAll(CSpace);" *)
| Fails t N F D W C M L fl b u l x e f g q : f t = Works →
  step t (State N F D W C M L fl b u l x e f g q) (State N F D W C M L true b u l x e (upd t Runs (space (wake all f))) g q)
(* Installer *)
(* journal/policy.dfy WantInstall: "if b { j.notes.SetInstallNow(false); }" *)
| Installs N F D W C M L b u x e f g q : f Installer = Runs →
  step Installer (State N F D W C M L false b u true x e f g q) (State N F D W C M L false b false false true e (upd Installer Works f) g q)
(* journal/threads.dfy Installer: "} else { j.mutex.Wait(CInstaller); IYield(j); }" *)
| Idles N F D W C M L b u l x e f g q : f Installer = Runs → l = false ∨ u = false →
  step Installer (State N F D W C M L false b u l x e f g q) (State N F D W C M L false b u l x e (upd Installer Sleeps f) g q)
| InstallerEnds N F D W C M L b u l x e f g q : f Installer = Runs →
  step Installer (State N F D W C M L true b u l x e f g q) (State N F D W C M L true b u l x e (upd Installer Out f) g q)
(* journal/policy.dfy NoteInstall: "j.mutex.WakeAll(CSpace);" *)
(* journal/policy.dfy NoteInstall: "j.mutex.WakeOne(CLogger);" *)
| Installed N F D W C M L fl b u l x e f g q : f Installer = Works →
  step Installer (State N F D W C M L fl b u l x e f g q) (State N F D W C M L fl b u l false e (upd Installer Runs (space (wake logger f))) g q).

(** What clients do, and the ticker, the watcher, and the end of a transaction. *)
Inductive world : state → state → Prop :=
(* journal/commit.dfy Append: "if k < GroupMin && k + l >= GroupMin && !j.busy { j.mutex.WakeOne(CLogger); }" *)
| Appends w N F D W C M L b u l x e f g q : world (State N F D W C M L false b u l x e f g q) (State (S N) F D W C M L false b u l x e (nudge w f) g q)
| Calls i n N F D W C M L fl b u l x e f g q : f (Waiter i) = Out → n ≤ N →
  world (State N F D W C M L fl b u l x e f g q) (State N F D W C M L fl b u l x e (upd (Waiter i) Runs f) (upd i n g) q)
(* journal/policy.dfy AskSpace: "j.notes.SetWriteUpTo(j.lastCommit);" *)
(* journal/policy.dfy AskSpace: "if !j.busy { j.mutex.WakeOne(CLogger); }" *)
(* journal/threads.dfy WaitSpace: "j.mutex.Wait(CSpace); CYield(j);" *)
(* txn/ending.dfy AwaitRoom: "t.system.journal.mutex.Wait(CSpace); TYield(t.system, t.owner);" *)
| Fills i N F D W C M L b u l x e f g q : f (Waiter i) = Out → F < N →
  world (State N F D W C M L false b u l x e f g q) (State N F D N C M L false b u l x e (upd (Waiter i) Full (nudge (negb b) f)) (upd i N g) q)
(* journal/policy.dfy Nudge: "Want(j, j.lastCommit);" *)
(* journal/policy.dfy Nudge: "j.notes.RaiseDurableUpTo(j.lastFrozen);" *)
(* journal/policy.dfy Nudge: "if !j.busy { j.mutex.WakeOne(CLogger); }" *)
| Nudges N F D W C M L fl b u l x e f g q :
  world (State N F D W C M L fl b u l x e f g q) (State N F D N C (max M F) (max L N) fl b u l x e (nudge (negb b) f) g q)
| Urges N F D W C M L fl b u l x e f g q : world (State N F D W C M L fl b u l x e f g q) (State N F D W C M L fl b true l x e (wake installer f) g q)
| Guards N F D W C M L fl b u l x e f g q : world (State N F D W C M L fl b u l x e f g q) (State N F D W C M L true b u l x e (space (wake all f)) g q).

Definition asleep (d : doing) : Prop := d = Sleeps ∨ d = Full.

(** THE INVARIANT. Owed and Due are its heart: what is wanted is owed by somebody who does not sleep. And Wanted and Placed: who sleeps has said what it wants; it sleeps for a
    pending group only if somebody is the logger, and all who do are on the condition on which nobody sleeps for the running group. *)
Definition Order '(State N F D W C M L fl b u l x e f g q) := D ≤ F ∧ F ≤ N ∧ W ≤ N.
Definition Worker '(State N F D W C M L fl b u l x e f g q) := ∀ t, t ≠ Installer → f t = Works → b = true ∧ ∀ t', t' ≠ Installer → f t' = Works → t' = t.
Definition Someone '(State N F D W C M L fl b u l x e f g q) := fl = false → b = true → ∃ t, t ≠ Installer ∧ f t = Works.
Definition Due '(State N F D W C M L fl b u l x e f g q) := fl = false → D < F → D < M → b = true ∨ f Logger = Runs.
Definition Installing '(State N F D W C M L fl b u l x e f g q) := fl = false → (x = true ↔ f Installer = Works).
Definition Known '(State N F D W C M L fl b u l x e f g q) := ∀ i, f (Waiter i) ≠ Out → g i ≤ N.
Definition Wanted '(State N F D W C M L fl b u l x e f g q) := ∀ i, fl = false → asleep (f (Waiter i)) → D < g i ∧ g i ≤ W.
Definition place (F M L : nat) (b e : bool) (g : nat → nat) (q : nat → bool) (i : nat) : Prop := if decide (F < g i) then g i ≤ L ∧ q i = e else g i ≤ M ∧ b = true ∧ q i = negb e.
Definition Placed '(State N F D W C M L fl b u l x e f g q) := ∀ i, fl = false → f (Waiter i) = Sleeps → place F M L b e g q i.
Definition ForRoom '(State N F D W C M L fl b u l x e f g q) := ∀ i, fl = false → f (Waiter i) = Full → F < g i.
Definition Background '(State N F D W C M L fl b u l x e f g q) := fl = false → ∀ t, t = Logger ∨ t = Installer → f t ≠ Out ∧ f t ≠ Full.
Definition Counted '(State N F D W C M L fl b u l x e f g q) := fl = false → C ≠ 0 → ∃ i, F < g i ∧ f (Waiter i) ≠ Out ∧ f (Waiter i) ≠ Full.
Definition Awake '(State N F D W C M L fl b u l x e f g q) := fl = true → ∀ t, ¬ asleep (f t).
Definition Owed '(State N F D W C M L fl b u l x e f g q) := fl = false → F < W →
  b = true ∨ (∃ t, f t = Runs ∧ (t = Logger ∨ ∃ k, t = Waiter k ∧ F < g k)) ∨ f Installer = Works ∨ f Installer = Runs ∧ u = true ∧ l = true.
Record inv (s : state) : Prop := { order : Order s; worker : Worker s; someone : Someone s; due : Due s; installing : Installing s; known : Known s;
  wanted : Wanted s; placed : Placed s; full : ForRoom s; background : Background s; counted : Counted s; awake : Awake s; owed : Owed s }.

(** What wakes, thread by thread. *)
Lemma wake_does p f t : (f t = Sleeps → p t = false) ∧ wake p f t = f t ∨ f t = Sleeps ∧ p t = true ∧ wake p f t = Runs.
Proof. unfold wake. destruct (f t), (p t); auto; left; done. Qed.
Lemma space_does f t : f t ≠ Full ∧ space f t = f t ∨ f t = Full ∧ space f t = Out.
Proof. unfold space. destruct (f t); auto; left; done. Qed.
Lemma upd_does {A B} `{EqDecision A} (a : A) (b : B) f y : y = a ∧ upd a b f y = b ∨ y ≠ a ∧ upd a b f y = f y.
Proof. unfold upd. case_decide; auto. Qed.

(** Each step of a thread and of the world keeps it, field by field. *)
Ltac facts := repeat match goal with
  | H : context [upd ?a ?b ?f ?y] |- _ => let E := fresh in destruct (upd_does a b f y) as [[? E]|[? E]]; rewrite E in H; clear E
  | |- context [upd ?a ?b ?f ?y] => let E := fresh in destruct (upd_does a b f y) as [[? E]|[? E]]; rewrite E; clear E
  | H : context [wake ?p ?f ?t] |- _ => let E := fresh in destruct (wake_does p f t) as [[? E]|(?&?&E)]; rewrite E in H; clear E
  | |- context [wake ?p ?f ?t] => let E := fresh in destruct (wake_does p f t) as [[? E]|(?&?&E)]; rewrite E; clear E
  | H : context [space ?f ?t] |- _ => let E := fresh in destruct (space_does f t) as [[? E]|[? E]]; rewrite E in H; clear E
  | |- context [space ?f ?t] => let E := fresh in destruct (space_does f t) as [[? E]|[? E]]; rewrite E; clear E
  end; try congruence.
Ltac cases := let S := fresh in intros I S; destruct I as [order worker someone due installing known wanted placed full background counted awake owed]; destruct S; simpl in *.
Lemma finishes_no wi one e q i : finishes wi one e q (Waiter i) = false → q i = e.
Proof. unfold finishes. intros [_ E]%orb_false_iff. apply bool_decide_eq_false in E. by destruct (q i), e. Qed.
Lemma only_it y : only (Some y) y = true.
Proof. unfold only. by rewrite bool_decide_true. Qed.
Lemma finishes_it wi y e q : finishes wi (Some y) e q y = true.
Proof. unfold finishes. by rewrite only_it. Qed.
Lemma order_step t s s' : inv s → step t s s' → Order s'.
Proof. cases; unfold wish; try (destruct t as [| |k]; try (pose proof (known k ltac:(congruence)))); lia. Qed.
Lemma worker_step t s s' : inv s → step t s s' → Worker s'.
Proof.
  cases; clear order someone due installing known wanted placed full background counted awake owed; intros t1 n1 w1; facts;
    try (split; [congruence|]; intros t2 n2 w2; facts); subst; try done.
  all: try (destruct (worker t1 n1 ltac:(congruence)) as [? E]; try congruence; try (split; [done|])).
  all: try (intros; facts; subst; eauto; fail).
  all: try (pose proof (worker t2 n2 ltac:(congruence)); intuition congruence).
  all: destruct (worker t) as [_ E2]; [done..|]; specialize (E2 t1 n1 w1); congruence.
Qed.
Lemma due_step t s s' : inv s → step t s s' → Due s'.
Proof.
  cases; clear someone installing known wanted placed full background counted awake owed; intros E o m; try congruence; try lia; try (by left).
  - (* Ends *) destruct (due E o m) as [?|r]; [by left|right]. facts. subst. destruct H1 as [?|(?&?&?)]; congruence.
  - (* Installs *) destruct (due E o m) as [?|r]; [by left|right; facts].
  - (* Idles *) destruct (due E o m) as [?|r]; [by left|right; facts].
  - (* Installed *) destruct (due E o m) as [?|r]; [by left|right; facts].
Qed.
Lemma known_step t s s' : inv s → step t s s' → Known s'.
Proof.
  cases; clear worker someone due installing wanted placed full background counted awake owed; intros i n; facts; try (apply known; congruence); subst;
    try (etrans; [apply known; congruence|lia]).
Qed.
Lemma awake_step t s s' : inv s → step t s s' → Awake s'.
Proof.
  cases; clear order worker someone due installing known wanted placed full background counted owed; try done; intros E y a; unfold asleep in *; facts;
    try (destruct a; congruence); try (unfold all in *; destruct a; intuition congruence); try (eapply awake; eauto; fail).
Qed.
Lemma someone_step t s s' : inv s → step t s s' → Someone s'.
Proof.
  cases; clear order due known wanted placed full background counted awake owed; intros E1 E2; try congruence.
  all: try (exists t; split; [done|]; unfold upd; case_decide; congruence).
  all: try (destruct (someone eq_refl E2) as (y&?&?); exists y; split; [done|]; facts; subst; congruence).
  all: try (destruct (someone E1 E2) as (y&?&?); exists y; split; [done|]; facts; subst; congruence).
Qed.
Lemma installing_step t s s' : inv s → step t s s' → Installing s'.
Proof.
  cases; clear order someone worker due known wanted placed full background counted awake owed; intros E; try congruence; try pose proof (installing E); facts; subst; try done; try (intuition congruence).
Qed.
Lemma background_step t s s' : inv s → step t s s' → Background s'.
Proof.
  cases; clear order someone worker due known wanted placed full installing counted awake owed; intros E y o; try congruence; pose proof (background E y o) as B; facts; subst; try done; try (intuition congruence).
  destruct H1 as [|(?&?&?)], o; congruence.
Qed.
Lemma full_step t s s' : inv s → step t s s' → ForRoom s'.
Proof.
  cases; clear order someone worker due known wanted placed background installing counted awake owed; intros i E a; try congruence; facts; subst; try done; try (apply full; congruence).
Qed.
Lemma wanted_step t s s' : inv s → step t s s' → Wanted s'.
Proof.
  cases; clear someone worker due background installing counted awake owed; intros i E a; try congruence; unfold asleep in *; facts; subst; try (destruct a; congruence).
  all: try (destruct (wanted i); [done|tauto|]; unfold wish; repeat case_match; lia).
  all: try (specialize (H1 i eq_refl); unfold wish; lia).
  (* Finish *) destruct (wanted i) as [_ ?]; [done|tauto|]. split; [|done]. destruct a as [a|]; [|by apply full].
  assert (q i = e) as R by (eapply finishes_no; eauto). specialize (placed i ltac:(done) a). unfold place in *. case_decide; [done|]. destruct placed as (_&_&Q). rewrite R in Q. by destruct e.
Qed.
Lemma soon_more t g F M : M ≤ soon t g F M.
Proof. unfold soon. repeat case_match; lia. Qed.
Lemma later_more t g F L : L ≤ later t g F L.
Proof. unfold later. repeat case_match; lia. Qed.
(** Who goes to sleep, and who sleeps on as another looks. *)
Lemma it_sleeps k g F M L b e q : (g k ≤ F → b = true) → place F (soon (Waiter k) g F M) (later (Waiter k) g F L) b e g (on (Waiter k) g F e q) k.
Proof. intros B. unfold place, soon, later, on. destruct (upd_does k (if decide (F < g k) then e else negb e) q k) as [[_ ->]|[? _]]; [|done]. case_decide; (split; [lia|]); [done|]. split; [apply B; lia|done]. Qed.
Lemma sleeps_on t i g F M L b e q : t ≠ Waiter i → place F M L b e g q i → place F (soon t g F M) (later t g F L) b e g (on t g F e q) i.
Proof.
  intros n P. pose proof (soon_more t g F M). pose proof (later_more t g F L). assert (on t g F e q i = q i) as Q.
  { destruct t; try done. simpl. unfold upd. case_decide; congruence. }
  unfold place in *. rewrite Q. case_decide; intuition lia.
Qed.
Lemma placed_step t s s' : inv s → step t s s' → Placed s'.
Proof.
  cases; clear someone worker due background installing counted awake owed full; intros i E a; try congruence.
  2: { (* Starts *) assert (f (Waiter i) = Sleeps) as a' by facts. specialize (placed i E a').
    pose proof (later_more t g F L). assert (g i ≤ N) by (apply known; congruence). unfold place in *. rewrite decide_False; [|lia].
    case_decide; [|by destruct placed as (_&?&_)]. destruct placed as [? ->]. split; [lia|]. by rewrite negb_involutive. }
  2: { (* TakesUp *) assert (f (Waiter i) = Sleeps) as a' by facts. specialize (placed i E a').
    pose proof (later_more t g F L). unfold place in *. case_decide; [|by destruct placed as (_&?&_)]. intuition lia. }
  2-4: destruct (upd_does t Sleeps f (Waiter i)) as [[<- _]|[n _]].
  2-7: try (apply sleeps_on; [done|apply placed; [done|]]; facts).
  2-4: apply it_sleeps; specialize (H1 i eq_refl); unfold soon in *.
  2: done.
  2-3: intros; exfalso; repeat case_decide; lia.
  2: { (* Defers *) assert (f (Waiter i) = Sleeps) as a' by facts. specialize (placed i E a'). destruct (wanted i E ltac:(by left)). unfold place in *. case_decide; [done|lia]. }
  2: { (* Finish *) assert (f (Waiter i) = Sleeps ∧ finishes wi one e q (Waiter i) = false) as [a' R%finishes_no] by (facts; auto).
    specialize (placed i E a'). unfold place in *. case_decide; [done|]. destruct placed as (_&_&Q). rewrite R in Q. by destruct e. }
  all: apply placed; [done|facts].
Qed.
Lemma counted_step t s s' : inv s → step t s s' → Counted s'.
Proof.
  cases; clear someone worker background installing wanted placed full awake owed due; intros E c; try congruence.
  all: try (destruct (counted E c) as (i&?&?&?); exists i; split; [done|split; facts]; fail).
  { (* Ends *) destruct (counted E c) as (i&?&?&?). exists i. split; [done|]. destruct H1 as [?|(k&->&?)]; [congruence|]. split; facts; exfalso; assert (i = k) by congruence; subst; lia. }
  all: unfold count in *; destruct t as [| |k]; try congruence; try case_decide;
    try (destruct (counted E c) as (i&?&?&?); exists i; split; [done|split; facts]; fail); (exists k; split; [done|split; facts]).
Qed.
Lemma on_logger (f : thread → doing) y : f y ≠ Out ∧ f y ≠ Full → f y = Runs ∨ f y = Sleeps ∨ f y = Works.
Proof. destruct (f y); tauto. Qed.
(** NextLogger, as somebody stops to be the logger: there is somebody who goes on. *)
Lemma somebody_next t one p' N F D W C M L fl b u l x e f g q : inv (State N F D W C M L fl b u l x e f g q) → fl = false → t ≠ Installer → f t = Works → F < W →
  passes one N F W C e f q → (∀ y, one = Some y → p' y = true) →
  ∃ y, upd t Runs (wake p' f) y = Runs ∧ (y = Logger ∨ ∃ k, y = Waiter k ∧ F < g k).
Proof.
  intros I E T w o (more&m&z&s&_) P. pose proof (order _ I) as O. pose proof (worker _ I t T w) as [_ U]. simpl in O.
  assert (∀ y, f y = Runs ∨ f y = Sleeps ∧ one = Some y → upd t Runs (wake p' f) y = Runs) as A.
  { intros y [r|[r Q]]; [facts|]. destruct (upd_does t Runs (wake p' f) y) as [[_ ->]|[_ ->]]; [done|]. unfold wake. by rewrite r (P y Q). }
  destruct (decide (C = 0)) as [c|c].
  - exists Logger. split; [|by left]. destruct (decide (t = Logger)) as [->|n]; [facts|]. apply A.
    destruct (on_logger f Logger) as [h|[h|h]]; [by apply (background _ I); auto|by left|right; split; [done|apply z; [apply m; lia|done]]|].
    specialize (U Logger ltac:(done) h). congruence.
  - destruct (s ltac:(apply m; lia) c) as [(k&Q&h&B)|[_ n]].
    + exists (Waiter k). split; [apply A; auto|]. right. exists k. split; [done|]. pose proof (placed _ I k E h) as X. unfold place in X. case_decide; [done|].
      destruct X as (_&_&X). rewrite B in X. by destruct e.
    + destruct (counted _ I E c) as (j&?&r1&r2). exists (Waiter j). split; [|by right; exists j].
      destruct (f (Waiter j)) eqn:r; [done|apply A; auto| |done|rewrite -(U (Waiter j)); [facts|done..]].
      exfalso. apply (n j r). pose proof (placed _ I j E r) as X. unfold place in X. rewrite decide_True in X; [|done]. by destruct X.
Qed.
Lemma owed_step t s s' : inv s → step t s s' → Owed s'.
Proof.
  intros I. pose proof I as I'. revert I. cases; intros E o; try congruence; try (by left).
  - (* Ends *) destruct (owed E o) as [?|[(y&r&k)|[?|?]]]; [by left| |do 2 right; left; facts|do 3 right; facts; intuition congruence].
    right; left. exists y. destruct k as [->|(k&->&?)].
    { split; [|by left]. facts. destruct H1 as [?|(j&?&?)]; congruence. }
    split; [|by right; exists k]. facts. exfalso. destruct H1 as [?|(j&Q&?)]; [congruence|]. assert (j = k) by congruence. subst. lia.
  - (* Nothing *) exfalso. apply H2. assert (wish t g W ≤ N); [|lia]. destruct t as [| |k]; simpl in *; try lia. assert (g k ≤ N) by (apply known; congruence). lia.
  - (* NoRoom *) right; right. destruct (on_logger f Installer) as [h|[h|h]]; [by apply background; auto|..].
    + destruct H3 as [->| ->]; [right; split; [facts|done]|destruct (installing E) as [Q _]; specialize (Q eq_refl); congruence].
    + destruct H3 as [->| ->]; [right; split; [facts|done]|destruct (installing E) as [Q _]; specialize (Q eq_refl); congruence].
      exfalso. unfold installer in *. match goal with Q : f Installer = Sleeps → _ |- _ => specialize (Q h); by rewrite bool_decide_true in Q end.
    + left. facts.
  - (* Defers *) right; left. eapply somebody_next; eauto. intros y ->. apply only_it.
  - (* Finish *) right; left. eapply somebody_next; eauto. intros y ->. apply finishes_it.
  - (* Installs *) do 2 right; left. facts.
  - (* Idles *) destruct (owed E o) as [?|[(y&r&k)|[?|(?&?&?)]]]; [by left| |congruence|intuition congruence].
    right; left. exists y. split; [|done]. facts. subst. destruct k as [|(k&[=]&?)]; done.
  - (* Installed *) destruct (on_logger f Logger) as [h|[h|h]]; [by apply background; auto|..].
    + right; left. exists Logger. split; [|by left]. facts.
    + right; left. exists Logger. split; [|by left]. destruct (upd_does Installer Runs (space (wake logger f)) Logger) as [[? _]|[_ ->]]; [done|].
      unfold space, wake, logger. rewrite h. by case_bool_decide.
    + left. by apply (worker Logger).
Qed.

Lemma inv_step t s s' : inv s → step t s s' → inv s'.
Proof.
  intros I S. constructor; [eapply order_step|eapply worker_step|eapply someone_step|eapply due_step|eapply installing_step|eapply known_step
    |eapply wanted_step|eapply placed_step|eapply full_step|eapply background_step|eapply counted_step|eapply awake_step|eapply owed_step]; eauto.
Qed.

Lemma nudge_does c f t : nudge c f t = f t ∨ c = true ∧ t = Logger ∧ f t = Sleeps ∧ nudge c f t = Runs.
Proof. destruct c; [|by left]. destruct (wake_does logger f t) as [[? E]|(?&E&?)]; [by left|]. right. by apply bool_decide_eq_true in E. Qed.
Ltac nudges := repeat match goal with
  | H : context [nudge ?c ?f ?t] |- _ => let E := fresh in destruct (nudge_does c f t) as [E|(?&?&?&E)]; rewrite E in H; clear E
  | |- context [nudge ?c ?f ?t] => let E := fresh in destruct (nudge_does c f t) as [E|(?&?&?&E)]; rewrite E; clear E
  end; facts.
(** The logger is about to look, or somebody is it. *)
Lemma nudged N F D W C M L fl b u l x e f g q : inv (State N F D W C M L fl b u l x e f g q) → fl = false → b = true ∨ nudge (negb b) f Logger = Runs.
Proof.
  intros I E. destruct b; [by left|]. destruct (on_logger f Logger) as [h|[h|h]].
  - apply (background _ I E). auto.
  - right. simpl. unfold wake. by rewrite h.
  - right. simpl. unfold wake, logger. rewrite h. by case_bool_decide.
  - left. by apply (worker _ I Logger).
Qed.
Ltac worlds := let S := fresh in intros I S; pose proof I as [order worker someone due installing known wanted placed full background counted awake owed]; destruct S; simpl in *.
Lemma order_world s s' : inv s → world s s' → Order s'.
Proof. worlds; lia. Qed.
Lemma worker_world s s' : inv s → world s s' → Worker s'.
Proof.
  worlds; clear I order someone due installing known wanted placed full background counted awake owed; intros t1 n1 w1; facts; nudges; subst; try congruence;
    (destruct (worker t1 n1) as [? E]; [congruence|]; split; [congruence|]; intros t2 n2 w2; facts; nudges; subst; try congruence; by apply E).
Qed.
Lemma someone_world s s' : inv s → world s s' → Someone s'.
Proof.
  worlds; clear I order due installing known wanted placed full background counted awake owed; intros E1 E2; try congruence.
  all: destruct (someone ltac:(assumption || reflexivity) ltac:(assumption)) as (y&?&?); exists y; split; [done|]; facts; nudges; subst; congruence.
Qed.
Lemma due_world s s' : inv s → world s s' → Due s'.
Proof.
  intros I S. pose proof (due _ I) as due. destruct S; simpl in *; intros E o m; try congruence; try (destruct (due ltac:(assumption || reflexivity) o m) as [?|?]; [by left|right; facts; nudges]; fail).
  eapply nudged; eauto.
Qed.
Lemma installing_world s s' : inv s → world s s' → Installing s'.
Proof. worlds; clear I order someone worker due known wanted placed full background counted awake owed; intros E; try congruence; try pose proof (installing E); facts; nudges; subst; try done; intuition congruence. Qed.
Lemma known_world s s' : inv s → world s s' → Known s'.
Proof.
  worlds; clear I worker someone due installing wanted placed full background counted awake owed; intros k n0; facts; nudges; subst; try congruence; try lia; try (apply known; congruence);
    try (etrans; [apply known; congruence|lia]).
Qed.
Lemma wanted_world s s' : inv s → world s s' → Wanted s'.
Proof.
  worlds; clear I someone worker background installing counted awake owed; intros k E a; try congruence; unfold asleep in *; facts; nudges; subst; try congruence; try (destruct a; congruence).
  all: try (split; lia). all: destruct (wanted k ltac:(assumption || reflexivity)) as [? ?]; [intuition congruence|]; split; try lia; try done; apply known; destruct a; congruence.
Qed.
Lemma placed_world s s' : inv s → world s s' → Placed s'.
Proof.
  worlds; clear I order someone worker due background installing counted awake owed known wanted full; intros k E a; try congruence.
  all: assert (f (Waiter k) = Sleeps) as a' by (facts; nudges; congruence); specialize (placed k ltac:(done) a'); unfold place in *; try done.
  - destruct (upd_does i n g k) as [[-> _]|[_ ->]]; [congruence|done].
  - destruct (upd_does i N g k) as [[-> _]|[_ ->]]; [congruence|done].
  - case_decide; intuition lia.
Qed.
Lemma full_world s s' : inv s → world s s' → ForRoom s'.
Proof. worlds; clear I order someone worker due known wanted placed background installing counted awake owed; intros k E a; try congruence; facts; nudges; subst; try done; try congruence; try (apply full; congruence). Qed.
Lemma background_world s s' : inv s → world s s' → Background s'.
Proof. worlds; clear I order someone worker due known wanted placed full installing counted awake owed; intros E y o; try congruence; pose proof (background ltac:(assumption || reflexivity) y o) as B; facts; nudges; subst; try done; try (intuition congruence). Qed.
Lemma counted_world s s' : inv s → world s s' → Counted s'.
Proof.
  worlds; clear I someone worker background installing wanted placed full awake owed due; intros E c; try congruence.
  all: destruct (counted ltac:(assumption || reflexivity) c) as (k&?&?&?); exists k; facts; nudges; subst; split; try done; try (split; congruence); try congruence.
Qed.
Lemma awake_world s s' : inv s → world s s' → Awake s'.
Proof.
  worlds; clear I order worker someone due installing known wanted placed full background counted owed; try done; intros E y a; unfold asleep in *; facts; nudges; subst;
    try (unfold all in *; destruct a; intuition congruence); try (eapply awake; eauto; fail).
Qed.
Lemma owed_world s s' : inv s → world s s' → Owed s'.
Proof.
  intros I S. pose proof (owed _ I) as owed. destruct S; simpl in *; intros E o; try congruence.
  3-4: destruct (nudged _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ I E) as [?|r]; [by left|right; left; exists Logger; split; [by facts|by left]].
  all: destruct (owed E o) as [?|[(y&r&Y)|[?|(?&?&?)]]]; [by left|right; left; exists y; split; [facts; nudges|try done]
    |do 2 right; left; facts; nudges|do 3 right; facts; nudges; intuition congruence].
  destruct Y as [->|(j&->&?)]; [by left|]. right. exists j. split; [done|]. destruct (upd_does i n g j) as [[-> _]|[_ ->]]; [congruence|done].
Qed.
Lemma inv_world s s' : inv s → world s s' → inv s'.
Proof.
  intros I S. constructor; [eapply order_world|eapply worker_world|eapply someone_world|eapply due_world|eapply installing_world|eapply known_world
    |eapply wanted_world|eapply placed_world|eapply full_world|eapply background_world|eapply counted_world|eapply awake_world|eapply owed_world]; eauto.
Qed.

(** As the journal is opened: nothing committed, nobody in a call, the threads of the background about to look. *)
Definition opened : state := State 0 0 0 0 0 0 0 false false false false false false (λ t, match t with Waiter _ => Out | _ => Runs end) (λ _, 0) (λ _, false).
Inductive reachable : state → Prop :=
| at_first : reachable opened
| by_thread t s s' : reachable s → step t s s' → reachable s'
| by_world s s' : reachable s → world s s' → reachable s'.
Lemma inv_reachable s : reachable s → inv s.
Proof.
  induction 1; [|by eapply inv_step|by eapply inv_world].
  constructor; simpl; try done; try lia; try (intros [] ? ?; done); try (intros i _ []; done). by intros _ t [->| ->].
Qed.

(** NO WAKE-UP IS LOST. Whoever sleeps waits for something that has not come, on a journal that has not failed; and somebody who does not sleep is to bring it: if its group is being
    logged, who logs it; else who logs another one, or who will try to begin with the next one, or the installer, which is at work or about to
    begin, and then wakes the logger. *)
Theorem nobody_is_forgotten s i : reachable s → asleep (does s (Waiter i)) →
  failed s = false ∧ durable s < target s i ∧
  ((∃ t, t ≠ Installer ∧ does s t = Works) ∨
   frozen s < target s i ∧ ((∃ t, does s t = Runs ∧ (t = Logger ∨ ∃ k, t = Waiter k ∧ frozen s < target s k)) ∨ does s Installer = Works ∨ does s Installer = Runs)).
Proof.
  intros R%inv_reachable a. destruct s as [N F D W C M L fl b u l x e f g q]; simpl in *.
  destruct fl; [by destruct (awake _ R eq_refl (Waiter i))|]. destruct (wanted _ R i eq_refl a) as [? ?].
  split; [done|split; [done|]]. destruct (decide (F < g i)) as [o|o].
  - destruct (owed _ R eq_refl ltac:(lia)) as [->|[?|[?|(?&_&_)]]]; [left; by apply (someone _ R)|right; auto..].
  - left. apply (someone _ R eq_refl). destruct a as [a|a]; [|by pose proof (full _ R i eq_refl a)].
    pose proof (placed _ R i eq_refl a) as P. unfold place in P. case_decide; [done|]. tauto.
Qed.

(** Nor is a wish, though nobody should sleep for it, as none does for the ticker's: if something of the running group is wanted written, or of the pending ones durable, somebody who does not
    sleep is to see to it. *)
Theorem no_wish_is_forgotten s : reachable s → failed s = false →
  (frozen s < want s → (∃ t, t ≠ Installer ∧ does s t = Works) ∨
    (∃ t, does s t = Runs ∧ (t = Logger ∨ ∃ k, t = Waiter k ∧ frozen s < target s k)) ∨ does s Installer = Works ∨ does s Installer = Runs) ∧
  (durable s < frozen s → durable s < need s → (∃ t, t ≠ Installer ∧ does s t = Works) ∨ does s Logger = Runs).
Proof.
  intros R%inv_reachable E. destruct s as [N F D W C M L fl b u l x e f g q]; simpl in *. split; intros.
  - destruct (owed _ R E ltac:(done)) as [->|[?|[?|(?&_&_)]]]; [left; by apply (someone _ R)|right; auto..].
  - destruct (due _ R E ltac:(done) ltac:(done)) as [->|?]; [left; by apply (someone _ R)|by right].
Qed.

(** Nothing stands still: in any state in which a call waits, some thread can take a step, or the device owes it an answer; and whatever it finds, there is a step for it. *)
Lemma can_go_on t s : reachable s → does s t = Runs ∨ does s t = Works → ∃ s', step t s s'.
Proof.
  intros R%inv_reachable d. destruct s as [N F D W C M L fl b u l x e f g q]; simpl in *. destruct d as [r|r].
  - destruct (decide (t = Installer)) as [->|n].
    + destruct fl; [eexists; by apply InstallerEnds|]. destruct (installing _ R eq_refl) as [Q _].
      destruct x; [specialize (Q eq_refl); simpl in Q; congruence|]. destruct l; [eexists; by apply Installs|]. eexists. apply Idles; auto.
    + destruct fl; [eexists; apply Ends; auto|].
      assert (looks t g D ∨ ∃ i, t = Waiter i ∧ g i ≤ D) as [lk|lk].
      { destruct t as [| |k]; [by left|done|]. destruct (decide (g k ≤ D)); [right; by exists k|]. left. intros j [= ->]. lia. }
      * destruct b; [eexists; by apply Another|]. pose proof (order _ R) as O. simpl in O.
        destruct (decide (D < F)); [eexists; by apply TakesUp|]. destruct (decide (F < N)); [eexists; by apply Starts|]. eexists. apply Nothing; [done..| |]; lia.
      * eexists. apply Ends; auto.
  - eexists. by apply Fails.
Qed.
Theorem nothing_stands_still s i : reachable s → does s (Waiter i) ≠ Out → ∃ t s', step t s s'.
Proof.
  intros R d. assert (∃ t, does s t = Runs ∨ does s t = Works) as [t r].
  { destruct (does s (Waiter i)) eqn:E; [done|eauto| | |eauto].
    all: destruct (nobody_is_forgotten s i R) as (_&_&[(t&_&?)|(_&[(t&?&_)|[?|?]])]); [unfold asleep; auto|eauto..]. }
  exists t. by apply can_go_on.
Qed.
