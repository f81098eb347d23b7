(** Waiting in the journal: nobody's wake-up is lost, and somebody goes on while anybody waits.

    The threads of verified/journal/threads.dfy as a transition system, a step for each time that one holds the mutex. All that is left of
    the journal is what decides who waits and who is woken.

    What is not said: that a thread which can run does so, that the device answers, and so that waiting ends; who is woken on CSpace may find
    the group full again, as often as others are faster. And left out: Stop, which comes when no call is under way; counters that run out after 2^60 groups; that a group fits into an empty log
    (at most 500 blocks, where Go wants a ring of MinRing or more and maxPinned is 4096: journal/journal.go). Parity:
    sleepers on conditions 2 and 3 are told apart by the group that they wait for, which is what the parity is for: *)
(* journal/policy.dfy: "if n <= j.ncl { parity := 1 - parity % 2; }" *)
(* journal/policy.dfy: "j.notes.Set(NParity, 1 - parity % 2);" *)
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

(** The last commit (nvs), the last one of the group being logged (ncl), the last durable one (nlb); notes NWant and NWaiters; failed; busy; NUrge;
    whether there are logged groups, and whether some are being installed; what each thread does; and which commit each waiter waits for. *)
Inductive state := State (N F D W C : nat) (fl b u l x : bool) (f : threads) (g : nat → nat).
Definition failed '(State _ _ _ _ _ fl _ _ _ _ _ _) := fl.
Definition frozen '(State _ F _ _ _ _ _ _ _ _ _ _) := F.
Definition durable '(State _ _ D _ _ _ _ _ _ _ _ _) := D.
Definition does '(State _ _ _ _ _ _ _ _ _ _ f _) := f.
Definition target '(State _ _ _ _ _ _ _ _ _ _ _ g) := g.

Definition wish (t : thread) (g : nat → nat) (W : nat) := match t with Waiter i => max W (g i) | _ => W end.
Definition count (t : thread) (g : nat → nat) (F C : nat) := match t with Waiter i => if decide (F < g i) then S C else C | _ => C end.
Definition looks (t : thread) (g : nat → nat) (D : nat) := ∀ i, t = Waiter i → D < g i.
Definition finishes (wi : bool) (one : option thread) (F : nat) (g : nat → nat) (t : thread) : bool :=
  bool_decide (one = Some t) || match t with Installer => wi | Logger => false | Waiter i => bool_decide (g i ≤ F) end.

Inductive step : thread → state → state → Prop :=
(* WaitDurable and Logger, when they hold the mutex *)
(* journal/threads.dfy: "while !ok && !failed" *)
| Ends t N F D W C fl b u l x f g : t ≠ Installer → f t = Runs → (fl = true ∨ ∃ i, t = Waiter i ∧ g i ≤ D) →
  step t (State N F D W C fl b u l x f g) (State N F D W C fl b u l x (upd t Out f) g)
(* journal/commit.dfy: "if j.busy ||" *)
(* journal/policy.dfy: "j.notes.Set(NWaiters, 0);" *)
(* journal/policy.dfy: "j.mu.WakeAll(CSpace);" *)
| Starts t N F D W C u l x f g : t ≠ Installer → f t = Runs → looks t g D → F < N →
  step t (State N F D W C false false u l x f g) (State N N D (wish t g W) 0 false true u l x (upd t Works (space f)) g)
(* journal/threads.dfy: "j.mu.Wait(c); CYield(j);" *)
(* journal/threads.dfy: "else { j.mu.Wait(CLogger); CYield(j); }" *)
| Another t N F D W C u l x f g : t ≠ Installer → f t = Runs → looks t g D →
  step t (State N F D W C false true u l x f g) (State N F D (wish t g W) (count t g F C) false true u l x (upd t Sleeps f) g)
(* journal/policy.dfy: "b := k > 0 && (want > j.ncl || k >= 250 || stop != 0);" *)
| Nothing t N F D W C b u l x f g : t ≠ Installer → f t = Runs → looks t g D → ¬ (F < N ∧ F < wish t g W) →
  step t (State N F D W C false b u l x f g) (State N F D (wish t g W) (count t g F C) false b u l x (upd t Sleeps f) g)
