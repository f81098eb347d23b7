(** Interleavings: threads whose accesses come in any order do what they would do by turns, from Yield to Yield.

    The proofs in Dafny take a thread to be alone from one Yield to the next, its block, and others to run at Yields
    alone. What runs is another thing: the accesses of all threads, one after the other in any order, cut off anywhere
    by a crash. Here it is proved that each such run is one by turns (Lipton's reduction), if each thread by itself
    keeps to the rules of [may]. Whether it does is seen from its own accesses alone, so nothing is taken for granted
    of the others, nor of what is proved by turns.

    What is a place, and under which rule:
    - Fixed: what never changes: the constants of the journal, contents of blocks (to the proof a block never changes).
    - Private: what one thread made and nobody else sees: locals, a transaction and its write buffer.
    - Mutexed: the fields that steps marked [L] change, with the maps that they name; the cache; the notes.
    - Owned: the objects of the logger and of the installer, without the mutex as well.
    - Frozen: what a role changes under the mutex alone: its own steps without the mutex read it (the frozen group, the
      map of what is being installed, nextSeq), and others read it under the mutex.
    - Open: what one role changes, and others read without the mutex: root and version of the tree of codes.
    [Operates] is an operation of anything that threads share without the mutex, which takes effect at one instant: the
    device, the lock table, a call that comes or a reply that leaves. It may return whatever [operates] allows.
    [Takes] is where busy becomes true, under the mutex: only in StartCommit, which has seen that it was false. [Leaves] is
    where it becomes false. The installer is a thread that Go starts once: [Takes] is its first access.

    A Yield that stands after Lock stands before it here, and one after Wait between letting go and taking again. That
    is the same, as nothing comes between them, and a Yield says nothing of the mutex. Wait is just that: it may return
    for no reason. Who wakes whom is in Waiting.v.

    What verified/tools/threads.py checks of the text is said at each rule. What is believed:
    - Go's memory model (go.dev/ref/mem): programs without data races behave as if accesses came one after the other;
      Lock and Unlock of sync.Mutex, Wait of sync.Cond, channels, and sync/atomic order them as is said there. That
      there are none follows from the rules ([no_data_race]).
    - Each operation of the device takes effect at one instant between its call and its return, as its contract has it.
    - A step that has operated comes to its end ([program_ends]): Dafny proves that it ends and waits for nobody.
    - The steps that threads.py lists in SEVERAL (verified/TRUST.md). *)
From Tansy Require Export Tactics.

(* What is copied here:
   trusted/mutex.s.dfy Inside: "predicate Inside() reads this { held && settled != null }"
   trusted/mutex.s.dfy Lock: "requires !held modifies this ensures held && settled == null && woken == {}"
   trusted/mutex.s.dfy Unlock: "requires held modifies this ensures !held && settled == null"
   trusted/mutex.s.dfy Wait: "requires held && c < 5 modifies this`settled, this`woken ensures settled == null && woken == {}"
   journal/commit.dfy StartCommit: "if j.busy || j.failed { return; }"
   journal/commit.dfy TakeUp: "j.logger.phase := GroupsWritten; j.busy := true;"
   journal/commit.dfy StartFields: "j.logger.phase := GroupFrozen; j.busy := true;"
   journal/commit.dfy Resign: "j.logger.phase := NoLogger; j.busy := false;"
   journal/commit.dfy FinishFields: "j.logger.phase := NoLogger; j.busy := false;" *)

Section interleaving.
  Context {thread place role value op device : Type}.
  Context `{EqDecision thread, Countable place, Countable role}.
  Variable operates : device → op → device → Prop.

  Inductive rule :=
    | Fixed
    | Private (t : thread)
    | Mutexed
    | Owned (r : role)
    | Frozen (r : role)
    | Open (r : role).
  Variable rules : place → rule.

  (** A read names what it found: [None] in a place that was never written. *)
  Inductive access :=
    | Acquires
    | Releases
    | Takes (r : role)
    | Leaves (r : role)
    | Reads (p : place) (v : option value)
    | Writes (p : place) (v : value)
    | Operates (o : op)
    | Yields.

  Global Instance is_yields a : Decision (a = Yields).
  Proof. destruct a; first [by left|by right]. Defined.

  (** Who plays a role is a part of the state, as nobody can take one that somebody plays. *)
  Record state := State { memory : gmap place value; holder : option thread; players : gmap role thread; dev : device }.

  Inductive does : state → thread → access → state → Prop :=
    | does_acquires m ps d t : does (State m None ps d) t Acquires (State m (Some t) ps d)
    | does_releases m ps d t : does (State m (Some t) ps d) t Releases (State m None ps d)
    | does_takes m h ps d t r : ps !! r = None → does (State m h ps d) t (Takes r) (State m h (<[r:=t]> ps) d)
    | does_leaves m h ps d t r : ps !! r = Some t → does (State m h ps d) t (Leaves r) (State m h (delete r ps) d)
    | does_reads m h ps d t p v : m !! p = v → does (State m h ps d) t (Reads p v) (State m h ps d)
    | does_writes m h ps d t p v : does (State m h ps d) t (Writes p v) (State (<[p:=v]> m) h ps d)
    | does_operates m h ps d d' t o : operates d o d' → does (State m h ps d) t (Operates o) (State m h ps d')
    | does_yields s t : does s t Yields s.

  (** What a thread knows of itself: whether it holds the mutex, which roles it plays, and whether its block is
      decided. It is as soon as the block has acted on what others may see without the mutex, or has let the mutex go.
      *)
  Record status := Status { held : bool; plays : gset role; late : bool }.
  Definition start : status := Status false ∅ false.

  (** What the block can do once: an operation, and so is any access to an open place but a read by the role itself. *)
  Definition acts (k : status) (a : access) : bool :=
    match a with
    | Operates _ => true
    | Writes p _ => match rules p with Open _ => true | _ => false end
    | Reads p _ => match rules p with Open r => bool_decide (r ∉ plays k) | _ => false end
    | _ => false
    end.
  Definition after (k : status) (a : access) : status :=
    match a with
    | Acquires => Status true (plays k) (late k)
    | Releases => Status false (plays k) true
    | Takes r => Status (held k) ({[r]} ∪ plays k) (late k)
    | Leaves r => Status (held k) (plays k ∖ {[r]}) (late k)
    | Yields => Status (held k) (plays k) false
    | a => Status (held k) (plays k) (acts k a || late k)
    end.

  (** The rules.
      verified/tools/threads.py sees to them on the text of each program:
      - Acquires, Operates: what others may do is awaited (a Yield) between an operation and the next, and between
        letting the mutex go and taking it; no step has two operations.
      - Takes, Leaves, Mutexed: steps marked [L] demand the mutex, which Dafny proves.
      - Owned, Frozen, Open: steps without the mutex touch their role's object, and fields of the journal that steps of
        their role alone change; nobody else's step touches that object. *)
  Definition alone (t : thread) (k : status) (p : place) : Prop :=
    match rules p with
    | Fixed => False
    | Private u => u = t
    | Mutexed => held k = true
    | Owned r => r ∈ plays k
    | Frozen r => held k = true ∧ r ∈ plays k
    | Open r => r ∈ plays k ∧ late k = false
    end.
  Definition sees (t : thread) (k : status) (p : place) : Prop :=
    match rules p with
    | Fixed => True
    | Frozen r => held k = true ∨ r ∈ plays k
    | Open r => r ∈ plays k ∨ late k = false
    | _ => alone t k p
    end.
  Definition may (t : thread) (k : status) (a : access) : Prop :=
    match a with
    | Acquires => held k = false ∧ late k = false
    | Releases => held k = true
    | Takes r => held k = true
    | Leaves r => held k = true ∧ r ∈ plays k
    | Reads p _ => sees t k p
    | Writes p _ => alone t k p
    | Operates _ => late k = false
    | Yields => True
    end.
  Fixpoint lawful (t : thread) (k : status) (l : list access) : Prop :=
    match l with [] => True | a :: l => may t k a ∧ lawful t (after k a) l end.

  (** Events with what their thread knew. *)
  Record event := Event { who : thread; knew : status; what : access }.
  Implicit Types e f : event.
  Implicit Types l x y : list event.
  Notation goes e := (after (knew e) (what e)).

  Definition fits (t : thread) (k : status) (s : state) : Prop :=
    (held k = true ↔ holder s = Some t) ∧ ∀ r, r ∈ plays k ↔ players s !! r = Some t.
  Definition good (s : state) (e : event) (s' : state) : Prop :=
    does s (who e) (what e) s' ∧ fits (who e) (knew e) s ∧ may (who e) (knew e) (what e).
  Inductive goods : state → list event → state → Prop :=
    | goods_none s : goods s [] s
    | goods_more s e s' l s'' : good s e s' → goods s' l s'' → goods s (e :: l) s''.

  Lemma goods_app s x y s'' : goods s (x ++ y) s'' ↔ ∃ s', goods s x s' ∧ goods s' y s''.
  Proof.
    split.
    - revert s. induction x as [|e x IH]; intros s; simpl; intros Hg; [by exists s; split; [constructor|]|].
      inversion Hg as [|? ? s1 ? ? He Hx]; subst. destruct (IH _ Hx) as (s' & ? & ?).
      exists s'. split; [by econstructor|done].
    - intros (s' & Hx & Hy). induction Hx; simpl; [done|]. econstructor; eauto.
  Qed.
  Lemma goods_one s e s' : goods s [e] s' ↔ good s e s'.
  Proof.
    split; [|intros; econstructor; [done|constructor]].
    intros Hg. inversion Hg as [|? ? ? ? ? ? Hn]; subst. by inversion Hn; subst.
  Qed.

  (** What others do changes nothing of what a thread knows of itself *)
  Lemma fits_others s t a s' u k : does s t a s' → t ≠ u → fits u k s ↔ fits u k s'.
  Proof.
    intros Hd Ht. unfold fits.
    assert ((holder s = Some u ↔ holder s' = Some u) ∧ ∀ r, players s !! r = Some u ↔ players s' !! r = Some u) as [Hh
      Hp].
    { destruct Hd; simpl; split; try done; try (split; intros; simplify_eq; done).
      - intros r'. destruct (decide (r = r')) as [<-|Hr]; [rewrite lookup_insert|by rewrite lookup_insert_ne].
        split; intros; simplify_eq.
      - intros r'. destruct (decide (r = r')) as [<-|Hr]; [rewrite lookup_delete|by rewrite lookup_delete_ne].
        split; intros; simplify_eq. }
    split; intros [H1 H2]; split; intros; [by rewrite H1 Hh|by rewrite H2 Hp|by rewrite H1 Hh|by rewrite H2 Hp].
  Qed.
  Lemma fits_own s t a s' k : does s t a s' → fits t k s → fits t (after k a) s'.
  Proof.
    intros Hd [Hh Hp]. destruct Hd; split; simpl in *; try done.
    - intros r'. rewrite elem_of_union elem_of_singleton Hp.
      destruct (decide (r = r')) as [<-|Hr]; [rewrite lookup_insert|rewrite lookup_insert_ne //].
      + split; [done|by left].
      + split; [intros [?|?]; congruence|by right].
    - intros r'. rewrite elem_of_difference elem_of_singleton Hp.
      destruct (decide (r = r')) as [<-|Hr]; [rewrite lookup_delete|rewrite lookup_delete_ne //].
      + split; [intros [? []]; done|done].
      + split; [by intros []|]. intros ?. split; [done|congruence].
  Qed.

  (** Two threads do not both hold the mutex, or play one role. *)
  Lemma one_holds t u k j s : fits t k s → fits u j s → held k = true → held j = true → t = u.
  Proof. intros [Hk _] [Hj _] H1 H2. apply Hk in H1. apply Hj in H2. congruence. Qed.
  Lemma one_plays t u k j s r : fits t k s → fits u j s → r ∈ plays k → r ∈ plays j → t = u.
  Proof. intros [_ Hk] [_ Hj] H1 H2. apply Hk in H1. apply Hj in H2. congruence. Qed.
  (** Neighbours in time, by different threads, commute if the first can move to the right, or the second to the left.
    *)
  Local Ltac clash p :=
    unfold sees, alone in *; destruct (rules p) as [|?| |r|r|r]; simpl in *;
    repeat match goal with H : ∀ r : role, _ |- _ => specialize (H r) | H : _ ∧ _ |- _ => destruct H end;
    try congruence; repeat case_bool_decide; intuition congruence.
  Lemma swap s e f s1 s2 :
    good s e s1 → good s1 f s2 → who e ≠ who f →
    (acts (knew e) (what e) = false ∧ what e ≠ Releases) ∨ (acts (knew f) (what f) = false ∧ what f ≠ Acquires) →
    ∃ s', good s f s' ∧ good s' e s2.
  Proof.
    destruct e as [t k a], f as [u j b]; simpl. intros (De & Fe & Me) (Df & Ff & Mf) Ht Hm; simpl in *.
    assert (Ff0 : fits u j s) by (by eapply fits_others).
    assert (Hh := one_holds _ _ _ _ _ Fe Ff0). assert (Hp := λ r, one_plays _ _ _ _ _ r Fe Ff0).
    assert (∃ s', does s u b s' ∧ does s' t a s2) as (s' & Df' & De').
    { destruct De; inversion Df; subst; simpl in *.
      all: try solve [eexists; split; constructor; first [assumption|reflexivity]].
      all: try solve [exfalso; tauto].
      - assert (p ≠ p0) by (intros ->; clash p0).
        eexists; split; constructor. by rewrite lookup_insert_ne.
      - assert (p ≠ p0) by (intros ->; clash p0).
        eexists; split; constructor. by rewrite lookup_insert_ne.
      - assert (p ≠ p0) by (intros ->; clash p0).
        rewrite insert_commute //. eexists; split; constructor.
      - exfalso. by destruct Hm as [[? ?]|[? ?]].
    }
    exists s'. split; split; simpl; [done|done|done|]. split; [|done]. apply (fits_others _ _ _ _ _ _ Df'); [by apply
      not_eq_sym|done].
  Qed.

  (** An access that leaves its block undecided moves to the right, one after the decision to the left. *)
  Definition early (e : event) : Prop := late (goes e) = false.
  Definition tardy (e : event) : Prop := late (knew e) = true.
  Lemma early_moves e : early e → acts (knew e) (what e) = false ∧ what e ≠ Releases.
  Proof.
    destruct e as [t k a]; unfold early; simpl. intros Hl.
    destruct a; simpl in *; try done; by apply orb_false_elim in Hl as [-> _].
  Qed.
  Lemma tardy_moves s e s' : tardy e → good s e s' → acts (knew e) (what e) = false ∧ what e ≠ Acquires.
  Proof.
    destruct e as [t k a]; unfold tardy; simpl. intros Hl (_ & _ & Hm); simpl in *.
    destruct a; simpl in *; try done; try (destruct Hm; congruence); try congruence; unfold sees, alone in Hm; destruct
      (rules p); try done.
    - destruct Hm; [|congruence]. split; [by case_bool_decide|done].
    - destruct Hm; congruence.
  Qed.
  Definition apart x y : Prop := ∀ e f, e ∈ x → f ∈ y → who e ≠ who f.
  Lemma one_right e y s s' : early e → apart [e] y → goods s (e :: y) s' → goods s (y ++ [e]) s'.
  Proof.
    intros He. revert s. induction y as [|f y IH]; intros s Ha Hg; [done|].
    inversion Hg as [|? ? s1 ? ? He1 Hg1]; subst. inversion Hg1 as [|? ? s2 ? ? Hf Hy]; subst.
    destruct (swap s e f s1 s2) as (s3 & ? & ?); [done|done| |left; by apply early_moves|].
    { apply Ha; left. }
    simpl. econstructor; [done|]. apply IH; [|by econstructor].
    intros e' f' ? ?. apply Ha; [done|by right].
  Qed.
  Lemma all_right x y s s' : Forall early x → apart x y → goods s (x ++ y) s' → goods s (y ++ x) s'.
  Proof.
    intros Hx. revert s. induction Hx as [|e x He Hx IH]; intros s Ha Hg; [by rewrite app_nil_r|].
    simpl in Hg. inversion Hg as [|? ? s1 ? ? He1 Hg1]; subst. apply IH in Hg1.
    2: { intros e' f' ? ?. apply Ha; [by right|done]. }
    rewrite (assoc_L (++) y [e] x). apply goods_app.
    assert (Hg2 : goods s ((e :: y) ++ x) s') by by econstructor.
    apply goods_app in Hg2 as (s2 & Hy & Hx2). exists s2. split; [|done]. apply one_right; [done| |done].
    intros e' f' ->%elem_of_list_singleton ?. apply Ha; [left|done].
  Qed.
  Lemma one_left f x s s' : tardy f → apart x [f] → goods s (x ++ [f]) s' → goods s (f :: x) s'.
  Proof.
    intros Hf. revert s. induction x as [|e x IH]; intros s Ha Hg; [done|].
    simpl in Hg. inversion Hg as [|? ? s1 ? ? He1 Hg1]; subst. apply IH in Hg1.
    2: { intros e' f' ? ?. apply Ha; [by right|done]. }
    inversion Hg1 as [|? ? s2 ? ? Hf2 Hx]; subst.
    destruct (swap s e f s1 s2) as (s3 & ? & ?); [done|done| |right; by eapply tardy_moves|].
    { apply Ha; left. }
    econstructor; [done|]. by econstructor.
  Qed.

  (** What one thread does, and what is done at the device *)
  Notation trace := (list (thread * access)).
  Definition part (t : thread) (tr : trace) : list access := snd <$> filter (λ z, z.1 = t) tr.
  Definition operation (z : thread * access) : Prop := match z.2 with Operates _ => True | _ => False end.
  Global Instance operation_dec z : Decision (operation z).
  Proof. destruct z as [? []]; simpl; apply _. Defined.
  Definition ops (tr : trace) : trace := filter operation tr.
  Definition plain (l : list event) : trace := (λ e, (who e, what e)) <$> l.
  Definition own (t : thread) (l : list event) : list event := filter (λ e, who e = t) l.
  Definition now (t : thread) (l : list event) : status := match last (own t l) with Some e => goes e | None => start
    end.

  Lemma part_app t (x y : trace) : part t (x ++ y) = part t x ++ part t y.
  Proof. unfold part. by rewrite filter_app fmap_app. Qed.
  Lemma ops_app (x y : trace) : ops (x ++ y) = ops x ++ ops y.
  Proof. apply filter_app. Qed.
  Lemma plain_app x y : plain (x ++ y) = plain x ++ plain y.
  Proof. apply fmap_app. Qed.
  Lemma own_app t x y : own t (x ++ y) = own t x ++ own t y.
  Proof. apply filter_app. Qed.
  Lemma part_plain t l : part t (plain l) = what <$> own t l.
  Proof.
    induction l as [|e l IH]; [done|]. unfold part, plain, own in *. simpl.
    rewrite !filter_cons; simpl. case_decide; simpl; [f_equal; exact IH|exact IH].
  Qed.
  Lemma own_none t l : (∀ e, e ∈ l → who e ≠ t) → own t l = [].
  Proof.
    induction l as [|e l IH]; intros Hl; [done|]. unfold own in *. rewrite filter_cons decide_False.
    - apply IH. intros ? ?. apply Hl. by right.
    - apply Hl. left.
  Qed.
  Lemma own_all t l : (∀ e, e ∈ l → who e = t) → own t l = l.
  Proof.
    induction l as [|e l IH]; intros Hl; [done|]. unfold own in *. rewrite filter_cons decide_True.
    - f_equal. apply IH. intros ? ?. apply Hl. by right.
    - apply Hl. left.
  Qed.
  Lemma own_apart t x y : apart x y → own t (x ++ y) = own t (y ++ x).
  Proof.
    intros Ha. rewrite !own_app. destruct (decide (Exists (λ e, who e = t) x)) as [Hx|Hx].
    - rewrite (own_none t y); [by rewrite app_nil_r|]. apply Exists_exists in Hx as (e & ? & <-).
      intros f ? Hf. by eapply Ha.
    - rewrite (own_none t x); [by rewrite app_nil_r|]. intros e ? He. apply Hx. apply Exists_exists. by exists e.
  Qed.
  Lemma early_ops l : Forall early l → ops (plain l) = [].
  Proof.
    induction 1 as [|e l He _ IH]; [done|]. unfold ops, plain in *. simpl. rewrite filter_cons decide_False //.
    apply early_moves in He as [He _]. destruct e as [t k []]; simpl in *; by auto.
  Qed.

  (** Blocks: what a thread does between two Yields *)
  Notation block := (thread * list (status * access))%type.
  Implicit Types b : block.
  Definition events b : list event := (λ z, Event b.1 z.1 z.2) <$> b.2.
  Definition flat (bs : list block) : list event := bs ≫= events.
  Definition mid (w : list (status * access)) : Prop := Forall (λ z, z.2 ≠ Yields) w.
  Definition whole b : Prop := ∃ w k, b.2 = w ++ [(k, Yields)] ∧ mid w.
  Definition decided b : Prop := mid b.2 ∧ ∃ w k a, b.2 = w ++ [(k, a)] ∧ late (after k a) = true.
  Definition undecided b : Prop := b.2 ≠ [] ∧ mid b.2 ∧ Forall early (events b).
  (** later: the threads of later blocks *)
  Fixpoint settled (bs : list block) (later : list thread) : Prop :=
    match bs with
    | [] => True
    | b :: bs => (whole b ∨ decided b ∧ b.1 ∉ bs.*1 ++ later) ∧ settled bs later
    end.

  Lemma flat_app (x y : list block) : flat (x ++ y) = flat x ++ flat y.
  Proof. apply bind_app. Qed.
  Lemma flat_cons b bs : flat (b :: bs) = events b ++ flat bs.
  Proof. done. Qed.
  Lemma who_events b e : e ∈ events b → who e = b.1.
  Proof. by intros (z & -> & _)%elem_of_list_fmap. Qed.
  Lemma who_flat bs e : e ∈ flat bs → who e ∈ bs.*1.
  Proof.
    intros (b & He & Hb)%elem_of_list_bind. rewrite (who_events _ _ He). by apply elem_of_list_fmap_1.
  Qed.
  Lemma own_events b : own b.1 (events b) = events b.
  Proof. apply own_all. intros e. apply who_events. Qed.
  Lemma own_flat_none t bs : t ∉ bs.*1 → own t (flat bs) = [].
  Proof. intros Ht. apply own_none. intros e He <-. by apply Ht, who_flat. Qed.
  Lemma now_last t x l : l ≠ [] → (∀ e, e ∈ l → who e = t) → now t (x ++ l) = match last l with Some e => goes e | None
    => start end.
  Proof.
    intros Hl Hw. unfold now. rewrite own_app (own_all t l Hw) last_app.
    destruct (last l) eqn:E; [done|]. by apply last_None in E.
  Qed.
  Lemma settled_app (x y : list block) later : settled (x ++ y) later ↔ settled x (y.*1 ++ later) ∧ settled y later.
  Proof.
    induction x as [|b x IH]; simpl; [tauto|]. rewrite IH fmap_app -(assoc_L (++)). tauto.
  Qed.
  Lemma last_block t bs : t ∉ bs.*1 ∨ ∃ (x : list block) w (y : list block), bs = x ++ (t, w) :: y ∧ t ∉ y.*1.
  Proof.
    induction bs as [|[u w] bs IH]; [left; apply not_elem_of_nil|].
    destruct IH as [Hn|(x & w' & y & -> & Hy)].
    - destruct (decide (u = t)) as [->|Hu].
      + right. by exists [], w, bs.
      + left. simpl. apply not_elem_of_cons. done.
    - right. by exists ((u, w) :: x), w', y.
  Qed.

  Lemma now_block (x : list block) t w (y : list block) z : t ∉ y.*1 →
    now t (flat (x ++ (t, w ++ [z]) :: y)) = after z.1 z.2.
  Proof.
    intros Hy. unfold now. rewrite flat_app flat_cons !own_app (own_flat_none t y) // app_nil_r.
    rewrite (own_events (t, w ++ [z])) /events /= fmap_app (assoc_L (++)) last_snoc. done.
  Qed.
  Lemma apart_threads (x y : list event) (ts us : list thread) :
    (∀ e, e ∈ x → who e ∈ ts) → (∀ f, f ∈ y → who f ∈ us) → (∀ t, t ∈ ts → t ∉ us) → apart x y.
  Proof. intros Hx Hy Ht e f He Hf Heq. apply (Ht (who e)); [by apply Hx|]. rewrite Heq. by apply Hy. Qed.

  (** A run, and the same one with its blocks apart: those that are decided, and then those that are not. *)
  Record arranged (s0 : state) (tr : trace) (s : state) (D O : list block) : Prop := {
    a_run : goods s0 (flat (D ++ O)) s;
    a_part : ∀ t, part t (plain (flat (D ++ O))) = part t tr;
    a_ops : ops (plain (flat (D ++ O))) = ops tr;
    a_now : ∀ t, now t (flat (D ++ O)) = foldl after start (part t tr);
    a_done : settled D O.*1;
    a_open : Forall undecided O;
    a_once : NoDup O.*1;
  }.

  (** of a thread that has decided, the last block is one of the decided ones *)
  Lemma decided_block s0 tr s D O t : arranged s0 tr s D O → late (foldl after start (part t tr)) = true →
    t ∉ O.*1 ∧ ∃ (x : list block) w (y : list block), D = x ++ (t, w) :: y ∧ t ∉ y.*1 ∧ decided (t, w).
  Proof.
    intros [_ _ _ Hn Hd Ho Hu] Hl. rewrite -Hn in Hl.
    assert (t ∉ O.*1) as HO.
    { destruct (last_block t O) as [?|(x & w & y & -> & Hy)]; [done|exfalso].
      apply Forall_app in Ho as [_ [(Hne & _ & He) _]%Forall_cons].
      destruct w as [|z w _] using rev_ind; [done|].
      rewrite (assoc_L (++)) now_block // in Hl. rewrite /events /= fmap_app in He.
      apply Forall_app in He as [_ [He _]%Forall_cons]. unfold early in He; simpl in He. congruence. }
    split; [done|].
    destruct (last_block t D) as [HD|(x & w & y & -> & Hy)].
    { unfold now in Hl. rewrite own_flat_none in Hl; [simpl in Hl; congruence|].
      rewrite fmap_app. by intros [?|?]%elem_of_app. }
    exists x, w, y. split; [done|]. split; [done|].
    apply settled_app in Hd as [_ [[(w' & k & Hw & _)|[? _]] _]]; [exfalso|done].
    simpl in Hw; subst. rewrite -(assoc_L (++)) /= now_block in Hl; [by simpl in Hl|].
    rewrite fmap_app. by intros [?|?]%elem_of_app.
  Qed.
  (** of a thread that has not, all decided blocks are whole *)
  Lemma settled_more D later later' t :
    settled D later → (∀ b, b ∈ D → b.1 = t → whole b) → (∀ u, u ∈ later' → u = t ∨ u ∈ later) → settled D later'.
  Proof.
    induction D as [|b D IH]; simpl; [done|]. intros [Hb Hd] Ht Hl. split.
    - destruct (decide (b.1 = t)) as [Hbt|Hbt]; [left; apply Ht; [left|done]|].
      destruct Hb as [?|[? Hb]]; [by left|right]. split; [done|].
      intros [?|Hu]%elem_of_app; [apply Hb, elem_of_app; by left|].
      destruct (Hl _ Hu); [done|]. apply Hb, elem_of_app. by right.
    - apply IH; [done| |done]. intros b' ?. apply Ht. by right.
  Qed.
  Lemma early_whole s0 tr s D O t : arranged s0 tr s D O → late (foldl after start (part t tr)) = false →
    ∀ b, b ∈ D → b.1 = t → whole b.
  Proof.
    intros [_ _ _ Hn Hd Ho Hu] Hl b (x & y & ->)%elem_of_list_split Hb.
    apply settled_app in Hd as [_ [[?|[[_ (w & k & a & Hw & Ha)] Hlast]] _]]; [done|exfalso].
    rewrite -Hn in Hl. destruct b as [u w']; simpl in *; subst.
    rewrite -(assoc_L (++)) /= now_block in Hl; [simpl in Hl; congruence|].
    by rewrite fmap_app.
  Qed.

  Lemma now_more t l e : now t (l ++ [e]) = if decide (who e = t) then goes e else now t l.
  Proof.
    unfold now. rewrite own_app. case_decide as He.
    - rewrite (own_all t [e]) ?last_snoc //. by intros ? ->%elem_of_list_singleton.
    - rewrite (own_none t [e]) ?app_nil_r //. by intros ? ->%elem_of_list_singleton.
  Qed.
  Lemma part_more t tr u a : part t (tr ++ [(u, a)]) = if decide (u = t) then part t tr ++ [a] else part t tr.
  Proof.
    rewrite part_app. unfold part at 2. rewrite filter_cons /=. case_decide; [done|]. simpl. by rewrite app_nil_r.
  Qed.
  Lemma arranged_more s0 tr s D O t k a D' O' s' :
    arranged s0 tr s D O → k = foldl after start (part t tr) → goods s0 (flat (D' ++ O')) s' →
    (∀ u, own u (flat (D' ++ O')) = own u (flat (D ++ O) ++ [Event t k a])) →
    ops (plain (flat (D' ++ O'))) = ops (plain (flat (D ++ O) ++ [Event t k a])) →
    settled D' O'.*1 → Forall undecided O' → NoDup O'.*1 → arranged s0 (tr ++ [(t, a)]) s' D' O'.
  Proof.
    intros [Hg Hp Ho Hn _ _ _] -> Hg' Hw Hs Hd Hf Hu. split; try done.
    - intros u. rewrite part_plain Hw -part_plain plain_app !part_app Hp. done.
    - by rewrite Hs plain_app !ops_app Ho.
    - intros u. assert (now u (flat (D' ++ O')) = now u (flat (D ++ O) ++ [Event t (foldl after start (part t tr)) a]))
      as ->.
      { unfold now. by rewrite Hw. }
      rewrite now_more part_more /=. case_decide; [|done]. subst. by rewrite foldl_app.
  Qed.
  Lemma early_flat O : Forall undecided O → Forall early (flat O).
  Proof. induction 1 as [|b O (_ & _ & Hb) _ IH]; [constructor|]. rewrite flat_cons. by apply Forall_app. Qed.

  Lemma to_the_end O t : Forall undecided O → NoDup O.*1 →
    ∃ (O' : list block) w, t ∉ O'.*1 ∧ (∀ u, u ∈ O'.*1 → u ∈ O.*1) ∧ Forall undecided O' ∧ NoDup O'.*1 ∧
      mid w ∧ Forall early (events (t, w)) ∧
      (∀ s s', goods s (flat O) s' → goods s (flat O' ++ events (t, w)) s') ∧
      ∀ u, own u (flat O' ++ events (t, w)) = own u (flat O).
  Proof.
    intros Ho Hu. destruct (last_block t O) as [Ht|(x & w & y & -> & Hy)].
    { exists O, []. unfold events; simpl. split_and!; try done; try by constructor.
      all: intros; by rewrite app_nil_r. }
    apply Forall_app in Ho as [Hox [(_ & Hm & He) Hoy]%Forall_cons].
    rewrite fmap_app in Hu. apply NoDup_app in Hu as (Hux & Hxy & [_ Huy]%NoDup_cons); simpl in *.
    assert (Hx : t ∉ x.*1) by (intros Hx; apply (Hxy _ Hx); left).
    assert (Ha : apart (events (t, w)) (flat y)).
    { intros e f He' Hf. rewrite (who_events _ _ He'). intros Heq. apply Hy. simpl in Heq. rewrite Heq. by apply
      who_flat. }
    exists (x ++ y), w. rewrite !fmap_app. split_and!; try done.
    - by intros [?|?]%elem_of_app.
    - intros u [?|?]%elem_of_app; apply elem_of_app; [by left|right; by right].
    - by apply Forall_app.
    - apply NoDup_app. split_and!; [done| |done]. intros u ??. by apply (Hxy u); [|right].
    - intros s s'. rewrite !flat_app flat_cons -(assoc_L (++)) goods_app (goods_app s). intros (s1 & ? & ?).
      exists s1. split; [done|]. by apply all_right.
    - intros u. rewrite !flat_app flat_cons -(assoc_L (++)) !(own_app u (flat x)). f_equal. symmetry. by apply
      own_apart.
  Qed.

  Lemma arranged_next s0 tr s D O t a s' :
    arranged s0 tr s D O → fits t (foldl after start (part t tr)) s → does s t a s' →
    may t (foldl after start (part t tr)) a → ∃ D' O', arranged s0 (tr ++ [(t, a)]) s' D' O'.
  Proof.
    intros HA Hf Hdo Hm. set (k := foldl after start (part t tr)) in *.
    pose proof HA as [Hg _ _ _ Hd Ho Hu]. set (e := Event t k a).
    assert (He : good s e s') by done.
    destruct (late k) eqn:Hl.
    - destruct (decided_block _ _ _ _ _ t HA Hl) as (HO & x & w & y & -> & Hy & Hmid & _).
      assert (Hmv := tardy_moves s e s' Hl He). simpl in Hmv. destruct Hmv as [Hact Hacq].
      set (z := flat y ++ flat O).
      assert (Hz : apart z [e]).
      { intros f e' Hf' ->%elem_of_list_singleton Heq. simpl in Heq.
        apply elem_of_app in Hf' as [Hf'|Hf']; apply who_flat in Hf'; congruence. }
      assert (Hold : flat ((x ++ (t, w) :: y) ++ O) = flat x ++ events (t, w) ++ z).
      { by rewrite !flat_app flat_cons -!(assoc_L (++)). }
      assert (Hnew : flat ((x ++ (t, w ++ [(k, a)]) :: y) ++ O) = flat x ++ events (t, w) ++ [e] ++ z).
      { rewrite !flat_app flat_cons /events /= fmap_app -!(assoc_L (++)). done. }
      clearbody z.
      exists (x ++ (t, w ++ [(k, a)]) :: y), O. eapply (arranged_more s0 tr s _ _ t k a); [done|done|..]; try done.
      + rewrite Hnew (assoc_L (++) (flat x)). rewrite Hold (assoc_L (++) (flat x)) in Hg.
        apply goods_app in Hg as (s1 & ? & Hz1). apply goods_app. exists s1. split; [done|].
        apply one_left; [done|done|]. apply goods_app. exists s. split; [done|]. by apply goods_one.
      + intros u. rewrite Hnew Hold -!(assoc_L (++)) !(own_app u (flat x)) !(own_app u (events (t, w))). f_equal.
        f_equal.
        symmetry. by apply own_apart.
      + rewrite Hnew Hold !plain_app !ops_app. assert (He0 : ops (plain [e]) = []).
        { unfold ops, plain. simpl. rewrite filter_cons decide_False //. unfold operation. simpl. clear -Hact. destruct
          a; simpl in *; by auto. }
        fold e. by rewrite He0 app_nil_r.
      + apply settled_app in Hd as [Hdx [_ Hdy]]. apply settled_app. split; [done|]. simpl. split; [|done].
        destruct (decide (a = Yields)) as [->|Hay]; [left; by exists w, k|right]. simpl. split.
        * split; [apply Forall_app; split; [done|]; by constructor|]. exists w, k, a. split; [done|].
          destruct a; simpl; rewrite ?Hl ?orb_true_r //.
        * by intros [?|?]%elem_of_app.
    - destruct (to_the_end O t Ho Hu) as (O' & w & Ht & Hsub & Ho' & Hu' & Hmid & Hearly & Hrun & Hown).
      assert (Hg' : goods s0 (flat D ++ flat O' ++ events (t, w ++ [(k, a)])) s').
      { rewrite flat_app in Hg. apply goods_app in Hg as (s1 & HgD & HgO). apply goods_app. exists s1. split; [done|].
        apply Hrun in HgO. rewrite /events /= fmap_app. rewrite (assoc_L (++)). apply goods_app. exists s.
        split; [done|]. by apply goods_one. }
      assert (Hopsw : ops (plain (events (t, w ++ [(k, a)]))) = ops (plain [e])).
      { rewrite /events /= fmap_app plain_app ops_app. fold (events (t, w)). rewrite (early_ops _ Hearly). done. }
      assert (HopsO : ops (plain (flat O)) = []) by (by apply early_ops, early_flat).
      assert (HopsO' : ops (plain (flat O')) = []) by (by apply early_ops, early_flat).
      assert (Hown' : ∀ u, own u (flat O' ++ events (t, w ++ [(k, a)])) = own u (flat O ++ [e])).
      { intros u. rewrite /events /= fmap_app (assoc_L (++)) !(own_app u _ [_]). f_equal. apply Hown. }
      destruct (decide (late (after k a) = false ∧ a ≠ Yields)) as [[Hla Hay]|Hdec].
      + exists D, (O' ++ [(t, w ++ [(k, a)])]). eapply (arranged_more s0 tr s _ _ t k a); [done|done|..].
        * rewrite !flat_app flat_cons app_nil_r. done.
        * intros u. rewrite !flat_app flat_cons app_nil_r -!(assoc_L (++)) !(own_app u (flat D)). f_equal. apply Hown'.
        * rewrite !flat_app flat_cons app_nil_r !plain_app !ops_app HopsO HopsO' Hopsw. by rewrite !app_nil_r.
        * eapply (settled_more D _ _ t Hd); [by eapply early_whole|].
          intros u. rewrite fmap_app. intros [?|?%elem_of_list_singleton]%elem_of_app; [right; by apply Hsub|by left].
        * apply Forall_app. split; [done|]. constructor; [|done]. split; [by destruct w|]. split.
          { apply Forall_app. split; [done|]. by constructor. }
          rewrite /events /= fmap_app. apply Forall_app. split; [done|]. by constructor.
        * rewrite fmap_app. apply NoDup_app. split_and!; [done| |apply NoDup_singleton].
          by intros u ? ->%elem_of_list_singleton.
      + exists (D ++ [(t, w ++ [(k, a)])]), O'. eapply (arranged_more s0 tr s _ _ t k a); [done|done|..]; try done.
        * rewrite !flat_app flat_cons app_nil_r -(assoc_L (++)).
          apply goods_app in Hg' as (s1 & ? & HO'). apply goods_app. exists s1. split; [done|].
          apply all_right; [by apply early_flat| |done].
          intros e1 e2 Hin1 Hin2. rewrite (who_events _ _ Hin2). simpl. intros <-. by apply Ht, who_flat.
        * intros u. rewrite !flat_app flat_cons app_nil_r -!(assoc_L (++)) !(own_app u (flat D)). f_equal.
          rewrite -Hown'. apply own_apart.
          intros e1 e2 Hin1 Hin2. rewrite (who_events _ _ Hin1). simpl. intros ->. by apply Ht, who_flat.
        * rewrite !flat_app flat_cons app_nil_r !plain_app !ops_app HopsO HopsO' Hopsw. by rewrite !app_nil_r.
        * apply settled_app. split.
          { eapply (settled_more D _ _ t Hd); [by eapply early_whole|]. simpl.
            intros u [->|?]%elem_of_cons; [by left|right; by apply Hsub]. }
          simpl. split; [|done]. destruct (decide (a = Yields)) as [->|Hay]; [left; by exists w, k|right].
          split; [|done]. split; [apply Forall_app; split; [done|]; by constructor|]. exists w, k, a. split; [done|].
          destruct (late (after k a)) eqn:?; [done|]. exfalso. by apply Hdec.
  Qed.

  (** A run, with any interleaving, and cut off anywhere. *)
  Inductive run : state → trace → state → Prop :=
    | run_none s : run s [] s
    | run_more s t a s' tr s'' : does s t a s' → run s' tr s'' → run s ((t, a) :: tr) s''.
  Lemma run_app s (x y : trace) s'' : run s (x ++ y) s'' ↔ ∃ s', run s x s' ∧ run s' y s''.
  Proof.
    split.
    - revert s. induction x as [|[t a] x IH]; intros s Hr; [by exists s; split; [constructor|]|].
      inversion Hr as [|? ? ? s1 ? ? Hd Hx]; subst. destruct (IH _ Hx) as (s' & ? & ?).
      exists s'. split; [by econstructor|done].
    - intros (s' & Hx & Hy). induction Hx; [done|]. simpl. econstructor; [done|]. by auto.
  Qed.
  Lemma goods_run s l s' : goods s l s' → run s (plain l) s'.
  Proof. induction 1 as [|s e s1 l s2 (Hd & _ & _) _ IH]; [constructor|]. by econstructor. Qed.

  Lemma lawful_app t k (x y : list access) : lawful t k (x ++ y) ↔ lawful t k x ∧ lawful t (foldl after k x) y.
  Proof. revert k. induction x as [|a x IH]; intros k; simpl; [tauto|]. rewrite IH. tauto. Qed.

  (** The beginning: nobody holds the mutex, or plays a role. *)
  Definition begins (s : state) : Prop := holder s = None ∧ players s = ∅.
  Lemma fits_begin t s : begins s → fits t start s.
  Proof. intros [Hh Hp]. split; [by rewrite Hh|]. intros r. rewrite Hp lookup_empty. by split; [intros
    ?%elem_of_empty|]. Qed.

  Lemma is_arranged s0 tr s : begins s0 → run s0 tr s → (∀ t, lawful t start (part t tr)) →
    (∃ D O, arranged s0 tr s D O) ∧ ∀ t, fits t (foldl after start (part t tr)) s.
  Proof.
    intros Hb. revert s. induction tr as [|[t a] tr IH] using rev_ind; intros s Hr Hl.
    { inversion Hr; subst. split; [|intros; by apply fits_begin]. exists [], []. split; try done; by constructor. }
    apply run_app in Hr as (s1 & Hr & Ha). inversion Ha as [|? ? ? ? ? ? Hd Hn]; subst. inversion Hn; subst.
    destruct (IH s1) as [(D & O & HA) Hf]; [done| |].
    { intros u. specialize (Hl u). rewrite part_app in Hl. by apply lawful_app in Hl as [? _]. }
    split.
    - eapply arranged_next; [done|done|done|]. specialize (Hl t). rewrite part_more decide_True // in Hl.
      apply lawful_app in Hl as [_ [? _]]. done.
    - intros u. rewrite part_more. case_decide as Hu; [subst|].
      + rewrite foldl_app /=. by eapply fits_own.
      + by apply (fits_others _ _ _ _ _ _ Hd).
  Qed.

  (** No data race: in no run do two threads touch a place one right after the other, of which one changes it, but an open
      place, whose accesses are atomic. This is what Go's memory model asks for. *)
  Definition touches (a : access) (p : place) : Prop := match a with Reads q _ | Writes q _ => q = p | _ => False end.
  Definition changes (a : access) (p : place) : Prop := match a with Writes q _ => q = p | _ => False end.
  Theorem no_data_race s0 (tr : trace) t a u c s p : begins s0 → run s0 (tr ++ [(t, a); (u, c)]) s →
    (∀ v, lawful v start (part v (tr ++ [(t, a); (u, c)]))) → t ≠ u → touches a p → touches c p →
    changes a p ∨ changes c p → ∃ r, rules p = Open r.
  Proof.
    intros Hb Hr Hl Ht Ha Hu Hc. apply run_app in Hr as (s1 & Hr & _).
    assert (∀ v, lawful v start (part v tr)) as Hl1.
    { intros v. specialize (Hl v). rewrite part_app in Hl. by apply lawful_app in Hl as [? _]. }
    destruct (is_arranged s0 tr s1 Hb Hr Hl1) as [_ Hf].
    set (k := foldl after start (part t tr)). set (j := foldl after start (part u tr)).
    assert (Ma : may t k a).
    { specialize (Hl t). rewrite part_app in Hl. apply lawful_app in Hl as [_ Hl].
      unfold part in Hl. rewrite filter_cons decide_True // in Hl. by destruct Hl. }
    assert (Mb : may u j c).
    { specialize (Hl u). rewrite part_app in Hl. apply lawful_app in Hl as [_ Hl].
      unfold part in Hl. rewrite filter_cons decide_False // in Hl. rewrite filter_cons decide_True // in Hl. by destruct Hl. }
    assert (Hh := one_holds _ _ _ _ _ (Hf t) (Hf u)). assert (Hp := λ r, one_plays _ _ _ _ _ r (Hf t) (Hf u)).
    fold k j in Hh, Hp. clearbody k j. clear - Ma Mb Hh Hp Ht Ha Hu Hc.
    destruct a, c; try done; simpl in *; subst; unfold sees, alone in *; destruct (rules p) as [|?| |r|r|r]; try by eauto.
    all: try specialize (Hp r); exfalso; intuition congruence.
  Qed.

  (** The blocks, without what threads knew. *)
  Definition turn : Type := thread * list access.
  Definition spoken (bs : list turn) : trace := bs ≫= (λ c : turn, pair c.1 <$> c.2).
  Definition complete (c : turn) : Prop := ∃ w, c.2 = w ++ [Yields] ∧ Yields ∉ w.
  (** Each block is whole, or cut off, and then its thread has no other after it. *)
  Fixpoint by_turns (bs : list turn) : Prop :=
    match bs with
    | [] => True
    | c :: bs => (complete c ∨ Yields ∉ c.2 ∧ c.1 ∉ bs.*1) ∧ by_turns bs
    end.
  Definition bare b : turn := (b.1, b.2.*2).
  Lemma spoken_bare bs : spoken (bare <$> bs) = plain (flat bs).
  Proof.
    induction bs as [|b bs IH]; [done|]. rewrite flat_cons plain_app -IH. unfold spoken. simpl. f_equal.
    unfold events, plain. by rewrite -!list_fmap_compose.
  Qed.
  Lemma bare_names bs : (bare <$> bs).*1 = bs.*1.
  Proof. by rewrite -list_fmap_compose. Qed.
  Lemma mid_none w : mid w → Yields ∉ w.*2.
  Proof. intros Hm (z & Hz & Hin)%elem_of_list_fmap. by eapply Forall_forall in Hm; [apply Hm|]. Qed.
  Lemma whole_complete b : whole b → complete (bare b).
  Proof. intros (w & k & Hw & Hm). exists w.*2. unfold bare. rewrite Hw fmap_app. split; [done|by apply mid_none]. Qed.
  Lemma by_turns_app (x y : list turn) : by_turns x → by_turns y → (∀ c, c ∈ x → complete c ∨ c.1 ∉ y.*1) → by_turns (x
    ++ y).
  Proof.
    induction x as [|b x IH]; simpl; [done|]. intros [Hb Hx] Hy Hxy. split.
    - destruct Hb as [?|[? ?]]; [by left|]. destruct (Hxy b) as [?|?]; [left|by left|right].
      split; [done|]. rewrite fmap_app. by intros [?|?]%elem_of_app.
    - apply IH; [done|done|]. intros c ?. apply Hxy. by right.
  Qed.
  Lemma open_turns O : Forall undecided O → NoDup O.*1 → by_turns (bare <$> O).
  Proof.
    induction 1 as [|b O (_ & Hm & _) _ IH]; simpl; [done|]. intros [Hb Hu]%NoDup_cons. split; [|by apply IH].
    right. split; [by apply mid_none|]. by rewrite bare_names.
  Qed.
  Lemma settled_turns D later : settled D later →
    by_turns (bare <$> D) ∧ ∀ c, c ∈ bare <$> D → complete c ∨ c.1 ∉ later.
  Proof.
    induction D as [|b D IH]; simpl; [split; [done|by intros ? ?%elem_of_nil]|].
    intros [Hb Hd]. destruct (IH Hd) as [Ht Hl]. split; [split; [|done]|].
    - destruct Hb as [?|[[? _] Hn]]; [left; by apply whole_complete|right]. split; [by apply mid_none|].
      rewrite bare_names. intros ?. apply Hn, elem_of_app. by left.
    - intros c [->|?]%elem_of_cons; [|by apply Hl].
      destruct Hb as [?|[_ Hn]]; [left; by apply whole_complete|right]. simpl. intros ?. apply Hn, elem_of_app. by
        right.
  Qed.

  (** Whatever the interleaving, it is as if each block were made in one go: each thread did what it did, the device was
      told the same, in the same order, and all ends in the same state. *)
  Theorem as_if_by_turns s0 tr s : begins s0 → run s0 tr s → (∀ t, lawful t start (part t tr)) →
    ∃ bs, by_turns bs ∧ run s0 (spoken bs) s ∧ (∀ t, part t (spoken bs) = part t tr) ∧ ops (spoken bs) = ops tr.
  Proof.
    intros Hb Hr Hl. destruct (is_arranged s0 tr s Hb Hr Hl) as [(D & O & [Hg Hp Hs _ Hd Ho Hu]) _].
    exists (bare <$> D ++ O). rewrite spoken_bare. split_and!; [|by apply goods_run|done|done].
    rewrite fmap_app. destruct (settled_turns _ _ Hd) as [Ht Hn].
    apply by_turns_app; [done|by apply open_turns|]. intros b Hin. rewrite bare_names. by apply Hn.
  Qed.

  (** A crash. What a thread's program may do is [program]; it keeps to the rules, and a block that has decided comes
      to its end without waiting for anybody. *)
  Variable program : thread → list access → Prop.
  Hypothesis program_begins : ∀ t (x y : list access), program t (x ++ y) → program t x.
  Hypothesis program_lawful : ∀ t (x : list access), program t x → lawful t start x.
  Definition mine (t : thread) (w : list access) : trace := pair t <$> w.
  Hypothesis program_ends : ∀ t (x : list access) s, program t x →
    late (foldl after start x) = true → fits t (foldl after start x) s →
    ∃ w s', run s (mine t w) s' ∧ program t (x ++ w) ∧ ∃ w', w = w' ++ [Yields] ∧ Yields ∉ w'.

  Lemma part_mine t u w : part t (mine u w) = if decide (u = t) then w else [].
  Proof.
    induction w as [|a w IH]; [by case_decide|]. unfold part, mine in *. simpl. rewrite filter_cons /=.
    case_decide; [simpl; f_equal|]; exact IH.
  Qed.
  Lemma late_quiet t k w s s' : lawful t k w → late k = true → Yields ∉ w → run s (mine t w) s' →
    dev s' = dev s ∧ ops (mine t w) = [].
  Proof.
    revert k s. induction w as [|a w IH]; intros k s Hl Hk Hn Hr; [by inversion Hr|].
    destruct Hl as [Hm Hl]. apply not_elem_of_cons in Hn as [Ha Hn]. simpl in Hr.
    inversion Hr as [|? ? ? s1 ? ? Hd Hw]; subst.
    assert (late (after k a) = true) as Hk' by (destruct a; simpl; rewrite ?Hk ?orb_true_r //).
    destruct (IH _ _ Hl Hk' Hn Hw) as [-> Ho]. unfold ops, mine in *. simpl. rewrite filter_cons decide_False.
    - split; [|exact Ho]. destruct Hd; try done. simpl in Hm. congruence.
    - unfold operation; simpl. destruct a; try by auto. simpl in Hm. congruence.
  Qed.
  Lemma decided_end s0 tr s (ts : list thread) : begins s0 → run s0 tr s → (∀ t, program t (part t tr)) →
    ∃ (x : trace) s', run s x s' ∧ dev s' = dev s ∧ ops x = [] ∧ ∀ t, program t (part t (tr ++ x)) ∧
      (t ∈ ts → late (foldl after start (part t (tr ++ x))) = false) ∧
      (part t x = [] ∨ t ∈ ts ∧ ∃ w, part t x = w ++ [Yields] ∧ Yields ∉ w).
  Proof.
    intros Hb Hr Hp. induction ts as [|t ts (x & s1 & Hx & Hdev & Ho & Hall)].
    { exists [], s. split_and!; [constructor|done|done|]. intros t. rewrite app_nil_r. split_and!; [done| |by left].
      by intros ?%elem_of_nil. }
    destruct (late (foldl after start (part t (tr ++ x)))) eqn:Hl.
    2: { exists x, s1. split_and!; try done. intros u. destruct (Hall u) as (? & Hu & He). split_and!; [done| |].
         - intros [->|?]%elem_of_cons; [done|by apply Hu].
         - destruct He as [?|[? ?]]; [by left|right]. split; [by right|done]. }
    destruct (Hall t) as (Hpt & Hnt & Het).
    assert (Ht : part t x = []). { destruct Het as [?|[Hin _]]; [done|]. apply Hnt in Hin. congruence. }
    assert (Hrx : run s0 (tr ++ x) s1) by (apply run_app; by exists s).
    destruct (is_arranged s0 (tr ++ x) s1 Hb Hrx) as [_ Hf].
    { intros u. apply program_lawful, Hall. }
    destruct (program_ends t _ s1 Hpt Hl (Hf t)) as (w & s2 & Hw & Hpw & w' & -> & Hn).
    exists (x ++ mine t (w' ++ [Yields])), s2.
    unfold mine in Hw. rewrite fmap_app in Hw. apply run_app in Hw as (s3 & Hw & Hy).
    assert (s3 = s2) as ->.
    { inversion Hy as [|? ? ? ? ? ? Hd Hz]; subst. inversion Hz; subst. by inversion Hd. }
    destruct (late_quiet t (foldl after start (part t (tr ++ x))) w' s1 s2) as [Hd2 Ho2]; [|done|done|done|].
    { apply program_lawful in Hpw. apply lawful_app in Hpw as [_ Hpw]. by apply lawful_app in Hpw as [? _]. }
    split_and!.
    - apply run_app. exists s1. split; [done|]. unfold mine. rewrite fmap_app. apply run_app. by exists s2.
    - congruence.
    - rewrite ops_app Ho. unfold mine. rewrite fmap_app ops_app. fold (mine t w'). by rewrite Ho2.
    - intros u. rewrite (assoc_L (++)) !(part_app u _ (mine _ _)) part_mine. case_decide as Hu; [subst u|].
      + rewrite Ht /=. split_and!; [done| |].
        * intros _. by rewrite !foldl_app.
        * right. split; [left|]. by exists w'.
      + rewrite !app_nil_r. destruct (Hall u) as (? & Hu2 & He). split_and!; [done| |].
        * intros [?|?]%elem_of_cons; [congruence|by apply Hu2].
        * destruct He as [?|[? ?]]; [by left|right]. split; [by right|done].
  Qed.
  Lemma early_device s l s' : Forall early l → goods s l s' → dev s' = dev s.
  Proof.
    intros He Hg. induction Hg as [|s e s1 l s2 (Hd & _ & _) _ IH]; [done|].
    apply Forall_cons in He as [He Hl]. rewrite (IH Hl). apply early_moves in He as [He _].
    destruct e as [t k a]; simpl in *. by destruct Hd.
  Qed.

  (** Whenever a crash comes, the device is as whole blocks have left it, one after the other. Of each thread they are
      those that it was through with, and the one that it was at, if that had decided; else nothing of that one is
      seen. *)
  Theorem a_crash_finds_whole_blocks s0 tr s : begins s0 → run s0 tr s → (∀ t, program t (part t tr)) →
    ∃ bs s', Forall complete bs ∧ run s0 (spoken bs) s' ∧ dev s' = dev s ∧ ops (spoken bs) = ops tr ∧
      ∀ t, program t (part t (spoken bs)) ∧
        ((∃ w, part t (spoken bs) = part t tr ++ w ++ [Yields] ∧ Yields ∉ w) ∨
         (∃ w, part t tr = part t (spoken bs) ++ w ∧ Yields ∉ w)).
  Proof.
    intros Hb Hr Hp. destruct (decided_end s0 tr s tr.*1 Hb Hr Hp) as (x & s1 & Hx & Hdev & Ho & Hall).
    assert (Hrx : run s0 (tr ++ x) s1) by (apply run_app; by exists s).
    destruct (is_arranged s0 (tr ++ x) s1 Hb Hrx) as [(D & O & HA) _].
    { intros u. apply program_lawful, Hall. }
    pose proof HA as [Hg Hpart Hops _ Hd Hop Hu].
    rewrite flat_app in Hg. apply goods_app in Hg as (s2 & HgD & HgO).
    exists (bare <$> D), s2. rewrite spoken_bare. split_and!.
    - apply Forall_forall. intros c (b & -> & Hin)%elem_of_list_fmap. apply whole_complete.
      eapply (early_whole _ _ _ _ _ b.1 HA); [|done|done].
      destruct (decide (b.1 ∈ tr.*1)) as [Hin'|Hnin]; [by apply Hall|].
      destruct (Hall b.1) as (_ & _ & [He|[? _]]); [|done]. rewrite part_app He app_nil_r.
      assert (part b.1 tr = []) as ->; [|done]. unfold part.
      assert (filter (λ z, z.1 = b.1) tr = []) as ->; [|done]. idtac.
      clear -Hnin. induction tr as [|[u a] tr IH]; [done|]. simpl in Hnin. apply not_elem_of_cons in Hnin as [? ?].
      rewrite filter_cons decide_False; [by apply IH|simpl; congruence].
    - by apply goods_run.
    - rewrite -Hdev. symmetry. eapply early_device; [|done]. by apply early_flat.
    - rewrite flat_app plain_app ops_app (early_ops (flat O)) ?app_nil_r in Hops; [|by apply early_flat].
      by rewrite Hops ops_app Ho app_nil_r.
    - intros t. specialize (Hpart t). rewrite flat_app plain_app part_app (part_app t tr) in Hpart.
      destruct (Hall t) as (Hpt & _ & He). rewrite part_app -Hpart in Hpt. split; [by apply program_begins in Hpt|].
      assert (Hy : Yields ∉ part t (plain (flat O))).
      { rewrite part_plain. intros (e & He' & Hin)%elem_of_list_fmap. unfold own in Hin.
        apply elem_of_list_filter in Hin as [_ (b & Hin & HbO)%elem_of_list_bind].
        apply Forall_forall with (x := b) in Hop as (_ & Hm & _); [|done].
        apply elem_of_list_fmap in Hin as (z & -> & Hz). by apply Forall_forall with (x := z) in Hm. }
      destruct He as [He|[_ (w & He & Hw)]].
      + right. exists (part t (plain (flat O))). split; [|done]. by rewrite Hpart He app_nil_r.
      + left. exists w. split; [|done]. rewrite -He -Hpart.
        destruct (part t (plain (flat O))) as [|a y _] using rev_ind; [by rewrite app_nil_r|exfalso].
        rewrite He !(assoc_L (++)) in Hpart. apply app_inj_tail in Hpart as [_ ->].
        apply Hy, elem_of_app. right. by left.
  Qed.

End interleaving.
