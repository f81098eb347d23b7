(** Interleavings, met and broken: a small journal whose threads keep to the rules of Interleaving.v, with a run in
    which they are tangled; and runs that break one of the rules and keep to all others, of which the theorem is false.
    *)
From Tansy Require Export Interleaving.

Inductive role := Logging | Installing.
Global Instance role_eq : EqDecision role. Proof. solve_decision. Defined.
Global Instance role_countable : Countable role.
Proof.
  refine (inj_countable' (λ r, match r with Logging => true | Installing => false end)
    (λ b, if b then Logging else Installing) _). by intros [].
Defined.

(** The device keeps all that it is told, in that order. *)
Definition told (d : list nat) (o : nat) (d' : list nat) : Prop := d' = d ++ [o].
Notation access := (@access nat role nat nat).
Notation state := (@state nat nat role nat (list nat) _ _ _ _).
Notation run := (run told).
Notation trace := (list (nat * access)).

(** Places: the running group, under the mutex; the frozen one; what the logger and the installer have done; and the
    root of the tree, which anybody reads. *)
Notation RUNNING := 0. Notation FROZEN := 1. Notation LOGGED := 2. Notation INSTALLED := 3. Notation ROOT := 4.
Definition rules (p : nat) : rule (thread:=nat) (role:=role) :=
  match p with
  | RUNNING => Mutexed
  | FROZEN => Frozen Logging
  | LOGGED => Owned Logging
  | INSTALLED => Owned Installing
  | ROOT => Open Installing
  | _ => Fixed
  end.

(** A client, thread 0, adds one to the running group, reads the root, and is answered by way of the device. u and v are
    what it reads. *)
Definition client (u v : option nat) : list access :=
  [Acquires; Reads RUNNING u; Writes RUNNING (default 0 u + 1); Releases; Yields; Reads ROOT v; Yields; Operates 100;
    Yields].
(** The logger, thread 1, freezes the group and writes it. *)
Definition logger (u v : option nat) : list access :=
  [Acquires; Takes Logging; Reads RUNNING u; Writes FROZEN (default 0 u); Releases; Yields;
   Reads FROZEN v; Operates (default 0 v); Writes LOGGED 1; Yields;
   Acquires; Leaves Logging; Releases; Yields].
(** The installer, thread 2, writes to the device what the root is to be, and makes it that. *)
Definition installer (u v : option nat) : list access :=
  [Acquires; Takes Installing; Releases; Yields;
   Reads ROOT u; Operates (default 0 u + 200); Reads ROOT v; Writes INSTALLED 1; Yields;
   Acquires; Writes ROOT (default 0 v + 1); Leaves Installing; Releases; Yields].
Definition all (t : nat) (u v : option nat) : list access :=
  match t with 0 => client u v | 1 => logger u v | 2 => installer u v | _ => [] end.
Definition program (t : nat) (x : list access) : Prop := ∃ u v, x `prefix_of` all t u v.

Lemma all_lawful t u v : lawful rules t start (all t u v).
Proof. destruct t as [|[|[|t]]]; simpl; unfold sees, alone; simpl; split_and?; try done; try set_solver. Qed.
Lemma program_lawful t x : program t x → lawful rules t start x.
Proof. intros (u & v & y & Hy). pose proof (all_lawful t u v) as Hl. rewrite Hy in Hl. by apply lawful_app in Hl as [?
  _]. Qed.
Lemma program_begins t (x y : list access) : program t (x ++ y) → program t x.
Proof. intros (u & v & z & Hz). exists u, v. exists (y ++ z). by rewrite Hz (assoc_L (++)). Qed.

Lemma ends_by t u v s (x w y : list access) :
  all t u v = x ++ (w ++ [Yields]) ++ y → Yields ∉ w → (∃ s', run s (mine t w) s') →
  ∃ w' s', run s (mine t w') s' ∧ program t (x ++ w') ∧ ∃ w'', w' = w'' ++ [Yields] ∧ Yields ∉ w''.
Proof.
  intros Ha Hw (s' & Hs). exists (w ++ [Yields]), s'. split_and!; [|exists u, v, y; by rewrite Ha (assoc_L (++) x)|by
    exists w].
  unfold mine. rewrite fmap_app. apply run_app. exists s'. split; [done|]. econstructor; constructor.
Qed.
Ltac at_each x Hy := repeat (destruct x as [|? x]; [|simpl in Hy; first [discriminate Hy|injection Hy as <- Hy]]); try
  done.
Ltac unsaid := repeat (apply not_elem_of_cons; split; [done|]); apply not_elem_of_nil.
Ltac goes := unfold mine; simpl; first [apply run_none|eapply run_more; [constructor; by auto|goes]].
Ltac ends t u v :=
  first [eapply (ends_by t u v _ _ []); [reflexivity|unsaid|eexists; goes]
    |eapply (ends_by t u v _ _ [_]); [reflexivity|unsaid|eexists; goes]
    |eapply (ends_by t u v _ _ [_; _]); [reflexivity|unsaid|eexists; goes]].
Lemma program_ends t (x : list access) (s : state) : program t x → late (foldl (after rules) start x) = true →
  fits t (foldl (after rules) start x) s →
  ∃ w s', run s (mine t w) s' ∧ program t (x ++ w) ∧ ∃ w', w = w' ++ [Yields] ∧ Yields ∉ w'.
Proof.
  intros (u & v & y & Hy) Hl [Hh Hp]. destruct s as [m h ps d]; simpl in Hh, Hp.
  destruct t as [|[|[|t]]]; simpl in Hy.
  - at_each x Hy; ends 0 u v.
  - at_each x Hy; try (assert (h = Some 1) as -> by (by apply Hh)); ends 1 u v.
  - at_each x Hy; try (assert (h = Some 2) as -> by (by apply Hh));
      try (assert (ps !! Installing = Some 2) by (apply Hp, elem_of_union; left; by apply elem_of_singleton)).
    all: first [ends 2 u v|ends 2 u (m !! ROOT)].
  - by destruct x.
Qed.

(** A run of them, in which no thread is left alone for long. A crash comes when the logger and the installer have both
    told the device, and are not through with it. *)
Definition new : state := State ∅ None ∅ [].
Definition tangled : trace :=
  [(0, Acquires); (0, Reads RUNNING None); (0, Writes RUNNING 1); (0, Releases); (1, Acquires); (0, Yields);
   (1, Takes Logging); (1, Reads RUNNING (Some 1)); (1, Writes FROZEN 1); (1, Releases); (2, Acquires); (1, Yields);
   (1, Reads FROZEN (Some 1)); (2, Takes Installing); (2, Releases); (0, Reads ROOT None); (2, Yields);
   (2, Reads ROOT None); (1, Operates 1); (0, Yields); (2, Operates 200); (1, Writes LOGGED 1); (2, Reads ROOT None);
   (0, Operates 100)].
Theorem it_is_met :
  begins new ∧ (∀ t, program t (part t tangled)) ∧ ∃ s, run new tangled s ∧ dev s = [1; 200; 100].
Proof.
  split; [done|]. split.
  - intros [|[|[|t]]].
    + exists None, None, [Yields]. reflexivity.
    + exists (Some 1), (Some 1), [Yields; Acquires; Leaves Logging; Releases; Yields]. reflexivity.
    + exists None, None. eexists. reflexivity.
    + exists None, None, []. reflexivity.
  - eexists. split; [goes|reflexivity].
Qed.
Theorem it_is_as_said :
  ∃ bs s, Forall complete bs ∧ run new (spoken bs) s ∧ dev s = [1; 200; 100] ∧ ops (spoken bs) = ops tangled ∧
    ∀ t, program t (part t (spoken bs)).
Proof.
  destruct it_is_met as (Hb & Hp & s & Hr & Hd).
  destruct (a_crash_finds_whole_blocks told rules program program_begins program_lawful program_ends new tangled s Hb
    Hr Hp)
    as (bs & s' & ? & ? & Hd' & ? & Hall).
  exists bs, s'. rewrite Hd'. split_and!; try done. intros t. by apply Hall.
Qed.

(** *** Without one of the rules *)
(** Nothing that is done by turns is what was done: with the same of each thread, and the same told to the device. *)
Definition in_no_turns (tr : trace) : Prop :=
  ¬ ∃ bs s, by_turns bs ∧ run new (spoken bs) s ∧ (∀ t, part t (spoken bs) = part t tr) ∧ ops (spoken bs) = ops tr.
(** All rules but those about some accesses. *)
Fixpoint lawful_but (wrong : access → Prop) (r : nat → rule) (t : nat) (k : status) (x : list access) : Prop :=
  match x with [] => True | a :: x => (wrong a ∨ may r t k a) ∧ lawful_but wrong r t (after r k a) x end.

Lemma first_yield (w' w r : list access) : (w' ++ [Yields]) ++ r = w ++ [Yields] → Yields ∉ w' → Yields ∉ w → w' = w ∧
  r = [].
Proof.
  revert w. induction w' as [|a w' IH]; intros [|b w]; simpl; intros Hp Hw' Hw.
  - split; [done|]. by injection Hp.
  - injection Hp as <- _. exfalso. apply Hw. left.
  - injection Hp as -> Hp. exfalso. apply Hw'. left.
  - injection Hp as -> Hp. apply not_elem_of_cons in Hw as [_ Hw]. apply not_elem_of_cons in Hw' as [_ Hw'].
    by destruct (IH w Hp Hw' Hw) as [-> ?].
Qed.
Lemma in_one_piece (bs : list turn) t (w : list access) : by_turns bs → part t (spoken bs) = w ++ [Yields] → Yields ∉ w
  →
  ∃ x y : trace, spoken bs = x ++ mine t (w ++ [Yields]) ++ y ∧ part t x = [] ∧ part t y = [].
Proof.
  intros Hb Hp Hw. induction bs as [|[u v] bs IH]; [by destruct w|]. destruct Hb as [Hc Hb].
  change (spoken ((u, v) :: bs)) with (mine u v ++ spoken bs) in *. rewrite part_app part_mine in Hp. case_decide as Hu.
  - subst u. destruct Hc as [(w' & Hv & Hw')|[Hv Ht]]; simpl in *.
    + subst v. exists [], (spoken bs). assert (w' = w ∧ part t (spoken bs) = []) as [-> ->]; [|done].
      by apply first_yield.
    + exfalso. assert (part t (spoken bs) = []) as Hn.
      { clear -Ht. induction bs as [|[u z] bs IH]; [done|]. simpl in Ht. apply not_elem_of_cons in Ht as [? Ht].
        change (spoken ((u, z) :: bs)) with (mine u z ++ spoken bs). rewrite part_app part_mine decide_False // IH //. }
      rewrite Hn app_nil_r in Hp. subst v. apply Hv, elem_of_app. right. left.
  - destruct (IH Hb Hp) as (x & y & -> & Hx & Hy). exists (mine u v ++ x), y. rewrite -!(assoc_L (++)). split_and!;
    [done| |done].
    rewrite part_app part_mine decide_False //.
Qed.
Lemma only_his t (x : trace) : Forall (λ z, z.1 = t) x → x = mine t (part t x).
Proof.
  induction 1 as [|[u a] x Hu _ IH]; [done|]. simpl in Hu. subst u.
  unfold part, mine. rewrite filter_cons decide_True //. simpl. f_equal. exact IH.
Qed.
(** Two threads with a block each: one of them is first. *)
Lemma two_turns (bs : list turn) (w v : list access) : by_turns bs → Yields ∉ w → Yields ∉ v →
  (∀ t, part t (spoken bs) = match t with 0 => w ++ [Yields] | 1 => v ++ [Yields] | _ => [] end) →
  spoken bs = mine 0 (w ++ [Yields]) ++ mine 1 (v ++ [Yields]) ∨ spoken bs = mine 1 (v ++ [Yields]) ++ mine 0 (w ++
    [Yields]).
Proof.
  intros Hb Hw Hv Hp.
  destruct (in_one_piece bs 0 w Hb (Hp 0) Hw) as (x & y & Hx & Hx0 & Hy0).
  destruct (in_one_piece bs 1 v Hb (Hp 1) Hv) as (x' & y' & Hx' & Hx1 & Hy1).
  assert (Hall : ∀ t a, (t, a) ∈ spoken bs → t = 0 ∨ t = 1).
  { intros t a Hin. assert (a ∈ part t (spoken bs)) as Ha.
    { apply elem_of_list_fmap. exists (t, a). split; [done|]. by apply elem_of_list_filter. }
    rewrite Hp in Ha. destruct t as [|[|t]]; [by left|by right|]. by apply elem_of_nil in Ha. }
  assert (Hrest : ∀ z : trace, ∀ t, (∀ p, p ∈ z → p ∈ spoken bs) → t = 0 ∨ t = 1 → part (1 - t) z = [] → z = mine t
    (part t z)).
  { intros z t Hz Ht Hn. apply only_his, Forall_forall. intros [u a] Hin. simpl.
    destruct (decide (u = 1 - t)) as [->|Hu].
    - exfalso. assert (a ∈ part (1 - t) z) as Ha.
      { apply elem_of_list_fmap. exists (1 - t, a). split; [done|]. by apply elem_of_list_filter. }
      rewrite Hn in Ha. by apply elem_of_nil in Ha.
    - destruct (Hall u a (Hz _ Hin)), Ht; subst; simpl in *; lia. }
  assert (Hxm : x = mine 1 (part 1 x)).
  { apply Hrest; [|by right|done]. intros p ?. rewrite Hx. apply elem_of_app. by left. }
  destruct (part 1 x) as [|a z] eqn:Ex.
  - left. subst x. rewrite Hx. simpl. f_equal.
    rewrite (Hrest y 1); [| |by right|done].
    + f_equal. specialize (Hp 1). rewrite Hx !part_app !part_mine in Hp. exact Hp.
    + intros p ?. rewrite Hx. apply elem_of_app. right. apply elem_of_app. by right.
  - right. rewrite Hx'. assert (x' = []) as ->.
    { destruct x' as [|[u b] x']; [done|exfalso]. rewrite Hxm in Hx. rewrite Hx in Hx'. simpl in Hx'.
      injection Hx' as <- <- _. discriminate Hx1. }
    simpl. f_equal. rewrite (Hrest y' 0); [| |by left|done].
    + f_equal. specialize (Hp 0). rewrite Hx' !part_app !part_mine in Hp. exact Hp.
    + intros p ?. rewrite Hx'. apply elem_of_app. right. apply elem_of_app. by right.
Qed.

Ltac runs H :=
  repeat (inversion H as [|? ? ? ? ? ? Hdoes Hrest]; subst; clear H; rename Hrest into H; inversion Hdoes; subst; clear
    Hdoes).

(** What is under the mutex is read and written without it: what one adds is lost. *)
Definition lost : trace :=
  [(0, Reads RUNNING None); (1, Reads RUNNING None); (0, Writes RUNNING 1); (1, Writes RUNNING 1); (0, Yields); (1,
    Yields)].
Theorem without_the_mutex :
  (∃ s, run new lost s) ∧ in_no_turns lost ∧
  ∀ t, lawful_but (λ a, a = Reads RUNNING None ∨ a = Writes RUNNING 1) rules t start (part t lost).
Proof.
  split; [eexists; goes|]. split.
  - intros (bs & s & Hb & Hr & Hp & _).
    destruct (two_turns bs [Reads RUNNING None; Writes RUNNING 1] [Reads RUNNING None; Writes RUNNING 1] Hb) as [E|E];
      [unsaid|unsaid|by intros [|[|t]]; rewrite Hp|rewrite E in Hr..]; simpl in Hr; runs Hr; simplify_map_eq.
  - intros [|[|t]]; simpl; unfold sees, alone; simpl; tauto.
Qed.

(** What is under the mutex, too, in two goes that no Yield parts: it is taken again after it was let go. *)
Definition twice (a : nat) : list access :=
  [Acquires; Reads RUNNING None; Releases; Acquires; Writes RUNNING a; Releases].
Definition again : trace :=
  mine 0 [Acquires; Reads RUNNING None; Releases] ++ mine 1 (twice 1 ++ [Yields]) ++
  mine 0 [Acquires; Writes RUNNING 1; Releases; Yields].
Theorem without_a_yield :
  (∃ s, run new again s) ∧ in_no_turns again ∧ ∀ t, lawful_but (λ a, a = Acquires) rules t start (part t again).
Proof.
  split; [eexists; goes|]. split.
  - intros (bs & s & Hb & Hr & Hp & _).
    destruct (two_turns bs (twice 1) (twice 1) Hb) as [E|E];
      [unsaid|unsaid|by intros [|[|t]]; rewrite Hp|rewrite E in Hr..]; simpl in Hr; runs Hr; simplify_map_eq.
  - intros [|[|t]]; simpl; unfold sees, alone; simpl; tauto.
Qed.

(** Two operations at the device in one block: another's comes between. *)
Definition between : trace := [(0, Operates 1); (1, Operates 2); (0, Operates 3); (0, Yields); (1, Yields)].
Theorem without_one_operation :
  (∃ s, run new between s) ∧ in_no_turns between ∧ ∀ t, lawful_but (λ a, a = Operates 3) rules t start (part t between).
Proof.
  split; [eexists; goes|]. split.
  - intros (bs & s & Hb & Hr & Hp & Ho).
    destruct (two_turns bs [Operates 1; Operates 3] [Operates 2] Hb) as [E|E];
      [unsaid|unsaid|by intros [|[|t]]; rewrite Hp|rewrite E in Ho; discriminate Ho..].
  - intros [|[|t]]; simpl; unfold sees, alone; simpl; tauto.
Qed.

(** What is frozen changed by the role without the mutex: a reader under the mutex sees two versions. *)
Definition thawed : trace :=
  [(0, Acquires); (0, Takes Logging); (0, Releases); (0, Yields)] ++
  [(1, Acquires); (1, Reads FROZEN None); (0, Writes FROZEN 1); (1, Reads FROZEN (Some 1)); (1, Releases); (0, Yields);
    (1, Yields)].
Theorem without_mutex_and_role :
  (∃ s, run new thawed s) ∧ in_no_turns thawed ∧
  ∀ t, lawful_but (λ a, a = Writes FROZEN 1) rules t start (part t thawed).
Proof.
  split; [eexists; goes|]. split; [|intros [|[|t]]; simpl; unfold sees, alone; simpl; tauto].
  intros (bs & s & Hb & Hr & Hp & _).
  destruct (in_one_piece bs 1 [Acquires; Reads FROZEN None; Reads FROZEN (Some 1); Releases] Hb) as (x & y & Hx & _);
    [by rewrite Hp|unsaid|].
  rewrite Hx in Hr. apply run_app in Hr as (s1 & _ & Hr). simpl in Hr.
  do 3 (inversion Hr as [|? ? ? ? ? ? Hdoes Hrest]; subst; clear Hr; rename Hrest into Hr; inversion Hdoes; subst;
    clear Hdoes).
  congruence.
Qed.