(* journal/policy.dfy: "j.notes.Set(NUrge, 1);" *)
(* journal/policy.dfy: "j.mu.WakeOne(CInstaller);" *)
| NoRoom t N F D W C u l x f g : t ≠ Installer → f t = Runs → looks t g D → l = true ∨ x = true →
  step t (State N F D W C false false u l x f g) (State N F D (wish t g W) (count t g F C) false false true l x (upd t Sleeps (wake installer f)) g)
(* ... and when the device has answered *)
(* journal/policy.dfy: "if w == 0 { j.mu.WakeOne(CLogger); }" *)
(* journal/policy.dfy: "else if even { j.mu.WakeOne(2); }" *)
(* journal/policy.dfy: "if even { j.mu.WakeAll(3); } else { j.mu.WakeAll(2); }" *)
| Finish t more one wi N F D W C fl b u l x f g : t ≠ Installer → f t = Works → (F < N → F < W → more = true) →
  (more = true → C = 0 → one = Some Logger) →
  (more = true → C ≠ 0 → (∃ i, one = Some (Waiter i) ∧ f (Waiter i) = Sleeps ∧ F < g i) ∨ one = None ∧ ∀ i, f (Waiter i) = Sleeps → g i ≤ F) →
  (more = false → one = None) →
  step t (State N F D W C fl b u l x f g) (State N F F W C fl false u true x (upd t Runs (wake (finishes wi one F g) f)) g)
(* journal/policy.dfy: "j.mu.WakeAll(CLogger); j.mu.WakeAll(CInstaller); j.mu.WakeAll(2); j.mu.WakeAll(3); j.mu.WakeAll(CSpace);" *)
| Fails t N F D W C fl b u l x f g : f t = Works →
  step t (State N F D W C fl b u l x f g) (State N F D W C true b u l x (upd t Runs (space (wake all f))) g)
(* Installer *)
(* journal/policy.dfy: "if b { j.notes.Set(NUrge, 0); }" *)
| Installs N F D W C b u x f g : f Installer = Runs →
  step Installer (State N F D W C false b u true x f g) (State N F D W C false b false false true (upd Installer Works f) g)
(* journal/threads.dfy: "} else { j.mu.Wait(CInstaller); IYield(j); }" *)
| Idles N F D W C b u l x f g : f Installer = Runs → l = false ∨ u = false →
  step Installer (State N F D W C false b u l x f g) (State N F D W C false b u l x (upd Installer Sleeps f) g)
| InstallerEnds N F D W C b u l x f g : f Installer = Runs →
  step Installer (State N F D W C true b u l x f g) (State N F D W C true b u l x (upd Installer Out f) g)
(* journal/policy.dfy: "j.mu.WakeOne(CLogger);" *)
| Installed N F D W C fl b u l x f g : f Installer = Works →
  step Installer (State N F D W C fl b u l x f g) (State N F D W C fl b u l false (upd Installer Runs (space (wake logger f))) g).

(** What clients do, and the ticker, the watcher, and the end of a transaction. *)
Inductive world : state → state → Prop :=
(* journal/commit.dfy: "if k < 250 && k + l >= 250 && !j.busy { j.mu.WakeOne(CLogger); }" *)
| Appends w N F D W C b u l x f g : world (State N F D W C false b u l x f g) (State (S N) F D W C false b u l x (nudge w f) g)
| Calls i n N F D W C fl b u l x f g : f (Waiter i) = Out → n ≤ N →
  world (State N F D W C fl b u l x f g) (State N F D W C fl b u l x (upd (Waiter i) Runs f) (upd i n g))
(* journal/policy.dfy: "{ Nudge(j); }" *)
(* journal/policy.dfy: "if !j.busy { j.mu.WakeOne(CLogger); }" *)
| Fills i N F D W C b u l x f g : f (Waiter i) = Out → F < N →
  world (State N F D W C false b u l x f g) (State N F D N C false b u l x (upd (Waiter i) Full (nudge (negb b) f)) (upd i N g))
| Nudges N F D W C fl b u l x f g : world (State N F D W C fl b u l x f g) (State N F D N C fl b u l x (nudge (negb b) f) g)
| Urges N F D W C fl b u l x f g : world (State N F D W C fl b u l x f g) (State N F D W C fl b true l x (wake installer f) g)
| Guards N F D W C fl b u l x f g : world (State N F D W C fl b u l x f g) (State N F D W C true b u l x (space (wake all f)) g).

Definition asleep (d : doing) : Prop := d = Sleeps ∨ d = Full.

(** THE INVARIANT. Owed is its heart: who sleeps is owed a wake-up by somebody who does not. *)
Definition Order '(State N F D W C fl b u l x f g) := D ≤ F ∧ F ≤ N.
Definition Worker '(State N F D W C fl b u l x f g) := ∀ t, t ≠ Installer → f t = Works → b = true ∧ ∀ t', t' ≠ Installer → f t' = Works → t' = t.
Definition Someone '(State N F D W C fl b u l x f g) := fl = false → b = true → ∃ t, t ≠ Installer ∧ f t = Works.
Definition Logging '(State N F D W C fl b u l x f g) := fl = false → D < F → b = true.
Definition Installing '(State N F D W C fl b u l x f g) := fl = false → (x = true ↔ f Installer = Works).
Definition Known '(State N F D W C fl b u l x f g) := ∀ i, f (Waiter i) ≠ Out → g i ≤ N.
Definition Wanted '(State N F D W C fl b u l x f g) := ∀ i, fl = false → asleep (f (Waiter i)) → D < g i ∧ g i ≤ W.
Definition ForRoom '(State N F D W C fl b u l x f g) := ∀ i, fl = false → f (Waiter i) = Full → F < g i.
Definition Background '(State N F D W C fl b u l x f g) := fl = false → ∀ t, t = Logger ∨ t = Installer → f t ≠ Out ∧ f t ≠ Full.
Definition Counted '(State N F D W C fl b u l x f g) := fl = false → C ≠ 0 → ∃ i, F < g i ∧ (f (Waiter i) = Runs ∨ f (Waiter i) = Sleeps).
Definition Awake '(State N F D W C fl b u l x f g) := fl = true → ∀ t, ¬ asleep (f t).
Definition Owed '(State N F D W C fl b u l x f g) := ∀ i, fl = false → asleep (f (Waiter i)) → F < g i →
  b = true ∨ (∃ t, f t = Runs ∧ (t = Logger ∨ ∃ k, t = Waiter k ∧ F < g k)) ∨ f Installer = Works ∨ f Installer = Runs ∧ u = true ∧ l = true.
Record inv (s : state) : Prop := { order : Order s; worker : Worker s; someone : Someone s; logging : Logging s; installing : Installing s; known : Known s;
  wanted : Wanted s; full : ForRoom s; background : Background s; counted : Counted s; awake : Awake s; owed : Owed s }.

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
Ltac cases := let S := fresh in intros I S; destruct I as [order worker someone logging installing known wanted full background counted awake owed]; destruct S; simpl in *.
Lemma finishes_no wi one F g i : finishes wi one F g (Waiter i) = false → F < g i.
Proof. unfold finishes. intros [_ E]%orb_false_iff. apply bool_decide_eq_false in E. lia. Qed.
Lemma finishes_one wi y F g : finishes wi (Some y) F g y = true.
Proof. unfold finishes. by rewrite bool_decide_true. Qed.
Lemma order_step t s s' : inv s → step t s s' → Order s'.
Proof. cases; lia. Qed.
Lemma worker_step t s s' : inv s → step t s s' → Worker s'.
Proof.
  cases; clear order someone logging installing known wanted full background counted awake owed; intros t1 n1 w1; facts;
    try (split; [congruence|]; intros t2 n2 w2; facts); subst; try done.
  all: try (destruct (worker t1 n1 ltac:(congruence)) as [? E]; try congruence; try (split; [done|])).
  all: try (intros; facts; subst; eauto; fail).
  all: try (pose proof (worker t2 n2 ltac:(congruence)); intuition congruence).
  destruct (worker t) as [_ E2]; [done..|]. destruct H6. eauto.
Qed.
Lemma logging_step t s s' : inv s → step t s s' → Logging s'.
Proof. cases; intros; try lia; auto. Qed.
Lemma known_step t s s' : inv s → step t s s' → Known s'.
Proof.
  cases; clear worker someone logging installing wanted full background counted awake owed; intros i n; facts; try (apply known; congruence); subst;
    try (etrans; [apply known; congruence|lia]).
Qed.
Lemma awake_step t s s' : inv s → step t s s' → Awake s'.
Proof.
  cases; clear order worker someone logging installing known wanted full background counted owed; try done; intros E y a; unfold asleep in *; facts;
    try (destruct a; congruence); try (unfold all in *; destruct a; intuition congruence); try (eapply awake; eauto; fail).
Qed.
Lemma someone_step t s s' : inv s → step t s s' → Someone s'.
Proof.
  cases; clear order logging known wanted full background counted awake owed; intros E1 E2; try congruence.
  all: try (exists t; split; [done|]; unfold upd; case_decide; congruence).
  all: try (destruct (someone eq_refl E2) as (y&?&?); exists y; split; [done|]; facts; subst; congruence).
  all: try (destruct (someone E1 E2) as (y&?&?); exists y; split; [done|]; facts; subst; congruence).
Qed.
Lemma installing_step t s s' : inv s → step t s s' → Installing s'.
Proof.
  cases; clear order someone worker logging known wanted full background counted awake owed; intros E; try congruence; try pose proof (installing E); facts; subst; try done; try (intuition congruence).
Qed.
Lemma background_step t s s' : inv s → step t s s' → Background s'.
Proof.
  cases; clear order someone worker logging known wanted full installing counted awake owed; intros E y o; try congruence; pose proof (background E y o) as B; facts; subst; try done; try (intuition congruence).
  destruct H1 as [|(?&?&?)], o; congruence.
Qed.
Lemma full_step t s s' : inv s → step t s s' → ForRoom s'.
Proof.
  cases; clear order someone worker logging known wanted background installing counted awake owed; intros i E a; try congruence; facts; subst; try done; try (apply full; congruence).
Qed.
Lemma wanted_step t s s' : inv s → step t s s' → Wanted s'.
Proof.
  cases; clear someone worker background installing counted awake owed; intros i E a; try congruence; unfold asleep in *; facts; subst; try (destruct a; congruence).
  all: try (destruct (wanted i); [done|tauto|]; unfold wish; repeat case_match; lia).
  all: try (specialize (H1 i eq_refl); unfold wish; lia).
  destruct (wanted i) as [_ ?]; [done|tauto|]. split; [|done]. destruct a; [|by apply full].
  eapply finishes_no; eauto.
Qed.
Lemma counted_step t s s' : inv s → step t s s' → Counted s'.
Proof.
  cases; clear someone worker background installing wanted full awake owed logging; intros E c; try congruence.
  all: try (destruct (counted E c) as (i&?&a); exists i; split; [done|]; facts; subst; try (destruct a; congruence); try tauto).
  { destruct H1 as [|(k&Q&?)]; [congruence|]. injection Q as ->. lia. }
  all: destruct t as [| |k]; try congruence; simpl in *; try (destruct (counted E c) as (i&?&a); exists i; split; [done|]; facts; subst; tauto).
  all: case_decide; [exists k; split; [done|]; facts; tauto|]; destruct (counted E c) as (i&?&a); exists i; split; [done|]; facts; subst; tauto.
Qed.
Lemma stays_asleep t d f p i : asleep (upd t d (wake p f) (Waiter i)) → d ≠ Sleeps → d ≠ Full → asleep (f (Waiter i)).
Proof. unfold asleep. intros a ? ?. facts; tauto. Qed.
Lemma on_logger (f : thread → doing) y : f y ≠ Out ∧ f y ≠ Full → f y = Runs ∨ f y = Sleeps ∨ f y = Works.
Proof. destruct (f y); tauto. Qed.
Lemma owed_step t s s' : inv s → step t s s' → Owed s'.
Proof.
  cases; intros i E a o; try congruence; try (by left).
  - (* Ends *) assert (asleep (f (Waiter i))) as a' by (unfold asleep in *; facts; destruct a; congruence).
    destruct (owed i E a' o) as [?|[(y&r&k)|[?|?]]]; [by left| |do 2 right; left; facts|do 3 right; facts; intuition congruence].
    right; left. exists y. destruct k as [->|(k&->&?)].
    { split; [|by left]. clear a a'. facts. destruct H1 as [?|(j&?&?)]; congruence. }
    split; [|by right; exists k]. clear a a'. facts. exfalso. destruct H1 as [?|(j&Q&?)]; [congruence|]. assert (j = k) by congruence. subst. lia.
  - (* Nothing *) destruct b; [by left|]. exfalso. apply H2. destruct t as [| |k]; simpl in *; [|done|].
    + assert (asleep (f (Waiter i))) as a' by (unfold asleep in *; facts; tauto). clear a. destruct (wanted i E a'). assert (g i ≤ N) by (apply known; destruct a'; congruence). lia.
    + specialize (H1 k eq_refl). assert (g k ≤ N) by (apply known; congruence). destruct (decide (D < F)); [specialize (logging E ltac:(done)); done|]. lia.
  - (* NoRoom *) clear a. right; right. destruct (on_logger f Installer) as [h|[h|h]]; [by apply background; auto|..].
    + destruct H2 as [->| ->]; [right; split; [facts|done]|destruct (installing E) as [Q _]; specialize (Q eq_refl); congruence].
    + destruct H2 as [->| ->]; [right; split; [facts|done]|destruct (installing E) as [Q _]; specialize (Q eq_refl); congruence].
      exfalso. unfold installer in *. rewrite bool_decide_true in H4; [|done]. by specialize (H4 h).
    + left. facts.
  - (* Finish *) right; left.
    assert (asleep (f (Waiter i))) as a' by (by eapply stays_asleep). clear a. destruct (wanted i E a') as [_ ?]. assert (g i ≤ N) by (apply known; destruct a'; congruence).
    rewrite H1 in H2 H3; [|lia..]. destruct (decide (C = 0)) as [c|c].
    + rewrite (H2 eq_refl c). exists Logger. split; [|by left]. destruct (decide (t = Logger)) as [->|n]; [facts|].
      destruct (on_logger f Logger) as [h|[h|h]]; [by apply background; auto|facts| |exfalso; destruct (worker t H H0) as [_ Q]; specialize (Q Logger ltac:(done) h); congruence].
      facts. exfalso. match goal with Q : f Logger = Sleeps → _ |- _ => specialize (Q h); by rewrite finishes_one in Q end.
    + destruct (H3 eq_refl c) as [(k&->&sl&?)|[-> n]].
      * exists (Waiter k). split; [|by right; exists k]. facts. exfalso. match goal with Q : f (Waiter k) = Sleeps → _ |- _ => specialize (Q sl); by rewrite finishes_one in Q end.
      * destruct (counted E c) as (j&?&[r|r]); [|specialize (n j r); lia]. exists (Waiter j). split; [|by right; exists j]. facts.
  - (* Installs *) clear a. do 2 right; left. facts.
  - (* Idles *) assert (asleep (f (Waiter i))) as a' by (unfold asleep in *; facts). clear a.
    destruct (owed i E a' o) as [?|[(y&r&k)|[?|(?&?&?)]]]; [by left| |congruence|intuition congruence].
    right; left. exists y. split; [|done]. facts. subst. destruct k as [|(k&[=]&?)]; done.
  - (* Installed *) clear a. destruct (on_logger f Logger) as [h|[h|h]]; [by apply background; auto|..].
    + right; left. exists Logger. split; [|by left]. facts.
    + right; left. exists Logger. split; [|by left]. destruct (upd_does Installer Runs (space (wake logger f)) Logger) as [[? _]|[_ ->]]; [done|].
      unfold space, wake, logger. rewrite h. by case_bool_decide.
    + left. by apply (worker Logger).
Qed.

Lemma inv_step t s s' : inv s → step t s s' → inv s'.
Proof.
  intros I S. constructor; [eapply order_step|eapply worker_step|eapply someone_step|eapply logging_step|eapply installing_step|eapply known_step
    |eapply wanted_step|eapply full_step|eapply background_step|eapply counted_step|eapply awake_step|eapply owed_step]; eauto.
Qed.

Lemma nudge_does c f t : nudge c f t = f t ∨ c = true ∧ t = Logger ∧ f t = Sleeps ∧ nudge c f t = Runs.
Proof. destruct c; [|by left]. destruct (wake_does logger f t) as [[? E]|(?&E&?)]; [by left|]. right. by apply bool_decide_eq_true in E. Qed.
Ltac nudges := repeat match goal with
  | H : context [nudge ?c ?f ?t] |- _ => let E := fresh in destruct (nudge_does c f t) as [E|(?&?&?&E)]; rewrite E in H; clear E
  | |- context [nudge ?c ?f ?t] => let E := fresh in destruct (nudge_does c f t) as [E|(?&?&?&E)]; rewrite E; clear E
  end; facts.
(** The logger is about to look, or somebody is it. *)
Lemma nudged N F D W C fl b u l x f g : inv (State N F D W C fl b u l x f g) → fl = false → b = true ∨ nudge (negb b) f Logger = Runs.
Proof.
  intros I E. destruct b; [by left|]. destruct (on_logger f Logger) as [h|[h|h]].
  - apply (background _ I E). auto.
  - right. simpl. unfold wake. by rewrite h.
  - right. simpl. unfold wake, logger. rewrite h. by case_bool_decide.
  - left. by apply (worker _ I Logger).
Qed.
Ltac worlds := let S := fresh in intros I S; pose proof I as [order worker someone logging installing known wanted full background counted awake owed]; destruct S; simpl in *.
Lemma order_world s s' : inv s → world s s' → Order s'.
Proof. worlds; lia. Qed.
Lemma worker_world s s' : inv s → world s s' → Worker s'.
Proof.
  worlds; clear I order someone logging installing known wanted full background counted awake owed; intros t1 n1 w1; facts; nudges; subst; try congruence;
    (destruct (worker t1 n1) as [? E]; [congruence|]; split; [congruence|]; intros t2 n2 w2; facts; nudges; subst; try congruence; by apply E).
Qed.
Lemma someone_world s s' : inv s → world s s' → Someone s'.
Proof.
  worlds; clear I order logging installing known wanted full background counted awake owed; intros E1 E2; try congruence.
  all: destruct (someone ltac:(assumption || reflexivity) ltac:(assumption)) as (y&?&?); exists y; split; [done|]; facts; nudges; subst; congruence.
Qed.
Lemma logging_world s s' : inv s → world s s' → Logging s'.
Proof. worlds; intros; try lia; auto. Qed.
Lemma installing_world s s' : inv s → world s s' → Installing s'.
Proof. worlds; clear I order someone worker logging known wanted full background counted awake owed; intros E; try congruence; try pose proof (installing E); facts; nudges; subst; try done; intuition congruence. Qed.
Lemma known_world s s' : inv s → world s s' → Known s'.
Proof.
  worlds; clear I worker someone logging installing wanted full background counted awake owed; intros k n0; facts; nudges; subst; try congruence; try lia; try (apply known; congruence);
    try (etrans; [apply known; congruence|lia]).
Qed.
Lemma wanted_world s s' : inv s → world s s' → Wanted s'.
Proof.
  worlds; clear I someone worker background installing counted awake owed; intros k E a; try congruence; unfold asleep in *; facts; nudges; subst; try congruence; try (destruct a; congruence).
  all: try (split; lia). all: destruct (wanted k ltac:(assumption || reflexivity)) as [? ?]; [intuition congruence|]; split; try lia; try done; apply known; destruct a; congruence.
Qed.
Lemma full_world s s' : inv s → world s s' → ForRoom s'.
Proof. worlds; clear I order someone worker logging known wanted background installing counted awake owed; intros k E a; try congruence; facts; nudges; subst; try done; try congruence; try (apply full; congruence). Qed.
Lemma background_world s s' : inv s → world s s' → Background s'.
Proof. worlds; clear I order someone worker logging known wanted full installing counted awake owed; intros E y o; try congruence; pose proof (background ltac:(assumption || reflexivity) y o) as B; facts; nudges; subst; try done; try (intuition congruence). Qed.
Lemma counted_world s s' : inv s → world s s' → Counted s'.
Proof.
  worlds; clear I someone worker background installing wanted full awake owed logging; intros E c; try congruence.
  all: destruct (counted ltac:(assumption || reflexivity) c) as (k&?&a); exists k; facts; nudges; subst; try (injection H1 as ->); split; try done; try (destruct a; congruence); try (intuition congruence).
Qed.
Lemma awake_world s s' : inv s → world s s' → Awake s'.
Proof.
  worlds; clear I order worker someone logging installing known wanted full background counted owed; try done; intros E y a; unfold asleep in *; facts; nudges; subst;
    try (unfold all in *; destruct a; intuition congruence); try (eapply awake; eauto; fail).
Qed.
Lemma owed_world s s' : inv s → world s s' → Owed s'.
Proof.
  intros I S. destruct S; intros k E a o; try congruence.
  - destruct (owed _ I k E) as [?|[(y&r&Y)|[?|(?&?&?)]]]; [unfold asleep in *; nudges; intuition congruence|done|by left| | |].
    + right; left. exists y. split; [nudges|done].
    + do 2 right; left. nudges.
    + do 3 right. nudges; intuition congruence.
  - assert (Waiter k ≠ Waiter i) as n' by (intros Q; unfold asleep in a; rewrite Q in a; destruct (upd_does (Waiter i) Runs f (Waiter i)) as [[_ R]|[? _]]; [rewrite R in a; destruct a; congruence|done]).
    assert (g k = upd i n g k) as G by (destruct (upd_does i n g k) as [[-> _]|[_ ->]]; [done|done]).
    rewrite -G in o. destruct (owed _ I k E) as [?|[(y&r&Y)|[?|(?&?&?)]]]; [unfold asleep in *; facts; intuition congruence|done|by left| | |].
    + right; left. exists y. split; [facts|]. destruct Y as [->|(j&->&?)]; [by left|]. right. exists j. split; [done|]. destruct (upd_does i n g j) as [[-> _]|[_ ->]]; [congruence|done].
    + do 2 right; left. facts.
    + do 3 right. facts; intuition congruence.
  - destruct (nudged _ _ _ _ _ _ _ _ _ _ _ _ I E) as [?|L]; [by left|]. right; left. exists Logger. split; [facts|by left].
  - destruct (nudged _ _ _ _ _ _ _ _ _ _ _ _ I E) as [?|L]; [by left|]. right; left. exists Logger. by split; [|left].
  - destruct (owed _ I k E) as [?|[(y&r&Y)|[?|(?&?&?)]]]; [unfold asleep in *; facts; intuition congruence|done|by left| | |].
    + right; left. exists y. split; [facts|done].
    + do 2 right; left. facts.
    + do 3 right. facts; intuition congruence.
Qed.
Lemma inv_world s s' : inv s → world s s' → inv s'.
Proof.
  intros I S. constructor; [eapply order_world|eapply worker_world|eapply someone_world|eapply logging_world|eapply installing_world|eapply known_world
    |eapply wanted_world|eapply full_world|eapply background_world|eapply counted_world|eapply awake_world|eapply owed_world]; eauto.
Qed.

(** As the journal is opened: nothing committed, nobody in a call, the threads of the background about to look. *)
Definition opened : state := State 0 0 0 0 0 false false false false false (λ t, match t with Waiter _ => Out | _ => Runs end) (λ _, 0).
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
  intros R%inv_reachable a. destruct s as [N F D W C fl b u l x f g]; simpl in *.
  destruct fl; [by destruct (awake _ R eq_refl (Waiter i))|]. destruct (wanted _ R i eq_refl a) as [? ?].
  split; [done|split; [done|]]. destruct (decide (F < g i)) as [o|o].
  - destruct (owed _ R i eq_refl a o) as [->|[?|[?|(?&_&_)]]]; [left; by apply (someone _ R)|right; auto..].
  - left. apply (someone _ R eq_refl). apply (logging _ R eq_refl). lia.
Qed.

(** Nothing stands still: in any state in which a call waits, some thread can take a step, or the device owes it an answer; and whatever it finds, there is a step for it. *)
Lemma can_go_on t s : reachable s → does s t = Runs ∨ does s t = Works → ∃ s', step t s s'.
Proof.
  intros R%inv_reachable d. destruct s as [N F D W C fl b u l x f g]; simpl in *. destruct d as [r|r].
  - destruct (decide (t = Installer)) as [->|n].
    + destruct fl; [eexists; by apply InstallerEnds|]. destruct (installing _ R eq_refl) as [Q _].
      destruct x; [specialize (Q eq_refl); simpl in Q; congruence|]. destruct l; [eexists; by apply Installs|]. eexists. apply Idles; auto.
    + destruct fl; [eexists; apply Ends; auto|].
      assert (looks t g D ∨ ∃ i, t = Waiter i ∧ g i ≤ D) as [lk|lk].
      { destruct t as [| |k]; [by left|done|]. destruct (decide (g k ≤ D)); [right; by exists k|]. left. intros j [= ->]. lia. }
      * destruct b; [eexists; by apply Another|]. destruct (decide (F < N)); [eexists; by apply Starts|]. eexists. apply Nothing; [done..|]. lia.
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
